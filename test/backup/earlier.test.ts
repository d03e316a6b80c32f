import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, expect, it } from 'vitest';
import { makeApp } from '../../src/app.ts';
import { readManifest } from '../../src/backup/manifest.ts';
import { checkBackup } from '../../src/backup/restore.ts';
import { readConfig } from '../../src/config.ts';
import { pendingMigrations } from '../../src/db/migrate.ts';
import { startServer } from '../../src/server.ts';
import { commandsOf } from '../cli/medley.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { schemaText } from '../helpers/schema.ts';
import { changeManifest, copyBackup, quiet, rowsIn, rowsOf, scratch, yaml } from './setup.ts';

/**
 * Made by `medley backup` at commit 7689d1e, the last one before the baseline, of a service with two accounts, four
 * tasks (one of them running), three deliveries (one waiting), a chat call, an invoice, a person and an uploaded file.
 */
const folder = join(import.meta.dirname, 'before-baseline');
/** A key of that service. */
const key = 'mdl_gOhjTTUvDm1r1Nm4csGpOSN0CisGNA2a3V0Y';

/** Its tables that have another name since. */
const renamed = Object.entries({
  'public.places': 'public.delivery_slots',
  'public.parked': 'public.throttled_deliveries',
  'public.slow_lanes': 'public.slow_endpoints',
});

const place = scratch();
const databases: TestDatabase[] = [];

afterAll(async () => {
  for (const database of databases) await database.drop();
  place.remove();
});

async function openTestDatabase(state: 'empty' | 'migrated'): Promise<TestDatabase> {
  const database = await testDatabase({ state });
  databases.push(database);
  return database;
}

/** Tables that came later. */
const later_tables = [
  'webhook_endpoints',
  'webhook_events',
  'alerts',
  'alert_notices',
  'alert_settings',
  'model_checks',
  'prompts',
  'prompt_versions',
  'call_prices',
  'sign_in_tries',
  'test_calls',
  'full_routes',
  'throttled_tasks',
  'test_call_files',
  'book_checks',
  'account_budgets',
  'book_budget_marks',
  'margin_sums',
  'ledger_openings',
  'ledger_closed_months',
  'ledger_closed_keys',
  'stored_responses',
  'conversations',
  'conversation_items',
  'added_providers',
  'added_models',
  'background_responses',
  'background_contents',
  'upload_sessions',
  'upload_parts',
  'batches',
  'batch_lines',
  'device_logins',
  'saved_views',
  'spend_mails',
  'model_hours',
  'projects',
  'chat_contents',
  'playground_owners',
  'playground_conversations',
  'playground_contents',
  'feedback',
  'passkeys',
  'used_challenges',
  'refusals',
];

it('a backup of the version before the baseline is restored row by row, with exact books, and its key works', async () => {
  const { db, url } = await openTestDatabase('empty');
  const config_file = place.path('medley.yaml');
  writeFileSync(config_file, yaml);
  const env = { DATABASE_URL: url, MEDLEY_DATA: place.path('data'), MEDLEY_CONFIG: config_file, PORT: '0' };
  const result = await commandsOf(env).text('restore', folder, '--json');
  expect(result.code, result.error + result.out).toBe(0);
  expect(JSON.parse(result.out)).toMatchObject({ books: { ok: true }, left_out: [], unfinished_tasks: 1 });

  const there = await rowsOf(url);
  const backed_up = rowsIn(folder, await readManifest(folder));
  const full = [...backed_up].filter(([, rows]) => rows.length > 0).map(([name]) => name.replace('public.', ''));
  for (const name of 'accounts api_keys balances ledger_entries open_holds tasks deliveries chat_calls files'.split(
    ' ',
  ))
    expect(full).toContain(name);
  // The look at the restored books moves marks, the queue writes down its settings, and the baseline is added.
  for (const name of ['public.book_marks', 'public.book_key_marks', 'pgboss.queue', 'public.migrations'])
    expect(there.delete(name) && backed_up.delete(name)).toBe(true);
  for (const [before, name] of renamed) {
    expect(there.get(name)).toEqual(backed_up.get(before));
    expect(there.delete(name) && backed_up.delete(before)).toBe(true);
  }
  // Tables and columns that came later: no call may cost more than its hold, and every account keeps its responses.
  for (const name of later_tables) {
    expect(there.get(`public.${name}`)).toEqual([]);
    there.delete(`public.${name}`);
  }
  for (const name of ['public.balances', 'public.budgets', 'public.open_holds'])
    backed_up.set(name, backed_up.get(name)?.map((line) => `${line}\t0`) ?? []);
  for (const name of ['public.budgets', 'public.open_holds', 'public.ledger_entries'])
    backed_up.set(name, backed_up.get(name)?.map((line) => `${line}\t\\N`) ?? []); // the project
  for (const name of ['public.budgets', 'public.open_holds'])
    backed_up.set(name, backed_up.get(name)?.map((line) => `${line}\t\\N`) ?? []); // who made the key; budgets
  backed_up.set('public.balances', backed_up.get('public.balances')?.map((line) => `${line}\t0`) ?? []);
  backed_up.set('public.usage_sums', backed_up.get('public.usage_sums')?.map((line) => `${line}\tdefault`) ?? []);
  const calls = backed_up.get('public.chat_calls') ?? [];
  backed_up.set(
    'public.chat_calls',
    calls.map((line) => `${line}\t\\N\t\\N\t\\N\t\\N\t\\N\t\\N`),
  ); // the tools of a call, its end user, metadata, prices, error message and late record
  backed_up.set('public.files', backed_up.get('public.files')?.map((line) => `${line}\t\\N\t\\N`) ?? []); // name, sha256
  const deliveries = backed_up.get('public.deliveries')?.map((line) => `${line}\t\\N\t\\N\t\\N\tf`) ?? [];
  backed_up.set('public.deliveries', deliveries); // the place in a trace, the endpoint, its event, whether it is replayed
  backed_up.set('public.tasks', backed_up.get('public.tasks')?.map((line) => `${line}\t\\N`) ?? []); // places in traces
  backed_up.set('auth.user', backed_up.get('auth.user')?.map((line) => `${line}\t\\N`) ?? []); // the language
  backed_up.set('auth.member', backed_up.get('auth.member')?.map((line) => `${line}\t\\N`) ?? []); // the projects
  withLaterRules(there, backed_up);
  backed_up.set('public.accounts', backed_up.get('public.accounts')?.map((line) => `${line}\tt\tf`) ?? []);
  expect(there).toEqual(backed_up);
  expect(await pendingMigrations(db)).toEqual([]);
  const fresh = await openTestDatabase('migrated');
  expect(await schemaText(db)).toBe(await schemaText(fresh.db));

  const app = await makeApp(readConfig(env), { log: pino({ level: 'silent' }) });
  try {
    await startServer(app);
    const headers = { authorization: `Bearer ${key}` };
    const tasks = await (await fetch(`${app.base_url()}/v1/tasks`, { headers })).json();
    expect(tasks).toMatchObject({ data: [{ status: 'running' }, {}, {}, { status: 'succeeded' }] });
    const body = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }] };
    const options = { method: 'POST', headers: { ...headers, 'content-type': 'application/json' } };
    const answer = await fetch(`${app.base_url()}/v1/chat/completions`, { ...options, body: JSON.stringify(body) });
    expect(answer.status, await answer.text()).toBe(200);
    await expectExactBooks(app);
  } finally {
    await app.stop();
  }
  expect(readdirSync(join(place.path('data'), 'files')).length).toBeGreaterThan(0);
});

/**
 * Of keys: contents of chats, models, requests per minute and the last use; uses are noted since the restore; whether it is
 * limited, and the project of a playground.
 */
function withLaterRules(there: Map<string, string[]>, backed_up: Map<string, string[]>): void {
  const name = 'public.api_keys';
  backed_up.set(name, backed_up.get(name)?.map((line) => `${line}\t\\N\t\\N\t\\N\t\\N\tsince\tf\t\\N`) ?? []);
  there.set(name, there.get(name)?.map((line) => line.replace(/\t20\d\d-[^\t]+(?=\tf\t\\N$)/, '\tsince')) ?? []);
}

it('a backup that is older than that is refused, and says which version restores it', async () => {
  const older = copyBackup(folder, place.path('older'));
  changeManifest(older, ({ schema }) => ({ schema: { ...schema, migrations: schema.migrations.slice(0, -1) } }));
  await expect(checkBackup(older, quiet)).rejects.toThrow(
    'is of another version (0.1.0). Restore it with Medley 0.1.0 (commit 7689d1e), start this version there, and take another backup.',
  );
});
