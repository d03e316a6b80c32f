/**
 * One, two and four API nodes behind a round-robin balancer, on the same cores, in alternating turns: rate, CPU per call
 * of the nodes and of PostgreSQL, and leases granted and recalled. `npm run scale [-- --quick] [--only hot]`
 */
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { availableParallelism, loadavg } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { service_rules } from '../src/chat/books.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { checkBooks } from '../src/money/books.ts';
import { startBalancer, type BalancerProcess } from './balancer.ts';
import { startLoader, type Load, type Loader } from './chat-load.ts';
import { ask, askGenerate, makeKeys, startUpstream, yamlOf } from './chat-places.ts';
import { cpuOf_us, cpuOfChildren_us, machineTime, stolenShare } from './cpu.ts';
import { openHome } from './home.ts';
import { makeLeash } from './leash.ts';
import { table, writeSections } from './report.ts';
import { port, quantile, startService, stopService, stopServices } from './service.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, only: { type: 'string' } } });
const { quick, only } = values;
const counts = [1, 2, 4];
const warm_up_ms = quick ? 1_000 : 10_000;
/** Nodes that were not asked in the turn before get their leases, and what they compiled is warm again. */
const run_up_ms = quick ? 200 : 600;
const turn_ms = quick ? 700 : 2_500;
/** Four nodes at this rate leave a small machine time to sleep. */
const paced_per_s = 200;
const rounds = quick ? 2 : 5;

/** `per_s`: of each node, at a fixed rate; else as fast as answers come. */
type Case = { name: string; connections: number; requests: string[]; per_s?: number };

type Stage = {
  db: Db;
  postmaster: number;
  balancer: BalancerProcess;
  loader: Loader;
  nodes: ChildProcess[];
  cases: Case[];
};

async function main(): Promise<void> {
  const leash = makeLeash();
  const upstream = await startUpstream(leash);
  const loader = startLoader();
  const balancer = await startBalancer();
  for (const child of [loader.child, balancer.child]) leash.hold(child);
  const home = await openHome({}, leash);
  const { folder, embedded } = home;
  writeFileSync(join(folder, 'medley.yaml'), yamlOf(upstream.port, 10));
  const db = openDatabase({ connection: embedded.connection, connections_max: 8, is_patient: true });
  try {
    const nodes = [];
    for (const [i] of Array.from({ length: Math.max(...counts) }).entries())
      nodes.push(await startService('api', { folder, database_url: embedded.url, leash }, [], port + i));
    const cases = await casesOf(db);
    await countLeases(db);
    const stage = { db, postmaster: embedded.pid, balancer, loader, nodes, cases };
    const sections = await measure(stage);
    console.error(sections.join('\n\n'));
    for (const node of nodes) await stopService(node);
    sections.push(await sizeOf(db));
    const books = await checkBooks(db, { full: true, more: service_rules });
    sections.push(`Difference of the books: ${books.difference} (${books.entries} entries).`);
    console.log(sections.join('\n\n'));
    if (!quick && only === undefined) writeSections('scale', 'npm run scale', sections);
    if (books.difference !== '0.000000') throw new Error('the books differ');
  } finally {
    stopServices();
    for (const { child } of [upstream, loader, balancer]) child.kill('SIGKILL');
    await db.close();
    await home.close();
  }
}

async function casesOf(db: Db): Promise<Case[]> {
  const { shared, hot } = await makeKeys(db);
  const chat = (keys: readonly string[]) => keys.map((key) => ask('completions', 'bench/completions', { key }));
  const all = [
    { name: 'chat, 600 keys of 120 accounts', connections: 32, requests: chat(shared) },
    { name: 'chat, 600 keys of 120 accounts', connections: 256, requests: chat(shared) },
    { name: 'chat, one hot account', connections: 256, requests: chat(hot) },
    { name: 'generate, 600 keys of 120 accounts', connections: 64, requests: shared.map(askGenerate) },
    {
      name: `chat, 600 keys, ${paced_per_s}/s for each node`,
      connections: 64,
      requests: chat(shared),
      per_s: paced_per_s,
    },
    {
      name: `chat, one hot account, ${paced_per_s}/s for each node`,
      connections: 64,
      requests: chat(hot),
      per_s: paced_per_s,
    },
  ];
  return all.filter(({ name }) => only === undefined || name.includes(only));
}

const events = ['money_granted', 'money_recalled', 'limits_granted', 'limits_recalled'] as const;

/** Counts what is granted and recalled by a trigger of the bench: some µs for each lease, of which few calls need one. */
async function countLeases(db: Db): Promise<void> {
  for (const event of events) await db.query(`create sequence bench_${event}`);
  await db.query(`create function bench_count() returns trigger language plpgsql as $$
    declare v_of text := case new.account_id when '' then 'limits' else 'money' end;
    begin
      if new.node_id = '' then
        perform nextval('bench_' || v_of || '_recalled');
      elsif tg_op = 'INSERT' or new.ends_at > old.ends_at then
        perform nextval('bench_' || v_of || '_granted');
      end if;
      return null;
    end $$`);
  await db.query(
    `create trigger bench_count after insert or update on leases for each row execute function bench_count()`,
  );
}

/** Bytes that a call leaves on the disk, indexes and all. */
async function sizeOf(db: Db): Promise<string> {
  const [row] = await db.query<{ ledger: number; records: number }>(
    `select pg_total_relation_size('ledger_entries')::float8 / count(*) as ledger,
            pg_total_relation_size('chat_calls')::float8 / count(*) as records from chat_calls`,
  );
  const { ledger = 0, records = 0 } = row ?? {};
  return `A chat call leaves ${ledger.toFixed(0)} bytes in the ledger and ${records.toFixed(0)} in the records of calls, indexes included.`;
}

type Counters = {
  nodes_us: number;
  server_us: number;
  balancer_us: number;
  granted: number;
  recalled: number;
  commits: number;
  wal_bytes: number;
};
type Turn = { load: Load } & Counters;

async function measure(stage: Stage): Promise<string[]> {
  const { cases } = stage;
  const began = machineTime();
  for (const one of cases) await runFor(stage, one, Math.max(...counts), warm_up_ms);
  const results = cases.map(() => counts.map((): Turn[] => []));
  for (let round = 0; round < rounds; round++) {
    console.error(`round ${round + 1} of ${rounds}`);
    for (const [c, one] of cases.entries()) {
      const order = counts.map((count, i) => ({ count, i }));
      for (const { count, i } of round % 2 === 0 ? order : order.toReversed())
        results[c]?.[i]?.push(await runTurn(stage, one, count));
      await stage.db.query('truncate pgboss.job_common'); // so that creating begins with an empty queue again
    }
    await stage.db.query('vacuum analyze');
  }
  return sectionsOf(stage, results, stolenShare(began, machineTime()));
}

async function runFor(
  { balancer, loader, nodes }: Stage,
  one: Case,
  count: number,
  duration_ms: number,
): Promise<Load> {
  balancer.balance(nodes.slice(0, count).map((_, i) => port + i));
  const { connections, requests, per_s } = one;
  const asks = { port: balancer.port, connections, requests, duration_ms };
  return loader.run(
    per_s === undefined ? { kind: 'closed', ...asks } : { kind: 'paced', ...asks, per_s: count * per_s },
  );
}

async function runTurn(stage: Stage, one: Case, count: number): Promise<Turn> {
  await runFor(stage, one, count, run_up_ms);
  const before = await countersOf(stage, count);
  const load = await runFor(stage, one, count, turn_ms);
  const after = await countersOf(stage, count);
  const each = (of: keyof Counters) => (after[of] - before[of]) / load.count;
  return {
    load,
    nodes_us: each('nodes_us'),
    server_us: each('server_us'),
    balancer_us: each('balancer_us'),
    granted: 1000 * each('granted'),
    recalled: 1000 * each('recalled'),
    commits: 1000 * each('commits'),
    wal_bytes: each('wal_bytes'),
  };
}

async function countersOf({ db, postmaster, balancer, nodes }: Stage, count: number): Promise<Counters> {
  const [row] = await db.query<Pick<Counters, 'granted' | 'recalled' | 'commits' | 'wal_bytes'>>(
    `select coalesce(sum(last_value) filter (where sequencename like '%granted'), 0)::float8 as granted,
            coalesce(sum(last_value) filter (where sequencename like '%recalled'), 0)::float8 as recalled,
            (select xact_commit::float8 from pg_stat_database where datname = current_database()) as commits,
            (pg_current_wal_lsn() - '0/0')::float8 as wal_bytes
       from pg_sequences where sequencename like 'bench\\_%'`,
  );
  const { granted = 0, recalled = 0, commits = 0, wal_bytes = 0 } = row ?? {};
  const nodes_us = nodes.slice(0, count).reduce((sum, { pid }) => sum + cpuOf_us(pid), 0);
  return {
    commits,
    wal_bytes,
    nodes_us,
    server_us: cpuOfChildren_us(postmaster),
    balancer_us: cpuOf_us(balancer.child.pid),
    granted,
    recalled,
  };
}

function sectionsOf({ cases }: Stage, results: readonly Turn[][][], stolen: string): string[] {
  const rows = cases.flatMap(({ name, connections }, c) =>
    counts.map((count, i) => {
      const turns = results[c]?.[i] ?? [];
      const alone = results[c]?.[0] ?? [];
      const middle = (of: (turn: Turn) => number) => quantile(turns.map(of), 0.5);
      const ratio = (of: (turn: Turn) => number) =>
        quantile(
          turns.map((turn, round) => of(turn) / of(alone[round] ?? turn)),
          0.5,
        ).toFixed(2);
      return [
        name,
        String(connections),
        String(count),
        middle(({ load }) => load.per_s).toFixed(0),
        ratio(({ load }) => load.per_s),
        `${middle(({ load }) => load.p50_ms).toFixed(1)} / ${middle(({ load }) => load.p99_ms).toFixed(1)}`,
        `${middle((turn) => turn.nodes_us).toFixed(0)} + ${middle((turn) => turn.server_us).toFixed(0)}`,
        ratio((turn) => turn.nodes_us + turn.server_us),
        middle((turn) => turn.granted).toFixed(1),
        middle((turn) => turn.recalled).toFixed(1),
        middle((turn) => turn.commits).toFixed(0),
        middle((turn) => turn.wal_bytes).toFixed(0),
      ];
    }),
  );
  const head = ['what', 'connections', 'nodes', 'calls/s', ': 1 node', 'p50 / p99 ms'];
  const costs = [
    'CPU µs of nodes + PostgreSQL',
    ': 1 node',
    'leases granted per 1,000 calls',
    'recalled',
    'commits',
    'bytes of WAL per call',
  ];
  const cores = availableParallelism();
  const grows = cores >= 2 * Math.max(...counts) + 4;
  const balancer_us = quantile(
    results.flat(2).map((turn) => turn.balancer_us),
    0.5,
  ).toFixed(0);
  return [
    `Nodes, PostgreSQL, callers, upstream and balancer (${balancer_us} µs per call) share ${cores} cores, so ${grows ? 'rates and CPU per call both say how it grows' : 'the rate says nothing about more cores: CPU per call does'}. The balancer gives every request to the next node. Medians of ${rounds} turns of ${turn_ms} ms; a ratio is the median of those of turns beside each other. Key, window, monthly limit, hold, settlement, ledger and record of every call are on; PostgreSQL waits for the disk. Leases are those of money and of limits together.`,
    table([[...head, ...costs], ...rows]),
    `Read two things apart. With *the same load for each node*, more nodes cost a call nothing: what others lease and lock adds no statement. With *the same load for all nodes together*, each of them has less of it, so fewer calls share a commit (the column *commits*), and each wakes up for fewer: that costs more, as it does for one node with fewer connections. So a node is worth adding when those that there are are busy.`,
    `Others on the host took ${stolen} of the cores' time meanwhile (steal). The load of the machine, with other work on it, was ${loadavg()
      .map((value) => value.toFixed(0))
      .join(', ')} in the last 1, 5 and 15 minutes: only ratios count.`,
  ];
}

await main();
