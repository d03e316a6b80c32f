import type pg from 'pg';
import type { Queryable } from './database.ts';
import package_json from '../../package.json' with { type: 'json' };
import { readFunctions, type FunctionFile } from './sql-files.ts';

/** The comment that a function of ours has in the database: which version has put which text there. */
type Mark = { name: string; version: string; checksum: string };

/**
 * Makes the functions those of this version, within the caller's transaction: applies the files whose text has
 * changed and drops functions that have no file any more. Functions of a newer version stay as they are: this
 * is an older node, and theirs serve it too. The caller holds the lock of `lockMigrations`.
 */
export async function applyFunctions(
  client: pg.Client,
  files: readonly FunctionFile[] = readFunctions(),
  version: string = package_json.version,
): Promise<void> {
  const marks = await readMarks(client);
  if (marks.some((mark) => isNewer(mark.version, version))) return;
  const applied = new Map(marks.map(({ name, checksum }) => [name, checksum]));
  // What a body names may be in a later file, or in the schema of the job queue, which is made after this.
  await client.query('set local check_function_bodies = off');
  for (const file of files) {
    if (applied.get(file.name) !== file.checksum) await applyFile(client, file, version);
  }
  for (const { name } of marks) {
    if (!files.some((file) => file.name === name)) await client.query(`drop function public.${name}`);
  }
}

/** The comment of a function goes with it, whoever drops or copies it: a table of ours could say what is not so. */
async function readMarks(client: pg.Client): Promise<Mark[]> {
  const { rows } = await client.query<MarkRow>(marks_query);
  return rows.map(parseMark);
}

type MarkRow = { name: string; mark: string };

const marks_query = `select p.proname as name, d.description as mark
     from pg_proc p join pg_description d on d.classoid = 'pg_proc'::regclass and d.objoid = p.oid and d.objsubid = 0
    where p.pronamespace = 'public'::regnamespace and d.description like 'medley %'`;

function parseMark({ name, mark }: MarkRow): Mark {
  const [, version = '', checksum = ''] = mark.split(' ');
  return { name, version, checksum };
}

/** The functions of a database beside those of this version. `version`: the latest that has put one there. */
export type FunctionChanges = { version: string | null; added: string[]; changed: string[]; removed: string[] };

/** Compares them and changes nothing; nothing is changed either where the database has those of a newer version. */
export async function compareFunctions(
  db: Queryable,
  files: readonly FunctionFile[] = readFunctions(),
  own_version: string = package_json.version,
): Promise<FunctionChanges> {
  const marks = (await db.query<MarkRow>(marks_query)).map(parseMark);
  const [version = null] = marks.map((mark) => mark.version).toSorted((a, b) => (isNewer(a, b) ? -1 : 1));
  if (version !== null && isNewer(version, own_version)) return { version, added: [], changed: [], removed: [] };
  const applied = new Map(marks.map(({ name, checksum }) => [name, checksum]));
  const names = new Set(files.map(({ name }) => name));
  return {
    version,
    added: files.filter(({ name }) => !applied.has(name)).map(({ name }) => name),
    changed: files
      .filter(({ name, checksum }) => applied.has(name) && applied.get(name) !== checksum)
      .map(({ name }) => name),
    removed: [...applied.keys()].filter((name) => !names.has(name)),
  };
}

async function applyFile(client: pg.Client, { path, name, sql, checksum }: FunctionFile, version: string) {
  try {
    await client.query(sql);
    await client.query(`comment on function public.${name} is 'medley ${version} ${checksum}'`);
  } catch (error) {
    if (error instanceof Error) error.message = `${path}: ${error.message}`;
    throw error;
  }
}

/** Returns true if the first is the later one of two versions, such as 1.10.0 and 1.9.2, or 1.0.0 and 1.0.0-rc.1. */
function isNewer(version: string, other: string): boolean {
  const [release = '', candidate] = version.split('-', 2);
  const [other_release = '', other_candidate] = other.split('-', 2);
  const order = release.localeCompare(other_release, 'en', { numeric: true });
  if (order !== 0 || candidate === other_candidate) return order > 0;
  if (candidate === undefined || other_candidate === undefined) return candidate === undefined;
  return candidate.localeCompare(other_candidate, 'en', { numeric: true }) > 0;
}
