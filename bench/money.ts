/**
 * Hold and settle, the pair that every chat call and every task costs, on a real PostgreSQL whose
 * commits wait for the disk: plain calls, micro-batched calls, and beside them pgbench running the
 * same SQL functions. Then `medley books` over all entries that this made.
 * `npm run bench money [-- --quick]`
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import type { EmbeddedPostgres } from '../src/embedded-postgres/embedded.ts';
import { migrate } from '../src/db/migrate.ts';
import { newId } from '../src/lib/ids.ts';
import { checkBooks } from '../src/money/books.ts';
import { close, hold, makeHoldBatcher, type CloseAnswer, type HoldOrLeased } from '../src/money/holds.ts';
import type { CloseRequest, HoldRequest } from '../src/money/holds.ts';
import { cpuOfChildren_us } from './cpu.ts';
import { openHome } from './home.ts';
import { table, writeSections } from './report.ts';

const quick = process.argv.includes('--quick');
const measured_ms = quick ? 700 : 2_000;
const warm_up_ms = quick ? 300 : 700;
const rounds = quick ? 1 : 3;
const accounts = 1_000;
/** Number of connections, as in the service (src/app.ts). */
const connections = 20;

type Wallet = { account_id: string; key_id: string };
type Bench = { db: Db; wallets: Wallet[]; folder: string; embedded: EmbeddedPostgres; pgbench: string | undefined };

/** Callers, wallets and the way of a case. */
type Case = { callers: number; wallets: 'many' | 'hot'; way: 'plain' | 'batched' | 'pgbench'; options?: BatchOptions };
type BatchOptions = { shards?: number; batch_max?: number };
/** `server_us`, `node_us`: CPU time per pair of PostgreSQL's processes and of this one; it tells more than the rate on a busy machine. */
type Round = { pairs_per_s: number; p50_ms?: number; p99_ms?: number; server_us?: number; node_us?: number };

async function main(): Promise<void> {
  const home = await openHome({ max_connections: '300' });
  const { folder, embedded } = home;
  const db = openDatabase({ connection: embedded.connection, connections_max: connections });
  try {
    const wallets = await makeWallets(db);
    const bench = { db, wallets, folder, embedded, pgbench: findPgbench() };
    const sections = [
      await serverLine(db, bench.pgbench),
      'Pairs (hold, then settle) per second; in brackets the p50 / p99 of the hold in ms; then the µs of CPU per pair of PostgreSQL + Node. Medians of the rounds.',
      table(await compareWays(bench)),
      'The batcher with other options, micro-batched.',
      table(await compareOptions(bench)),
      'The books over what this made.',
      table(await timeBooks(bench)),
    ];
    console.log(sections.join('\n\n'));
    if (!quick) writeSections('money', 'npm run bench money', sections);
  } finally {
    await db.close();
    await home.close();
  }
}

async function makeWallets(db: Db): Promise<Wallet[]> {
  const now = new Date();
  await migrate(db);
  const wallets = await Promise.all(
    Array.from({ length: accounts }, async (_, i) => {
      const account = { name: `bench ${i}`, currency: 'USD', initial_credit: 1_000_000_000_000n };
      const { id: account_id } = await createAccount(db, account, now);
      const limit_month = 900_000_000_000n;
      const { key } = await createKey(db, { account_id, name: 'bench', limit_month }, now);
      return { account_id, key_id: key.id };
    }),
  );
  await db.query('create table bench_wallets (n serial primary key, account_id text, key_id text)');
  await db.query('insert into bench_wallets (account_id, key_id) select * from unnest($1::text[], $2::text[])', [
    wallets.map((wallet) => wallet.account_id),
    wallets.map((wallet) => wallet.key_id),
  ]);
  await db.query('vacuum analyze');
  return wallets;
}

async function serverLine(db: Db, pgbench: string | undefined): Promise<string> {
  const rows = await db.query<{ line: string }>(
    `select 'PostgreSQL ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')
            || ', synchronous_commit ' || current_setting('synchronous_commit') as line`,
  );
  const version = pgbench ? execFileSync(pgbench, ['--version'], { encoding: 'utf8' }).trim() : 'no pgbench here';
  return `${rows[0]?.line}; ${version}; ${connections} connections, ${rounds} alternating rounds of ${measured_ms} ms.`;
}

async function compareWays(bench: Bench): Promise<string[][]> {
  const ways = ['plain', 'batched', 'pgbench'] as const;
  const cases: Case[] = (['many', 'hot'] as const).flatMap((wallets) =>
    [1, 32, 256].flatMap((callers) => ways.map((way): Case => ({ callers, wallets, way }))),
  );
  const medians = await runAll(bench, cases);
  const rows = [['accounts', 'callers', 'plain', 'micro-batched', 'pgbench, plain']];
  for (let i = 0; i < cases.length; i += ways.length) {
    const { wallets, callers } = cases[i] ?? { wallets: 'many', callers: 0 };
    const figures = medians.slice(i, i + ways.length);
    rows.push([wallets === 'many' ? `${accounts}` : 'one, hot', `${callers}`, ...figures.map(show)]);
  }
  return rows;
}

async function compareOptions(bench: Bench): Promise<string[][]> {
  const some = (wallets: Case['wallets'], callers: number, options: BatchOptions): Case => ({
    callers,
    wallets,
    way: 'batched',
    options,
  });
  const cases = [
    some('many', 256, { shards: 1 }),
    some('many', 256, { shards: 2 }),
    some('many', 32, { shards: 1 }),
    some('many', 32, { shards: 2 }),
    some('many', 1_024, { batch_max: 128 }),
    some('many', 1_024, { batch_max: 256 }),
    some('many', 1_024, { batch_max: 1_024 }),
    some('many', 1_024, { batch_max: 256, shards: 2 }),
    some('hot', 1_024, { batch_max: 256 }),
    some('hot', 1_024, { batch_max: 1_024 }),
  ];
  const medians = await runAll(bench, cases);
  const rows = cases.map(({ wallets, callers, options }, i) => [
    wallets === 'many' ? `${accounts}` : 'one, hot',
    `${callers}`,
    `${options?.shards ?? 'as it is'}`,
    `${options?.batch_max ?? 'as it is'}`,
    show(medians[i]),
  ]);
  return [['accounts', 'callers', 'shards', 'batch_max', 'pairs/s'], ...rows];
}

/** Every case once per round, so that a slow minute of the machine falls on all of them. */
async function runAll(bench: Bench, cases: Case[]): Promise<(Round | undefined)[]> {
  const results: Round[][] = cases.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, each] of cases.entries()) {
      const result = each.way === 'pgbench' ? runPgbench(bench, each) : await runCallers(bench, each);
      if (result) results[i]?.push(result);
      process.stderr.write('.');
    }
  }
  process.stderr.write('\n');
  return results.map((each) => each.toSorted((a, b) => a.pairs_per_s - b.pairs_per_s)[each.length >> 1]);
}

type Calls = {
  hold(request: HoldRequest): Promise<HoldOrLeased>;
  close(request: CloseRequest): Promise<CloseAnswer>;
};

async function runCallers({ db, wallets, embedded }: Bench, each: Case): Promise<Round> {
  const plain: Calls = {
    hold: (request) => hold(db, request, new Date()),
    close: (request) => close(db, request, new Date()),
  };
  const calls = each.way === 'plain' ? plain : makeHoldBatcher(db, () => new Date(), each.options);
  const latencies: number[] = [];
  let pairs = 0;
  let next = 0;
  let over = false;
  const caller = async () => {
    while (!over) {
      const wallet = wallets[each.wallets === 'hot' ? 0 : (next++ * 7) % wallets.length];
      const started_ms = performance.now();
      await onePair(calls, wallet, () => latencies.push(performance.now() - started_ms));
      pairs += 1;
    }
  };
  const callers = Array.from({ length: each.callers }, caller);
  await pause(warm_up_ms);
  latencies.length = 0;
  pairs = 0;
  const from_ms = performance.now();
  const [server_from_us, node_from] = [cpuOfChildren_us(embedded.pid), process.cpuUsage()];
  await pause(measured_ms);
  const node = process.cpuUsage(node_from);
  const round = {
    pairs_per_s: (1_000 * pairs) / (performance.now() - from_ms),
    ...quantiles(latencies),
    server_us: (cpuOfChildren_us(embedded.pid) - server_from_us) / pairs,
    node_us: (node.user + node.system) / pairs,
  };
  over = true;
  await Promise.all(callers);
  return round;
}

async function onePair(calls: Calls, wallet: Wallet | undefined, onHeld: () => void): Promise<void> {
  if (!wallet) throw new Error('there are no wallets');
  const ref = newId('chat');
  const expires_at = new Date(Date.now() + 900_000);
  const request = { ...wallet, ref, amount: 20_000n, model: 'bench/assistant', kind: 'chat', expires_at };
  const held = await calls.hold(request);
  onHeld();
  const units = { input_token: '1234', output_token: '567' };
  const closed = await calls.close({ account_id: wallet.account_id, ref, cost: 12_345n, beyond_hold: true, units });
  if (held.outcome !== 'held' || closed.outcome !== 'settled') throw new Error(`${held.outcome}, ${closed.outcome}`);
}

/** The same functions with the same arguments; one script run is one pair. */
function runPgbench({ pgbench, folder, embedded }: Bench, each: Case): Round | undefined {
  if (!pgbench) return undefined;
  const script = join(folder, 'pair.sql');
  const n = each.wallets === 'hot' ? '1' : ':n';
  writeFileSync(
    script,
    `\\set n random(1, ${accounts})
\\set r random(1, 1000000000000000000)
select h.* from bench_wallets w, hold_money(now(), now(), jsonb_build_object('account_id', w.account_id, 'key_id', w.key_id,
  'ref', 'chat_0123456' || :r, 'amount', 20000, 'model', 'bench/assistant', 'kind', 'chat', 'expires_in_ms', 900000), null) h
  where w.n = ${n};
select c.* from bench_wallets w, close_hold(now(), jsonb_build_object('account_id', w.account_id,
  'ref', 'chat_0123456' || :r, 'cost', 12345, 'beyond_hold', true,
  'units', '{"input_token":"1234","output_token":"567"}'::jsonb)) c where w.n = ${n};\n`,
  );
  const { host, port, user, password, database } = embedded.connection;
  // Its clock runs while it connects: 256 clients take seconds for that on a busy machine.
  const seconds = Math.ceil((measured_ms + warm_up_ms) / 1_000) + Math.ceil(each.callers / 128);
  const words = ['-n', '-M', 'prepared', '-f', script, '-c', `${each.callers}`, '-j', '2', '-T', `${seconds}`];
  const output = execFileSync(pgbench, [...words, '-h', host, '-p', `${port}`, '-U', user, database], {
    encoding: 'utf8',
    env: { ...process.env, PGPASSWORD: password },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return { pairs_per_s: Number(/tps = ([\d.]+)/.exec(output)?.[1]) };
}

async function timeBooks({ db, wallets }: Bench): Promise<string[][]> {
  const timed = async (name: string, full: boolean) => {
    const started_ms = performance.now();
    const report = await checkBooks(db, { full });
    const elapsed_ms = performance.now() - started_ms;
    return [name, `${report.entries}`, `${elapsed_ms.toFixed(0)} ms`, report.difference];
  };
  const rows = [await timed('full', true)];
  const batcher = makeHoldBatcher(db, () => new Date());
  for (let i = 0; i < 20; i++) {
    const chosen = Array.from({ length: 250 }, (_, j) => wallets[(i * 250 + j) % wallets.length]);
    await Promise.all(chosen.map((wallet) => onePair(batcher, wallet, () => undefined)));
  }
  rows.push(await timed('incremental, 10,000 new entries', false), await timed('incremental, nothing new', false));
  return [['run', 'entries', 'time', 'difference'], ...rows];
}

function show(round: Round | undefined): string {
  if (!round) return 'not installed here';
  const rate = Math.round(round.pairs_per_s).toLocaleString('en');
  const { p50_ms, p99_ms, server_us, node_us } = round;
  if (p50_ms === undefined || p99_ms === undefined || server_us === undefined || node_us === undefined) return rate;
  return `${rate} (${p50_ms.toFixed(1)} / ${p99_ms.toFixed(1)}) ${server_us.toFixed(0)} + ${node_us.toFixed(0)} µs`;
}

function quantiles(values: number[]): { p50_ms: number; p99_ms: number } {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50_ms: at(0.5), p99_ms: at(0.99) };
}

function findPgbench(): string | undefined {
  try {
    const command = 'ls /usr/lib/postgresql/*/bin/pgbench 2>/dev/null | tail -1 | grep . || command -v pgbench';
    return execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim() || undefined;
  } catch {
    return undefined;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

await main();
