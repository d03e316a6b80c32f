import type { Db, Queryable, Tx } from '../db/database.ts';
import { newId } from '../lib/ids.ts';
import { projectOf, setProject } from '../money/ledger.ts';
import { hasProgramKey } from './key-list.ts';
import {
  deleteKey,
  findPlaygroundKey,
  hasLimited,
  insertKey,
  openPlaygroundKey,
  type ApiKey,
  type NewKey,
} from './keys.ts';

/** Projects of an account: its keys are in one of them, and all that a key spends belongs to the project it is in then. */

/** The project of every key that is in no other one. It has no row, and stays. */
export const default_project = { id: 'default', name: 'Default' } as const;

export type Project = { id: string; name: string; created_at: Date; archived_at: Date | null };

/** Active ones of an account. */
const projects_max = 200;

const columns = 'id, name, created_at, archived_at';

/** Returns an account's projects but the default one, by the time of their creation, archived ones too. */
export async function listProjects(db: Queryable, account_id: string): Promise<Project[]> {
  return db.query<Project>(`select ${columns} from projects where account_id = $1 order by created_at, id`, [
    account_id,
  ]);
}

/** Returns the names of an account's projects by their ids, the default and archived ones too. */
export async function projectNames(db: Queryable, account_id: string): Promise<Map<string, string>> {
  const projects = [default_project, ...(await listProjects(db, account_id))];
  return new Map(projects.map(({ id, name }) => [id, name]));
}

/** `taken`: an active project has this name. `full`: the account has as many as it may. */
export async function createProject(
  db: Db,
  { account_id, name }: { account_id: string; name: string },
  now: Date,
): Promise<Project | 'taken' | 'full'> {
  return db.tx(async (tx) => {
    const active = await lockActive(tx, account_id);
    if (hasName(active, name)) return 'taken';
    if (active.length >= projects_max) return 'full';
    const rows = await tx.query<Project>(
      `insert into projects (id, account_id, name, created_at) values ($1, $2, $3, $4) returning ${columns}`,
      [newId('project', now.getTime()), account_id, name, now],
    );
    return rows[0] ?? 'taken';
  });
}

/** Answers the name before; `missing`: the account has no such active project. */
export async function renameProject(
  db: Db,
  { account_id, id, name }: { account_id: string; id: string; name: string },
): Promise<{ before: string } | 'taken' | 'missing'> {
  return db.tx(async (tx) => {
    const active = await lockActive(tx, account_id);
    const before = active.find((project) => project.id === id)?.name;
    if (before === undefined) return 'missing';
    const others = active.filter((project) => project.id !== id);
    if (hasName(others, name)) return 'taken';
    await tx.query('update projects set name = $2 where id = $1', [id, name]);
    return { before };
  });
}

/**
 * Archives a project without working keys of programs: what it has spent stays in reports, and no key can be moved there. Its
 * key of the playground ends.
 */
export async function archiveProject(
  db: Db,
  { account_id, id }: { account_id: string; id: string },
  now: Date,
): Promise<{ name: string } | 'in_use' | 'missing'> {
  return db.tx(async (tx) => {
    const project = (await lockActive(tx, account_id)).find((each) => each.id === id);
    if (!project) return 'missing';
    if (await hasProgramKey(tx, account_id, id, now)) return 'in_use';
    const playground = await findPlaygroundKey(tx, account_id, id);
    if (playground) await deleteKey(tx, playground.id, now);
    await tx.query('update projects set archived_at = $2 where id = $1', [id, now]);
    return { name: project.name };
  });
}

/** Makes a key in a project, as `createKey` does in the default one; undefined if the account has no such active project. */
export async function createKeyIn(
  db: Db,
  project_id: string,
  key: NewKey,
  now: Date,
): Promise<{ key: ApiKey; text: string } | undefined> {
  return db.tx(async (tx) => {
    const project = await usableProject(tx, key.account_id, project_id);
    return project === undefined ? undefined : insertKey(tx, { ...key, project_id: project }, now);
  });
}

/** Makes or finds the key of the playground, in a project; undefined if the account has no such active project. */
export async function openPlaygroundKeyIn(
  db: Db,
  project_id: string,
  key: NewKey,
  now: Date,
): Promise<ApiKey | undefined> {
  return db.tx(async (tx) => {
    const project = await usableProject(tx, key.account_id, project_id);
    return project === undefined ? undefined : openPlaygroundKey(tx, { ...key, project_id: project }, now);
  });
}

/**
 * Moves a key and those it was rotated from or to. `limited`: one of them is limited to its project, and stays there, as
 * whoever has its text would see the other project. False if the account has no such key or active project.
 */
export async function moveKey(
  db: Db,
  { account_id, key_id, project_id }: { account_id: string; key_id: string; project_id: string },
): Promise<boolean | 'limited'> {
  return db.tx(async (tx) => {
    const project = await usableProject(tx, account_id, project_id);
    if (project === undefined) return false;
    if ((await projectOf(tx, key_id)) !== project_id && (await hasLimited(tx, key_id))) return 'limited';
    return setProject(tx, key_id, project);
  });
}

/**
 * Returns the id as keys have it, null of the default project; undefined if the account has no such active project. It
 * stays active until the transaction ends.
 */
async function usableProject(tx: Tx, account_id: string, id: string): Promise<string | null | undefined> {
  if (id === default_project.id) return null;
  return (await lockActive(tx, account_id)).find((project) => project.id === id)?.id;
}

/** Whoever changes projects of an account, or what belongs to them, waits for others who do. */
async function lockActive(tx: Tx, account_id: string): Promise<Pick<Project, 'id' | 'name'>[]> {
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('projects ' || $1, 0))`, [account_id]);
  return tx.query('select id, name from projects where account_id = $1 and archived_at is null', [account_id]);
}

function hasName(projects: readonly Pick<Project, 'name'>[], name: string): boolean {
  return [default_project, ...projects].some((each) => each.name.toLowerCase() === name.toLowerCase());
}
