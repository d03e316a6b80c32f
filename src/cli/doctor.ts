import { statfs } from 'node:fs/promises';
import type { Command } from 'commander';
import { currenciesInUse } from '../accounts/accounts.ts';
import { openIssuers } from '../accounts/sign-in/issuers.ts';
import type { CatalogHolder } from '../catalog/catalog.ts';
import { stranded } from '../catalog/check-settings.ts';
import { backupHealth, healthText } from '../backup/scheduled.ts';
import { endingSoon } from '../catalog/dated.ts';
import { endingCertificates } from '../catalog/provider-connection.ts';
import { showProblem } from '../catalog/problem.ts';
import type { Config } from '../config.ts';
import { clockSkew } from '../db/clock.ts';
import type { ContentKeys } from '../db/content.ts';
import type { Db } from '../db/database.ts';
import { appliedMigrations, brokenIndexes, pendingMigrations } from '../db/migrate.ts';
import { systemClock, type Clock } from '../lib/clock.ts';
import { counted } from '../lib/counted.ts';
import type { Guard } from '../net/guard.ts';
import { modelCheckLines } from '../monitoring/model-check.ts';
import { reconcile } from '../money/reconciliation.ts';
import { readJournals } from '../storage/journal.ts';
import { examineStorage } from '../storage/examine.ts';
import type { Storage } from '../storage/storage.ts';
import { examineSearch } from '../web-search/examine.ts';
import { service_rules } from '../chat/books.ts';
import { examineSecret } from './doctor-secret.ts';
import { says, withEngine, type CommandResult } from './command.ts';

/** The parts of the app that are examined. */
type DoctorParts = {
  readonly config: Config;
  readonly db: Db;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly catalog: CatalogHolder;
  readonly guard: Guard;
  readonly secret: string;
  readonly content_keys: ContentKeys;
  base_url(): string;
};

type Check = { name: string; ok: boolean; detail: string };

const free_bytes_min = 1_000_000_000;
const skew_ms_max = 2_000;

/** Entries of an outage that has just ended are no fault. */
const journal_wait_ms = 30_000;

export function doctorCommand(doctor: Command): void {
  doctor.option('--search', 'ask the search API once, also where a search costs');
  says(doctor, () => withEngine((app) => examine(app, doctor.opts()['search'] === true)));
}

export function migrateCommand(migration: Command): void {
  says(migration, () =>
    withEngine(async (app) => {
      const pending = await pendingMigrations(app.db); // opening the app has applied them
      const applied = await appliedMigrations(app.db);
      return { json: { applied, pending }, text: `The schema is current: ${applied.length} migrations.` };
    }),
  );
}

async function examine(app: DoctorParts, may_search: boolean): Promise<CommandResult> {
  const checks: Check[] = [];
  for (const [name, examineOne] of Object.entries(examinations)) {
    try {
      checks.push({ name, ...(await examineOne(app, may_search)) });
    } catch (error) {
      checks.push({ name, ok: false, detail: error instanceof Error ? error.message : String(error) });
    }
  }
  const ok = checks.every((check) => check.ok);
  const text = checks.map((check) => `${check.ok ? 'ok  ' : 'FAIL'}  ${check.name}: ${check.detail}`).join('\n');
  return { json: { ok, checks }, text, exit_code: ok ? 0 : 1 };
}

type Examine = (app: DoctorParts, may_search: boolean) => Promise<{ ok: boolean; detail: string }>;

const examinations: Record<string, Examine> = {
  node: async () => ({ ok: Number(process.versions.node.split('.')[0]) >= 24, detail: process.version }),
  database: async (app) => {
    const rows = await app.db.query<{ version: string; fsync: string; sync: string; place: string | null }>(
      `select version(), current_setting('fsync') as fsync, current_setting('synchronous_commit') as sync,
              case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory') end as place`,
    );
    const [row] = rows;
    const durable = row?.fsync === 'on' && row.sync !== 'off';
    const place = app.config.database_url === undefined ? ` in ${row?.place ?? app.config.data_dir}` : '';
    const broken = await brokenIndexes(app.db);
    const details = [
      `${row?.version.split(' on ')[0]}${place}`,
      durable ? 'durable' : 'NOT durable: fsync or synchronous_commit is off',
      ...(broken.length > 0 ? [`indexes that are being made, or could not be: ${broken.join(', ')}`] : []),
    ];
    return { ok: durable && broken.length === 0, detail: details.join(', ') };
  },
  clock: async (app) => {
    const skew_ms = await clockSkew(app.db, systemClock);
    return {
      ok: skew_ms <= skew_ms_max,
      detail: `${Math.round(skew_ms)} ms from the database's, which the service uses`,
    };
  },
  storage: async (app) => {
    const problem = await examineStorage(app.storage);
    const { bavail, bsize } = await statfs(app.config.data_dir);
    const free_bytes = bavail * bsize;
    const is_bucket = app.catalog.current.settings.storage.type === 's3';
    const details = [
      ...(problem === undefined ? [] : [problem]),
      ...(is_bucket ? [`files are in ${app.storage.place}`] : []),
      `${(free_bytes / 1e9).toFixed(1)} GB free in ${app.config.data_dir}`,
    ];
    return { ok: problem === undefined && free_bytes >= free_bytes_min, detail: details.join('; ') };
  },
  catalogue: async (app) => {
    const { models, warnings, settings } = app.catalog.current;
    const missing = stranded([...settings.currencies.keys()], await currenciesInUse(app.db));
    const problems = [...missing.map((message) => `currencies: ${message}`), ...warnings.map(showProblem)];
    const ending = endingSoon(models.values(), app.clock.now());
    const lists = await modelCheckLines(app.db, settings);
    const details = [counted(models.size, 'model'), ...problems, ...ending, ...lists];
    return { ok: problems.length === 0, detail: details.join('; ') };
  },
  certificates: async (app) => {
    const { ended, soon } = endingCertificates(app.catalog.current.providers.values(), app.clock.now());
    const details = [...ended, ...soon];
    return { ok: ended.length === 0, detail: details.length === 0 ? 'none ends within 30 days' : details.join('; ') };
  },
  books: async (app) => {
    const report = await reconcile(app.db, { clock: app.clock, more: service_rules });
    return { ok: report.ok, detail: `${counted(report.entries, 'entry', 'entries')}, difference ${report.difference}` };
  },
  journal: async (app) => {
    const [oldest, ...more] = await readJournals(app.config.data_dir);
    if (!oldest) return { ok: true, detail: 'nothing waits for the database' };
    const detail = `${more.length + 1} entries wait to be booked, the oldest since ${oldest.at}; a running service books them`;
    return { ok: app.clock.now() - Date.parse(oldest.at) < journal_wait_ms, detail };
  },
  secret: examineSecret,
  backups: async (app) => {
    const now_ms = app.clock.now();
    const health = await backupHealth(app.db, app.catalog.current.settings, now_ms);
    if (!health) return { ok: true, detail: 'none are scheduled (backup in medley.yaml)' };
    return { ok: health.failures === 0 && !health.is_late, detail: healthText(health, now_ms) };
  },
  search: async ({ catalog, guard }, may_search) => {
    const { web_search } = catalog.current.settings.tools;
    if (!web_search) return { ok: true, detail: 'none is configured (tools.web_search in medley.yaml)' };
    return examineSearch(guard, web_search, { may_cost: may_search, signal: new AbortController().signal });
  },
  sign_in: async ({ catalog, guard, clock }) => {
    const { issuers } = catalog.current.settings.sign_in;
    if (issuers.length === 0) return { ok: true, detail: 'by password and link only (sign_in.issuers in medley.yaml)' };
    const client = openIssuers({ guard, now: () => new Date(clock.now()) });
    const results = await Promise.all(
      issuers.map(async (issuer) => {
        const problem = await client.examine(issuer).catch((error: unknown) => String(error));
        return { ok: problem === undefined, detail: `${issuer.id}: ${problem ?? 'answers'}` };
      }),
    );
    return { ok: results.every(({ ok }) => ok), detail: results.map(({ detail }) => detail).join('; ') };
  },
  address: async (app) => {
    const url = app.base_url();
    const local = /\/\/(127\.|localhost|\[::1\])/.test(url);
    return { ok: true, detail: local ? `${url} (only this machine: set MEDLEY_BASE_URL for others)` : url };
  },
};
