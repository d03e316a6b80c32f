/**
 * The price of a running backup to calls: pairs of a hold and its settlement beside `medley backup` of a large database, beside
 * one snapshot that is held open for as long, as backups did before, and beside neither, in alternating windows.
 * `npm run bench backup [-- --entries 4000000] [-- --quick]`
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import { openConnection, openDatabase, type Db } from '../src/db/database.ts';
import { migrate } from '../src/db/migrate.ts';
import { newId } from '../src/lib/ids.ts';
import { checkBooks } from '../src/money/books.ts';
import { makeHoldBatcher } from '../src/money/holds.ts';
import { service_env, service_flags } from '../scripts/service-flags.mjs';
import { makeBigAccount } from './big-account.ts';
import { openHome, type Home } from './home.ts';
import { table, writeSections } from './report.ts';

const quick = process.argv.includes('--quick');
const entries = Number(process.argv[process.argv.indexOf('--entries') + 1]) || (quick ? 200_001 : 4_000_001);
const rounds = quick ? 1 : 9;
const window_ms = quick ? 3_000 : 6_000;
const callers = 32;

const ways = ['neither', 'a backup', 'a snapshot'] as const;
type Way = (typeof ways)[number];
/** `pages`: of the rows of money, that PostgreSQL looked at per pair. */
type Window = { pairs_per_s: number; pages: number };

type Bench = { db: Db; home: Home; wallet: { account_id: string; key_id: string }; snapshots_ms: number[] };

async function main(): Promise<void> {
  const home = await openHome({ shared_buffers: '512MB', max_wal_size: '4GB' });
  const db = openDatabase({ connection: home.embedded.connection, connections_max: 20, is_patient: true });
  try {
    await migrate(db);
    const { rows: of_account } = await makeBigAccount(db, { ledger_entries: entries, days: 60, end: new Date() });
    const rows = { ...of_account, ...(await makeSumsAndConversations(db)) };
    await db.query('vacuum analyze');
    const bench = { db, home, wallet: await makeWallet(db), snapshots_ms: [] };
    await measure(bench, 'neither', 2_000);
    const windows = new Map<Way, Window[]>(ways.map((way) => [way, []]));
    for (let round = 0; round < rounds; round++)
      for (const way of ways) windows.get(way)?.push(await measure(bench, way, window_ms));
    const whole = await wholeBackup(bench);
    const sections = [
      `${await sizeOf(db)} in PostgreSQL (${JSON.stringify(rows)}), fsync on. ${callers} callers settle on one account, micro-batched, in ${rounds} alternating rounds of ${window_ms / 1_000} s; everything shares the cores.`,
      table(rowsOf(windows)),
      whole,
      `Difference of the books at the end: ${(await checkBooks(db)).difference}.`,
    ];
    console.log(sections.join('\n\n'));
    if (!quick) writeSections('backup', `npm run bench backup -- --entries ${entries}`, sections);
  } finally {
    await db.close();
    await home.close();
  }
}

/** Makes what grows beside a ledger: hours of many keys and models, and items of conversations, which nothing can compress. */
async function makeSumsAndConversations(db: Db): Promise<{ sums: number; items: number }> {
  const counts = { sums: Math.floor(entries / 4), items: 30 * Math.floor(entries / 1_000) };
  const { id } = await createAccount(db, { name: 'other', currency: 'USD', initial_credit: 10n ** 9n }, new Date());
  await db.query(
    `insert into usage_sums (account_id, step, start, key_id, model, kind, charges, cost, units)
     select $1, 'hour', date_trunc('hour', now(), 'UTC') - i / 500 * interval '1 hour', 'key_' || i % 100, 'bench/model-' || i % 500 / 100,
            'chat', 12, 3456, '{"input_token": "9744", "output_token": "2940"}' from generate_series(0, $2::int - 1) i`,
    [id, counts.sums],
  );
  await db.query(
    `insert into conversations (account_id, id, content, items, size_bytes, json_bytes, next_place, created_at, used_at, expires_at)
     select $1, 'conv_' || i, '', 30, 61440, 61440, 30, now(), now(), now() + interval '30 days' from generate_series(1, $2::int) i`,
    [id, counts.items / 30],
  );
  await db.query(
    `insert into conversation_items (account_id, conversation_id, place, id, content, json_bytes)
     select $1, 'conv_' || i / 30 + 1, i % 30, 'msg_' || i, bytes, 2048 from generate_series(0, $2::int - 1) i
      cross join lateral (select decode(string_agg(md5(i::text || n::text), ''), 'hex') as bytes from generate_series(1, 128) n) b`,
    [id, counts.items],
  );
  return counts;
}

function rowsOf(windows: Map<Way, Window[]>): string[][] {
  const rows = [
    ['round', ...ways.map((way) => `pairs/s beside ${way} (pages per pair)`), 'backup / neither', 'snapshot / neither'],
  ];
  const ratios: [number, number][] = [];
  for (let round = 0; round < rounds; round++) {
    const [neither, backup, snapshot] = ways.map(
      (way) => windows.get(way)?.[round] ?? { pairs_per_s: NaN, pages: NaN },
    );
    if (!neither || !backup || !snapshot) continue;
    const ratio: [number, number] = [
      backup.pairs_per_s / neither.pairs_per_s,
      snapshot.pairs_per_s / neither.pairs_per_s,
    ];
    ratios.push(ratio);
    const figures = [neither, backup, snapshot].map(
      (each) => `${each.pairs_per_s.toFixed(0)} (${each.pages.toFixed(0)})`,
    );
    rows.push([`${round + 1}`, ...figures, ...ratio.map((each) => each.toFixed(2))]);
  }
  const median = (all: number[]) => all.toSorted((a, b) => a - b)[all.length >> 1]?.toFixed(2) ?? '';
  return [...rows, ['median', '', '', '', median(ratios.map(([a]) => a)), median(ratios.map(([, b]) => b))]];
}

async function makeWallet(db: Db): Promise<Bench['wallet']> {
  const now = new Date();
  const { id: account_id } = await createAccount(db, { name: 'hot', currency: 'USD', initial_credit: 10n ** 13n }, now);
  const { key } = await createKey(db, { account_id, name: 'hot', limit_month: 9n * 10n ** 12n }, now);
  return { account_id, key_id: key.id };
}

async function measure(bench: Bench, way: Way, for_ms: number): Promise<Window> {
  const { db, wallet } = bench;
  const beside = await begin(bench, way);
  const calls = makeHoldBatcher(db, () => new Date());
  let pairs = 0;
  let over = false;
  const caller = async () => {
    for (; !over; pairs++) {
      const ref = newId('chat');
      const expires_in_ms = 900_000;
      await calls.hold({ ...wallet, ref, amount: 20_000n, model: 'bench/assistant', kind: 'chat', expires_in_ms });
      const units = { input_token: '1234', output_token: '567' };
      const closed = await calls.close({ account_id: wallet.account_id, ref, cost: 12_345n, beyond_hold: true, units });
      if (closed.outcome !== 'settled') throw new Error(closed.outcome);
    }
  };
  const working = Array.from({ length: callers }, caller);
  const [from_ms, pages_from] = [performance.now(), await pagesRead(db)];
  await pause(for_ms);
  const [took_ms, pages] = [performance.now() - from_ms, (await pagesRead(db)) - pages_from];
  const window = { pairs_per_s: (1_000 * pairs) / took_ms, pages: pages / pairs };
  over = true;
  await Promise.all(working);
  await beside.end();
  await db.query('vacuum balances, budgets, open_holds, leases');
  console.log(way, window);
  return window;
}

/** Pages of the rows that each pair changes and of their indexes; a backup reads these tables once. */
async function pagesRead(db: Db): Promise<number> {
  await db.query('select pg_stat_force_next_flush()');
  const [row] = await db.query<{ pages: number }>(
    `select sum(heap_blks_hit + heap_blks_read + idx_blks_hit + idx_blks_read)::float8 as pages
       from pg_statio_user_tables where relname in ('balances', 'budgets', 'open_holds')`,
  );
  return row?.pages ?? 0;
}

async function begin(bench: Bench, way: Way): Promise<{ end: () => Promise<void> }> {
  if (way === 'neither') return { end: async () => undefined };
  if (way === 'a snapshot') {
    const client = await openConnection(bench.db, 'bench');
    await client.query('begin isolation level repeatable read read only');
    await client.query('select from accounts limit 1');
    return { end: () => client.end() };
  }
  const { child, folder } = startBackup(bench.home);
  const watch = watchSnapshots(bench);
  await watch.begun;
  return {
    end: async () => {
      if (child.exitCode !== null) throw new Error('the backup was over before its window');
      child.kill('SIGKILL');
      await once(child, 'exit');
      bench.snapshots_ms.push(await watch.end());
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function startBackup({ folder: home, embedded, leash }: Home): { child: ChildProcess; folder: string } {
  const folder = join(home, 'backup');
  const env = { ...service_env, ...process.env, DATABASE_URL: embedded.url, MEDLEY_DATA: join(home, 'files') };
  const script = join(import.meta.dirname, '../src/cli.ts');
  const child = spawn(process.execPath, [...service_flags, script, 'backup', folder], { env, stdio: 'inherit' });
  leash.hold(child);
  return { child, folder };
}

/** Looks at the snapshots of the backup; `end` answers the age of the oldest one that was seen. */
function watchSnapshots({ db }: Bench): { begun: Promise<void>; end: () => Promise<number> } {
  const begun = Promise.withResolvers<void>();
  let over = false;
  const watching = (async () => {
    let oldest_ms = 0;
    while (!over) {
      const [row] = await db.query<{ age_ms: number | null }>(
        `select max(extract(epoch from clock_timestamp() - xact_start) * 1000)::float8 as age_ms from pg_stat_activity
          where application_name = 'medley backup' and backend_xmin is not null`,
      );
      if (row?.age_ms != null) begun.resolve();
      oldest_ms = Math.max(oldest_ms, row?.age_ms ?? 0);
      await pause(20);
    }
    return oldest_ms;
  })();
  return {
    begun: begun.promise,
    end: () => {
      over = true;
      return watching;
    },
  };
}

async function wholeBackup(bench: Bench): Promise<string> {
  const started_ms = performance.now();
  const { child } = startBackup(bench.home);
  const watch = watchSnapshots(bench);
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`the backup ended with ${code}`);
  const took_s = ((performance.now() - started_ms) / 1_000).toFixed(0);
  const [alone, beside] = [await watch.end(), Math.max(...bench.snapshots_ms)].map((ms) => (ms / 1_000).toFixed(1));
  return `A whole backup alone took ${took_s} s. Its longest snapshot lasted ${alone} s, and ${beside} s beside the callers.`;
}

async function sizeOf(db: Db): Promise<string> {
  const [row] = await db.query<{ size: string }>('select pg_size_pretty(pg_database_size(current_database())) as size');
  return row?.size ?? '';
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

await main();
