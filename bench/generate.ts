/**
 * POST /v1/generate with everything switched on (key, window, schema, hold, ledger, job) beside the
 * same database call by pgbench; the way from creation to start on an idle service; how fast one
 * worker drains a backlog; memory. `npm run bench generate [-- --quick]`
 */
import { execFileSync, type ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Pool } from 'undici';
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import type { Connection } from '../src/embedded-postgres/embedded.ts';
import { checkBooks } from '../src/money/books.ts';
import { service_rules } from '../src/chat/books.ts';
import { cpuOf_us, cpuOfChildren_us } from './cpu.ts';
import { openHome } from './home.ts';
import { table, writeResults } from './report.ts';
import {
  base_yaml,
  port,
  quantile,
  residentMegabytes,
  startService,
  stopService,
  stopServices,
  type Service,
} from './service.ts';

const quick = process.argv.includes('--quick');
const warm_up_s = quick ? 2 : 30;
const measured_s = quick ? 3 : 15;
const rounds = quick ? 1 : 3;
const accounts = 120;
const keys_per_account = 5;
const pgbench = findPgbench();

type Bench = {
  db: Db;
  service: Service;
  postmaster: number;
  connection: Connection;
  keys: { account_id: string; key_id: string; text: string }[];
};

async function main(): Promise<void> {
  const home = await openHome();
  const { folder, embedded, leash } = home;
  writeFileSync(join(folder, 'medley.yaml'), base_yaml);
  const db = openDatabase({ connection: embedded.connection, connections_max: 4 });
  try {
    const service = { folder, database_url: embedded.url, leash };
    const first = await startService('all', service);
    const bench = {
      db,
      service,
      postmaster: embedded.pid,
      connection: embedded.connection,
      keys: await makeKeys(db),
    };
    const idle = await measureIdle(bench, first);
    await stopService(first);
    const api = await startService('api', service);
    const creates = await measureCreates(bench, api);
    await stopService(api);
    const drain = await measureDrain(bench); // last: its failures would pause the accounts
    const rows = [...creates, ...idle, ...drain];
    const books = await checkBooks(db, { full: true, more: service_rules });
    rows.push(['difference of the books', `${books.difference} (${books.entries} entries)`]);
    console.log(table([['what', 'figure'], ...rows]));
    if (!quick) writeResults('generate', `npm run bench generate`, [['what', 'figure'], ...rows]);
  } finally {
    stopServices();
    await db.close();
    await home.close();
  }
}

async function makeKeys(db: Db): Promise<Bench['keys']> {
  const now = new Date();
  const keys = [];
  for (let i = 0; i < accounts; i++) {
    const account = await createAccount(
      db,
      { name: `bench ${i}`, currency: 'USD', initial_credit: 1_000_000_000_000n },
      now,
    );
    for (let k = 0; k < keys_per_account; k++) {
      const { key, text } = await createKey(db, { account_id: account.id, name: 'bench', limit_month: null }, now);
      keys.push({ account_id: account.id, key_id: key.id, text });
    }
  }
  await db.query('create table bench_keys (n serial primary key, account_id text, key_id text)');
  await db.query('insert into bench_keys (account_id, key_id) select * from unnest($1::text[], $2::text[])', [
    keys.map((key) => key.account_id),
    keys.map((key) => key.key_id),
  ]);
  return keys;
}

/** Callers and rates: one row of the table per case. */
const cases = [
  { name: `creates/s, 64 connections, ${accounts} accounts`, connections: 64, hot: false },
  { name: `creates/s, 256 connections, ${accounts} accounts`, connections: 256, hot: false },
  { name: 'creates/s, 64 connections, one hot account', connections: 64, hot: true },
  { name: `creates/s, 1 connection, ${accounts} accounts`, connections: 1, hot: false },
];

/** Creates/s over HTTP and by pgbench, in alternating rounds; medians. */
async function measureCreates(bench: Bench, api: ChildProcess): Promise<string[][]> {
  await createFor(bench, warm_up_s * 1000, 64, { api });
  const results: Round[][] = cases.map(() => []);
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const [i, { connections, hot }] of cases.entries()) {
      const keys = hot ? bench.keys.slice(0, keys_per_account) : bench.keys;
      results[i]?.push(await createFor({ ...bench, keys }, measured_s * 1000, connections, { api }));
      await forget(bench.db);
    }
    if (pgbench) theirs.push(runPgbench(bench, 64));
    await forget(bench.db);
  }
  const medians = results.map((each) => each.toSorted((a, b) => a.rate - b.rate)[each.length >> 1]);
  const rows = cases.map(({ name }, i) => [name, show(medians[i])]);
  rows.push(['memory of the API process after that', `${residentMegabytes(api)} MB`]);
  if (pgbench) {
    rows.push(['pgbench, insert_task for one task, 64 clients', `${median(theirs).toFixed(0)}/s`]);
    rows.push(['ours : pgbench', `${((100 * (medians[0]?.rate ?? 0)) / median(theirs)).toFixed(0)} %`]);
  } else rows.push(['pgbench', 'not installed here']);
  return rows;
}

/** The last three: µs of CPU per create, which say more than the rate when the machine has other work. */
type Round = { rate: number; p50_ms: number; p99_ms: number; server_us: number; api_us: number; bench_us: number };

function show(round: Round | undefined): string {
  if (!round) return 'not measured';
  const { rate, p50_ms, p99_ms, server_us, api_us, bench_us } = round;
  const cpu = [server_us, api_us, bench_us].map((us) => us.toFixed(0)).join(' + ');
  return `${rate.toFixed(0)} (p50 / p99 ${p50_ms.toFixed(1)} / ${p99_ms.toFixed(1)} ms; CPU ${cpu} µs)`;
}

const succeeding = makeBody('bench');
const failing = makeBody('[[fail]] bench');

function makeBody(prompt: string): string {
  return JSON.stringify({ model: 'sandbox/image', input: { prompt, width: 64, height: 64 } });
}

async function createFor(
  bench: Bench,
  duration_ms: number,
  connections: number,
  { count = Number.POSITIVE_INFINITY, body = succeeding, api }: { count?: number; body?: string; api: ChildProcess },
): Promise<Round> {
  const pool = new Pool(`http://127.0.0.1:${port}`, { connections, pipelining: 1 });
  const latencies: number[] = [];
  const before = cpuOfAll(bench, api);
  const started_ms = performance.now();
  let next = 0;
  const loop = async () => {
    while (performance.now() - started_ms < duration_ms && next < count) {
      const key = bench.keys[next++ % bench.keys.length];
      const sent_ms = performance.now();
      const answer = await pool.request({
        path: '/v1/generate',
        method: 'POST',
        headers: { authorization: `Bearer ${key?.text}`, 'content-type': 'application/json' },
        body,
      });
      const text = await answer.body.text();
      if (answer.statusCode !== 202) throw new Error(`${answer.statusCode} ${text}`);
      latencies.push(performance.now() - sent_ms);
    }
  };
  await Promise.all(Array.from({ length: connections }, loop));
  const elapsed_s = (performance.now() - started_ms) / 1000;
  const after = cpuOfAll(bench, api);
  await pool.close();
  const each = (of: 'server_us' | 'api_us' | 'bench_us') => (after[of] - before[of]) / latencies.length;
  return {
    rate: latencies.length / elapsed_s,
    p50_ms: quantile(latencies, 0.5),
    p99_ms: quantile(latencies, 0.99),
    server_us: each('server_us'),
    api_us: each('api_us'),
    bench_us: each('bench_us'),
  };
}

function cpuOfAll({ postmaster }: Bench, api: ChildProcess): Pick<Round, 'server_us' | 'api_us' | 'bench_us'> {
  return { server_us: cpuOfChildren_us(postmaster), api_us: cpuOf_us(api.pid), bench_us: cpuOf_us(process.pid) };
}

/** The statement that the service sends, with random keys, by PostgreSQL's own load generator. */
function runPgbench(bench: Bench, clients: number): number {
  const script = join(bench.service.folder, 'create.sql');
  const pricing = '{"currency":"USD","rate":"1","rows":[{"unit":"image","amount":"0.01","per":1}]}';
  writeFileSync(
    script,
    `\\set n random(1, ${bench.keys.length})
select c.* from bench_keys k, insert_task(jsonb_build_object('account_id', k.account_id, 'key_id', k.key_id,
  'id', 'task_0' || left(translate(gen_random_uuid()::text, '-', ''), 25), 'model', 'sandbox/image', 'kind', 'image',
  'metadata', '{}', 'currency', 'USD', 'pricing', '${pricing}'::jsonb, 'held_units', '{"image":"1"}'::jsonb,
  'estimate', 10000, 'created_at', now(), 'deadline_at', now() + interval '1 hour'),
  '{"prompt":"bench"}', 25, null) c where k.n = :n;\n`,
  );
  const { host, port: database_port, user, password, database } = bench.connection;
  const words = ['-n', '-M', 'prepared', '-f', script, '-c', String(clients), '-j', '2', '-T', String(measured_s)];
  const output = execFileSync(
    pgbench ?? 'pgbench',
    [...words, '-h', host, '-p', String(database_port), '-U', user, database],
    {
      encoding: 'utf8',
      env: { ...process.env, PGPASSWORD: password },
    },
  );
  return Number(/tps = ([\d.]+)/.exec(output)?.[1]);
}

/** Ends what is open, so that the next round begins with an empty queue. */
async function forget(db: Db): Promise<void> {
  await db.query('truncate pgboss.job_common');
  await db.query('vacuum analyze');
}

/** A backlog and one worker: tasks that start and fail (no file), then small pictures. */
async function measureDrain(bench: Bench): Promise<string[][]> {
  const backlog = quick ? 1_000 : 10_000;
  const api = await startService('api', bench.service);
  await createFor(bench, 600_000, 64, { count: backlog, body: failing, api });
  await stopService(api);
  const before = await finished(bench.db);
  const started_ms = performance.now();
  const worker = await startService('worker', bench.service);
  const first_ms = performance.now();
  while ((await finished(bench.db)) - before < backlog && performance.now() - started_ms < 300_000) await sleep(100);
  const rate = ((await finished(bench.db)) - before) / ((performance.now() - first_ms) / 1000);
  const memory = residentMegabytes(worker);
  await stopService(worker);
  return [
    [`tasks/s drained by one worker (backlog of ${backlog}, run starts and fails: no file)`, rate.toFixed(0)],
    ['memory of the worker process after that', `${memory} MB`],
  ];
}

/**
 * One task at a time on an idle service: from its creation to the first attempt. The first ones after
 * the start are warm-up: code that never ran and connections not yet made are a matter of the start.
 */
async function measureIdle(bench: Bench, api: ChildProcess): Promise<string[][]> {
  const tasks = quick ? 100 : 300;
  let since = new Date();
  for (let i = -100; i < tasks; i++) {
    if (i === 0) since = new Date();
    await createFor(bench, 60_000, 1, { count: 1, api });
    await sleep(30);
  }
  const rows = await bench.db.query<{ ms: number }>(
    `select extract(epoch from a.created_at - t.created_at)::float8 * 1000 as ms
       from tasks t join attempts a on a.account_id = t.account_id and a.task_id = t.id where t.created_at > $1`,
    [since],
  );
  const waits = rows.map((row) => row.ms);
  return [
    [
      `idle create → start, ${waits.length} tasks (p50 / p99)`,
      `${quantile(waits, 0.5).toFixed(1)} / ${quantile(waits, 0.99).toFixed(1)} ms`,
    ],
  ];
}

async function finished(db: Db): Promise<number> {
  const rows = await db.query<{ n: number }>('select count(*)::int as n from tasks where completed_at is not null');
  return rows[0]?.n ?? 0;
}

function findPgbench(): string | undefined {
  try {
    return (
      execFileSync('sh', ['-c', 'ls /usr/lib/postgresql/*/bin/pgbench 2>/dev/null | tail -1 || command -v pgbench'], {
        encoding: 'utf8',
      }).trim() || undefined
    );
  } catch {
    return undefined;
  }
}

function median(values: number[]): number {
  return quantile(values, 0.5);
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

await main();
