/**
 * Every list, report and page over an account without a past, and over large ones: what an answer takes over HTTP, and
 * which statements are slow. `npm run bench growth [-- --sizes 1000000,10000000] [-- --quick]`
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import { makeLoginLink } from '../src/accounts/sign-in/login-links.ts';
import { ownerOf } from '../src/accounts/members.ts';
import { makeInvoices } from '../src/billing/invoices.ts';
import { service_rules } from '../src/chat/books.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { checkBooks } from '../src/money/books.ts';
import { reconcile } from '../src/money/reconciliation.ts';
import { addUpUsage } from '../src/money/usage.ts';
import { systemClock } from '../src/lib/clock.ts';
import { common_model, makeBigAccount, rare_model, type BigAccount } from './big-account.ts';
import { openHome } from './home.ts';
import { table, writeSections } from './report.ts';
import { port, startService, stopService, stopServices } from './service.ts';

const quick = process.argv.includes('--quick');
const sizes = sizesIn(process.argv) ?? (quick ? [2_001, 20_001] : [2_001, 1_000_001, 10_000_001]);
const days = 60;
const rounds = quick ? 3 : 9;
/** An answer that takes longer is measured less often. */
const slow_ms = 1_000;
const day_ms = 86_400_000;
const url = `http://127.0.0.1:${port}`;

const yaml = `
version: 1
storage: { shared: true }
limits: { generate_per_minute: 1000000, chat_per_minute: 1000000, other_per_minute: 1000000, failed_per_24h: 1000000 }
billing: { issuer: { name: Bench } }
`;

/** The target: times that of a new account, and at most so long. */
const ratio_max = 1.5;
const answer_ms_max = 100;

function sizesIn(words: readonly string[]): number[] | undefined {
  const at = words.indexOf('--sizes');
  return at < 0 ? undefined : (words[at + 1] ?? '').split(',').map(Number);
}

type Measured = Map<string, number>;

/** Steps of upkeep that nobody waits for, beside the answers. */
type Upkeep = Map<string, number>;

async function main(): Promise<void> {
  const home = await openHome({
    fsync: 'off',
    max_wal_size: '8GB',
    session_preload_libraries: 'auto_explain',
    'auto_explain.log_min_duration': '40',
  });
  const { folder, embedded, leash } = home;
  writeFileSync(join(folder, 'medley.yaml'), yaml);
  const db = openDatabase({ connection: embedded.connection, connections_max: 4, is_patient: true });
  try {
    const api = await startService('api', { folder, database_url: embedded.url, leash });
    const columns: { name: string; measured: Measured; upkeep: Upkeep }[] = [];
    const sections: string[] = [];
    for (const size of [0, ...sizes]) {
      const { account, upkeep } = size === 0 ? await emptyAccount(db) : await filledAccount(db, size);
      console.log(size, account.rows, upkeep);
      columns.push({
        name: size === 0 ? 'empty' : size.toLocaleString('en'),
        measured: await measure(db, account),
        upkeep,
      });
      if (size > 0) sections.push(await tablesSection(db, size, account));
    }
    await stopService(api);
    const books = await checkBooks(db, { full: true, more: service_rules });
    const rows = rowsOf(columns);
    console.log(table(rows));
    console.log(slowSection(folder));
    if (!quick) {
      writeSections('growth', 'npm run bench growth', [
        introduction(columns),
        table(rows),
        slowSection(folder),
        ...sections,
        `Difference of the books at the end: ${books.difference} (${books.entries} entries).`,
      ]);
    }
  } finally {
    stopServices();
    await db.close();
    await home.close();
  }
}

async function emptyAccount(db: Db): Promise<{ account: BigAccount; upkeep: Upkeep }> {
  const now = new Date();
  const { id } = await createAccount(db, { name: 'empty', currency: 'USD', initial_credit: 10n ** 9n }, now);
  const { key, text } = await createKey(db, { account_id: id, name: 'usual', limit_month: null }, now);
  const rows = { ledger: 1, tasks: 0, chats: 0, deliveries: 0 };
  const account = { account_id: id, key: text, key_id: key.id, rare_key_id: key.id, rows };
  return { account, upkeep: await keepUp(db) };
}

async function filledAccount(db: Db, size: number): Promise<{ account: BigAccount; upkeep: Upkeep }> {
  const account = await makeBigAccount(db, { ledger_entries: size, days, end: new Date() });
  await queueTasks(account);
  await db.query('vacuum analyze');
  return { account, upkeep: await keepUp(db) };
}

/** A few that wait: no worker runs. */
async function queueTasks({ key }: BigAccount): Promise<void> {
  for (let i = 0; i < 12; i++) {
    const response = await fetch(`${url}/v1/generate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox/image', input: { prompt: 'bench', width: 64, height: 64 } }),
    });
    if (response.status !== 202) throw new Error(`a task was answered ${response.status}: ${await response.text()}`);
    await response.text();
  }
}

/** Does what the service's scheduled jobs do. */
async function keepUp(db: Db): Promise<Upkeep> {
  const month = new Date(Date.now() - 31 * day_ms).toISOString().slice(0, 7);
  const issuer = { name: 'Bench', address: '', tax_id: '', series: 'MED' };
  const upkeep: Upkeep = new Map();
  const step = async (name: string, work: () => Promise<unknown>) => {
    const started_ms = performance.now();
    await work();
    upkeep.set(name, performance.now() - started_ms);
  };
  const check = () => reconcile(db, { clock: systemClock, more: service_rules });
  await step('adding up the charges of all entries', () => addUpUsage(db));
  await step('invoices of a month', () => makeInvoices(db, { issuer, month, now: new Date() }));
  await step('the first check of the books', check);
  await step('the next one', check);
  return upkeep;
}

/** Milliseconds of every answer, by its path: the lower quartile, since other work of the machine only adds. */
async function measure(db: Db, account: BigAccount): Promise<Measured> {
  const cookie = await signIn(db, account.account_id);
  const measured: Measured = new Map();
  for (const [name, path] of await paths(db, account)) {
    const headers: Record<string, string> = path.startsWith('/v1')
      ? { authorization: `Bearer ${account.key}` }
      : { cookie };
    const times: number[] = [];
    for (let round = 0; round < rounds + 2; round++) {
      const started_ms = performance.now();
      const response = await fetch(url + path, { headers });
      await response.arrayBuffer();
      if (response.status !== 200 && response.status !== 503)
        throw new Error(`${path} was answered ${response.status}`);
      times.push(response.status === 503 ? Number.POSITIVE_INFINITY : performance.now() - started_ms);
      if ((times.at(-1) ?? 0) > slow_ms && round > 1) break;
    }
    const warm = times.slice(2).toSorted((a, b) => a - b);
    measured.set(name, warm[warm.length >> 2] ?? Number.NaN);
  }
  return measured;
}

/** Signs the owner of an account in, who is an operator, and returns the session's cookie. */
async function signIn(db: Db, account_id: string): Promise<string> {
  const now = new Date();
  const user_id = await ownerOf(db, account_id, now);
  await db.query('update auth."user" set "isOperator" = true where id = $1', [user_id]);
  const token = new URL(await makeLoginLink(db, url, user_id, now)).searchParams.get('token');
  const response = await fetch(`${url}/auth/sign-in/link`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: url, 'sec-fetch-site': 'same-origin' },
    body: JSON.stringify({ token }),
  });
  if (response.status !== 200) throw new Error(`signing in was answered ${response.status}: ${await response.text()}`);
  return response.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ');
}

type Path = [name: string, path: string];

/** Parts of a path that differ from account to account, and their names in the table. */
type Shown = [value: string, name: string];

async function paths(db: Db, account: BigAccount): Promise<Path[]> {
  const { account_id, rare_key_id } = account;
  const month = new Date(Date.now() - 31 * day_ms).toISOString().slice(0, 7);
  const long_ago = new Date(Date.now() - 20 * day_ms).toISOString();
  const [task, chat] = await Promise.all(
    ['tasks', 'chat_calls'].map(async (from) => {
      const rows = await db.query<{ id: string }>(
        `select id from ${from} where account_id = $1 order by id offset $2 limit 1`,
        [account_id, Math.floor(account.rows.tasks / 3)],
      );
      return rows[0]?.id ?? '';
    }),
  );
  const shown: Shown[] = [
    [account_id, '{account}'],
    [rare_key_id, 'rare'],
    [month, 'the one before'],
    [long_ago, '20 days ago'],
    ...[task, chat].flatMap((id): Shown[] => (id ? [[id, '{id}']] : [])),
  ];
  const under = (name: string, base: string, each: readonly string[]) =>
    each.map((path): Path => {
      const text = shown.reduce((words, [value, short]) => words.replaceAll(value, short), path);
      return [`${name}${text}`, base + path];
    });
  return [
    ...under('GET ', '', apiPaths({ task, chat, long_ago })),
    ...under('page ', `/dash/accounts/${account_id}`, pagePaths({ task, chat, long_ago, rare_key_id })),
    ...under('operator ', '/dash/admin', operatorPaths({ account_id, month })),
  ];
}

type Things = { task: string | undefined; chat: string | undefined; long_ago: string };

function apiPaths({ task, chat, long_ago }: Things): string[] {
  const statuses = ['queued', 'running', 'succeeded', 'failed'].map((status) => `?status=${status}`);
  const models = [common_model, rare_model, 'unknown'].map((model) => `?model=${model}`);
  const both = `?status=failed&model=${rare_model}`;
  const metadata = ['?metadata[order]=17', '?metadata[project]=p17'];
  const times = [`?created_before=${long_ago}`, `?created_after=${long_ago}`];
  const places = task ? [`?after=${task}`, `?before=${task}`, `/${task}`] : [];
  const types = ['topup', 'hold', 'release', 'charge', 'adjustment'].map((type) => `?type=${type}`);
  return [
    '/v1/balance',
    '/v1/key',
    ...['', '?limit=100', ...statuses, ...models, both, ...metadata, ...times, ...places].map(
      (end) => `/v1/tasks${end}`,
    ),
    ...(chat ? [`/v1/chat/${chat}`] : []),
    ...['', '?limit=100', ...types, '?after=txn_1000'].map((end) => `/v1/balance/transactions${end}`),
    ...['', '?group_by=day,model', '?group_by=hour,key'].map((end) => `/v1/usage${end}`),
    '/v1/files',
    '/v1/videos',
  ];
}

function pagePaths({ task, chat, long_ago, rare_key_id }: Things & { rare_key_id: string }): string[] {
  const filters = [`?model=${rare_model}`, `?key=${rare_key_id}`, `?to=${long_ago}`];
  const types = ['topup', 'adjustment', 'release'].map((type) => `?type=${type}`);
  return [
    '/home',
    '/balance',
    '/choices',
    ...['', '?status=failed', '?status=running', '?source=playground', ...filters].map((end) => `/tasks${end}`),
    ...['', '?outcome=failed', '?outcome=ok', ...filters].map((end) => `/chats${end}`),
    ...(task ? [`/tasks/${task}`] : []),
    ...(chat ? [`/chats/${chat}`] : []),
    '/usage',
    '/usage?group=key',
    ...['', ...types, `?to=${long_ago}`].map((end) => `/ledger${end}`),
    '/billing',
    '/invoices',
    '/keys',
    '/webhooks',
    '/team',
    ...['', '?state=dropped', '?state=retrying'].map((end) => `/deliveries${end}`),
  ];
}

function operatorPaths({ account_id, month }: { account_id: string; month: string }): string[] {
  return [
    '/overview',
    '/models',
    '/failures',
    '/queue',
    '/audit',
    '/accounts',
    `/accounts/${account_id}`,
    ...['', '?by=day', '?by=account', '?by=route', `?month=${month}`].map((end) => `/margins${end}`),
    ...['', '?state=dropped', '?state=waiting'].map((end) => `/deliveries${end}`),
  ];
}

/** The second column is the measure: an account that is new, but has a full page of everything. */
function rowsOf(columns: readonly { name: string; measured: Measured; upkeep: Upkeep }[]): string[][] {
  const [small] = columns.slice(1);
  const last = columns.at(-1);
  const header = ['answer, ms', ...columns.map(({ name }) => name), 'largest : small', 'target'];
  const names = [...(last?.measured.keys() ?? [])];
  const shown = (ms: number | undefined) => (ms === undefined ? '' : Number.isFinite(ms) ? ms.toFixed(1) : 'gave up');
  const lines = names.map((name) => {
    const [first = Number.NaN, largest = Number.NaN] = [small?.measured.get(name), last?.measured.get(name)];
    const ratio = largest / first;
    const verdict = largest > answer_ms_max ? 'missed' : ratio > ratio_max ? `≤ ${answer_ms_max} ms` : 'met';
    return [name, ...columns.map(({ measured }) => shown(measured.get(name))), ratio.toFixed(1), verdict];
  });
  const upkeep = [...(last?.upkeep.keys() ?? [])].map((name) => {
    return [`upkeep: ${name}`, ...columns.map((column) => shown(column.upkeep.get(name))), '', ''];
  });
  return [header, ...lines, ...upkeep];
}

function introduction(columns: readonly { name: string }[]): string {
  return `One account's past is spread over ${days} days: of its calls a fifth are tasks, two fifths chat calls with a record, two fifths chat calls whose record is gone. Columns: entries of its ledger (${columns.map(({ name }) => name).join(', ')}); what is larger lies beside what is smaller in one database. Over HTTP, one at a time, the lower quartile of ${rounds}, with PostgreSQL's default settings of Medley (128 MB of shared buffers) and the process on the same machine. The target is ${ratio_max} times the account of 2,001 entries, which has a full page of everything, and ${answer_ms_max} ms.`;
}

async function tablesSection(db: Db, size: number, account: BigAccount): Promise<string> {
  const rows = await db.query<{ name: string; count: bigint; table: string; indexes: string; each: string }>(
    `select c.relname as name, c.reltuples::bigint as count, pg_size_pretty(pg_table_size(c.oid)) as table,
            pg_size_pretty(pg_indexes_size(c.oid)) as indexes,
            round(pg_total_relation_size(c.oid) / c.reltuples::numeric)::text as each
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
      where c.relkind = 'r' and n.nspname = 'public' and c.reltuples > 100 order by pg_total_relation_size(c.oid) desc limit 12`,
  );
  const lines = rows.map(({ name, count, table: bytes, indexes, each }) => [name, String(count), bytes, indexes, each]);
  return `## Tables at ${size.toLocaleString('en')} entries (${account.rows.tasks} tasks, ${account.rows.chats} chat records)\n\n${table([['table', 'rows', 'itself', 'indexes', 'bytes per row'], ...lines])}`;
}

/** Tells what auto_explain wrote of statements above its limit: the first line of each, and how it read its largest table. */
function slowSection(folder: string): string {
  const log = readFileSync(join(folder, 'data', 'postgres', 'postgres.log'), 'utf8');
  const slowest = new Map<string, { ms: number; scan: string }>();
  for (const [, ms = '', text = ''] of log.matchAll(
    /duration: ([\d.]+) ms {2}plan:\n([\s\S]*?)(?=\n\d{4}-\d\d-\d\d |$)/g,
  )) {
    const [statement = '', plan = ''] = text.replace(/^\tQuery Text: /, '').split(/\n\t(?=[A-Z][^\n]*\(cost=)/, 2);
    if (!/^\s*(with|select)/i.test(statement)) continue;
    const name = statement.replaceAll(/\s+/g, ' ').slice(0, 110);
    const scan = [
      ...plan.matchAll(/((?:Seq|Index|Index Only|Bitmap Heap) Scan(?: Backward)?(?: using \w+)? on \w+)/g),
    ].map((each) => each[1]);
    if (Number(ms) > (slowest.get(name)?.ms ?? 0))
      slowest.set(name, { ms: Number(ms), scan: [...new Set(scan)].slice(0, 4).join('; ') });
  }
  const rows = [...slowest].toSorted((a, b) => b[1].ms - a[1].ms).slice(0, 25);
  return `## Statements above 40 ms, by their plans\n\n${table([['statement', 'slowest, ms', 'reads'], ...rows.map(([name, { ms, scan }]) => [name.replaceAll('|', '\\|'), ms.toFixed(0), scan])])}`;
}

await main();
