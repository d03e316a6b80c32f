import { readdir, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { Command } from 'commander';
import package_json from '../../package.json' with { type: 'json' };
import { withDatabase } from '../app/data.ts';
import { readCommandConfig } from '../app/running.ts';
import { megabytes } from '../backup/progress.ts';
import { openCatalog } from '../catalog/catalog.ts';
import { endingSoon } from '../catalog/dated.ts';
import { listOverrides } from '../catalog/overrides.ts';
import { CatalogError, showProblem } from '../catalog/problem.ts';
import type { Config } from '../config.ts';
import type { Db } from '../db/database.ts';
import { compareFunctions, type FunctionChanges } from '../db/functions.ts';
import { compareMigrations } from '../db/migrate.ts';
import { effectsOf, type Effect } from '../db/migration-effects.ts';
import { systemClock } from '../lib/clock.ts';
import { counted } from '../lib/counted.ts';
import { program_name } from '../lib/program-name.ts';
import { adapterFacts } from '../providers/facts.ts';
import { adapters } from '../providers/index.ts';
import { listNodes } from '../queue/nodes.ts';
import { CommandError, says, type CommandResult } from './command.ts';

export function upgradeCommand(upgrade: Command): void {
  upgrade.option('--check', 'tell what this version would change; it changes nothing');
  says(upgrade, () => {
    if (upgrade.opts()['check'] === true) return checkUpgrade(readCommandConfig());
    throw new CommandError(
      'A version is installed and started, and its start brings the database up to date: see docs/deploy.md. `upgrade --check` tells what that would change.',
      2,
    );
  });
}

/** A table and its size by the statistics of the database, which are about right. */
type SizedTable = { name: string; rows: number; size_bytes: number };
type SizedEffect = Omit<Effect, 'tables'> & { tables: SizedTable[] };

type Findings = {
  database: { version: string | null; migrations: number } | null;
  migrations: SizedEffect[];
  functions: FunctionChanges;
  configuration: { problems: string[]; without_model: string[]; retiring: string[] };
  backup: { needs_bytes: number; free_bytes: number };
  nodes: { host: string; pid: number; role: string; version: string }[];
  /** Reasons why a start of this version would fail, or should not be tried. */
  obstacles: string[];
};

/** A node that was killed is silent by then. */
const alive_ms = 15_000;

async function checkUpgrade(config: Config): Promise<CommandResult> {
  const configuration = await examineConfiguration(config);
  const examined = await withDatabase(config, (db) => examine(db, config, configuration));
  const findings = examined ?? (await withoutDatabase(config, configuration));
  const { database, migrations, functions } = findings;
  const changed = [functions.added, functions.changed, functions.removed].flat().length;
  const needed = database !== null && migrations.length + changed > 0;
  const steps = stepsOf(findings, needed);
  const ok = findings.obstacles.length === 0;
  return {
    json: { ok, needed, version: package_json.version, ...findings, steps },
    text: textOf(findings, needed, steps),
    exit_code: ok ? 0 : 1,
  };
}

const no_functions: FunctionChanges = { version: null, added: [], changed: [], removed: [] };

async function withoutDatabase({ data_dir }: Config, { problems, ...configuration }: Configuration): Promise<Findings> {
  return {
    database: null,
    migrations: [],
    functions: no_functions,
    configuration: { problems, without_model: [], retiring: configuration.retiring },
    backup: { needs_bytes: 0, free_bytes: await freeBytes(data_dir) },
    nodes: [],
    obstacles: problems,
  };
}

async function examine(db: Db, config: Config, { problems, retiring, models }: Configuration): Promise<Findings> {
  const { applied, pending, problem } = await compareMigrations(db);
  const functions = await compareFunctions(db);
  const [size] = await db.query<{ bytes: string }>('select pg_database_size(current_database())::text as bytes');
  const needs_bytes = Number(size?.bytes ?? 0) + (await sizeBelow(join(config.data_dir, 'files')));
  const free_bytes = await freeBytes(config.data_dir);
  const overrides = (await hasTable(db, 'model_overrides')) ? await listOverrides(db) : [];
  const nodes = (await hasTable(db, 'nodes')) ? await listNodes(db) : [];
  return {
    database: { version: functions.version, migrations: applied.length },
    migrations: await Promise.all(effectsOf(pending).map((effect) => withSizes(db, effect))),
    functions,
    configuration: {
      problems,
      without_model: models ? overrides.map(({ model }) => model).filter((id) => !models.has(id)) : [],
      retiring,
    },
    backup: { needs_bytes, free_bytes },
    nodes: nodes
      .filter(({ silent_ms }) => silent_ms < alive_ms)
      .map(({ host, pid, role, version }) => ({ host, pid, role, version })),
    obstacles: [...(problem === undefined ? [] : [problem]), ...problems],
  };
}

type Configuration = { problems: string[]; retiring: string[]; models?: ReadonlySet<string> };

/** Keys that this version no longer has are mistakes of the file. */
async function examineConfiguration({ config_file }: Config): Promise<Configuration> {
  try {
    const { current } = await openCatalog({ config_file, ...adapterFacts(adapters) });
    return {
      problems: [],
      retiring: endingSoon(current.models.values(), systemClock.now()),
      models: new Set([...current.models.keys(), ...current.retired.keys()]),
    };
  } catch (error) {
    if (!(error instanceof CatalogError)) throw error;
    return { problems: error.problems.map(showProblem), retiring: [] };
  }
}

async function hasTable(db: Db, name: string): Promise<boolean> {
  const [row] = await db.query<{ there: boolean }>('select to_regclass($1) is not null as there', [name]);
  return row?.there ?? false;
}

/** A table that there is not, because an earlier one of the migrations makes it, has no size. */
async function withSizes(db: Db, { tables, ...effect }: Effect): Promise<SizedEffect> {
  const sized = await db.query<{ name: string; rows: number; bytes: string }>(
    `select n.name, greatest(c.reltuples, 0)::float8 as rows, pg_total_relation_size(c.oid)::text as bytes
       from unnest($1::text[]) with ordinality n (name, place) join pg_class c on c.oid = to_regclass(n.name)
      order by n.place`,
    [tables],
  );
  return { ...effect, tables: sized.map(({ name, rows, bytes }) => ({ name, rows, size_bytes: Number(bytes) })) };
}

/** Free bytes of the disk of a folder, or of the nearest folder above it that there is. */
async function freeBytes(folder: string): Promise<number> {
  try {
    const { bavail, bsize } = await statfs(folder);
    return bavail * bsize;
  } catch (error) {
    const above = join(folder, '..');
    if (above === folder) throw error;
    return freeBytes(above);
  }
}

/** All files below a folder; 0 where there is none, as with a bucket. */
async function sizeBelow(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  let bytes = 0;
  for (const entry of entries) {
    if (!entry.isFile()) continue;
    const stats = await stat(join(entry.parentPath, entry.name)).catch(() => undefined);
    bytes += stats?.size ?? 0; // removed meanwhile
  }
  return bytes;
}

function stepsOf({ database, backup, nodes, migrations, obstacles }: Findings, needed: boolean): string[] {
  if (obstacles.length > 0) return ['Mend what stands above, then check again. Nothing was changed.'];
  if (database === null) return ['Start it: there is no database yet, and the first start makes one.'];
  if (!needed) return ['Nothing: the database is current.'];
  const slow = migrations.filter(({ work }) => work !== 'quick');
  const others = nodes.filter(({ version }) => version !== package_json.version);
  return [
    backup.free_bytes < backup.needs_bytes
      ? `Make a backup on another disk (${program_name} backup DIR): it may need ${megabytes(backup.needs_bytes)}, and here are ${megabytes(backup.free_bytes)}.`
      : `Make a backup (${program_name} backup DIR): it needs at most ${megabytes(backup.needs_bytes)}.`,
    ...(slow.length > 0
      ? ['Choose a quiet hour: the tables named above take no writes while they are read or written again.']
      : []),
    others.length > 0
      ? `Start this version on one node, then on the others one after the other: ${counted(others.length, 'node')} of another version may go on meanwhile.`
      : 'Start this version: the database follows in one transaction, and a start that fails changes nothing.',
  ];
}

function textOf(findings: Findings, needed: boolean, steps: string[]): string {
  const { database, migrations, functions, configuration, backup, nodes, obstacles } = findings;
  const { added, changed, removed } = functions;
  const lines = [
    `This version: ${package_json.version}. The database: ${database === null ? 'none yet' : (database.version ?? 'no functions yet')}.`,
    ...obstacles.map((each) => `OBSTACLE: ${each}`),
    ...(needed ? [`Migrations: ${migrations.length === 0 ? 'none' : ''}`.trimEnd()] : []),
    ...migrations.map(({ name, work, tables }) => `  ${name}: ${[work, ...tables.map(sizeOf)].join(' ')}`),
    ...(needed ? [`SQL functions: ${added.length} new, ${changed.length} changed, ${removed.length} removed`] : []),
    ...configuration.without_model.map((model) => `Changed by an operator, but no model of this version: ${model}`),
    ...configuration.retiring,
    `Nodes: ${nodes.map(({ host, pid, role, version }) => `${host} ${pid} (${role}, ${version})`).join('; ') || 'none is running'}`,
    `Disk: ${megabytes(backup.free_bytes)} free, a backup needs at most ${megabytes(backup.needs_bytes)}`,
    'To do:',
    ...steps.map((step) => `  ${step}`),
  ];
  return lines.join('\n');
}

function sizeOf({ name, rows, size_bytes }: SizedTable): string {
  return `${name} (${counted(Math.round(rows), 'row')}, ${megabytes(size_bytes)})`;
}
