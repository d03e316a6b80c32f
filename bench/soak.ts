/**
 * Three nodes under a moderate load for a while: whether memory, handles and the tables that keep no history stay as
 * they are. `npm run bench soak [-- --minutes 60] [--quick]`. Ends with 1 if something grows.
 */
import type { ChildProcess } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { service_rules } from '../src/chat/books.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { checkBooks } from '../src/money/books.ts';
import { startBalancer } from './balancer.ts';
import { startLoader, type Job, type Loader } from './chat-load.ts';
import { ask, askGenerate, makeKeys, startUpstream, yamlOf } from './chat-places.ts';
import { openHome } from './home.ts';
import { makeLeash } from './leash.ts';
import { table, writeSections } from './report.ts';
import { port, quantile, residentMegabytes, startService, stopService, stopServices } from './service.ts';

const { values } = parseArgs({
  options: { minutes: { type: 'string', default: '60' }, quick: { type: 'boolean', default: false } },
});
const minutes = values.quick ? 1 : Number(values.minutes);
const sample_every_ms = values.quick ? 2_000 : 10_000;
const round_s = values.quick ? 5 : 20;

const chats_per_s = 20;
const tasks_per_s = 2;
const streams_per_s = 1;
const frames_of_a_stream = 200;

/** Tables that keep what happened until retention removes it; every other one is as large as what is under way. */
const history =
  'ledger_entries tasks attempts chat_calls files deliveries delivery_attempts audit_entries usage_sums idempotency_keys'.split(
    ' ',
  );

/** Growth from the second quarter to the last one that is still noise, of a total. */
const noise = { share: 0.15, megabytes: 25, handles: 25, rows: 500, table_megabytes: 4 };

type Sample = { megabytes: number[]; handles: number[]; tables: Map<string, { rows: number; megabytes: number }> };

async function main(): Promise<void> {
  const leash = makeLeash();
  const upstream = await startUpstream(leash);
  const balancer = await startBalancer();
  const loaders = [startLoader(), startLoader(), startLoader()];
  for (const { child } of [...loaders, balancer]) leash.hold(child);
  const home = await openHome({}, leash);
  const { folder, embedded } = home;
  writeFileSync(join(folder, 'medley.yaml'), yamlOf(upstream.port, frames_of_a_stream));
  const db = openDatabase({ connection: embedded.connection, connections_max: 20, is_patient: true });
  try {
    const nodes: ChildProcess[] = [];
    for (const role of ['all', 'api', 'api'] as const)
      nodes.push(await startService(role, { folder, database_url: embedded.url, leash }, [], port + nodes.length));
    balancer.balance(nodes.map((_, i) => port + i));
    const { shared } = await makeKeys(db);
    const ended = Date.now() + minutes * 60_000;
    const answered = loaders.map((loader, i) => load(loader, jobsOf(balancer.port, shared)[i], ended));
    const samples: Sample[] = [];
    while (Date.now() < ended) {
      await Promise.race([sleep(sample_every_ms), ...answered.map((each) => each.then(() => sleep(sample_every_ms)))]);
      samples.push(await look(db, nodes));
    }
    const counts = await Promise.all(answered);
    const { rows, growing } = judge(samples);
    for (const node of nodes) await stopService(node);
    const books = await checkBooks(db, { full: true, more: service_rules });
    const sections = [
      `Three nodes, one of them with the worker, behind a balancer that gives every request to the next node, for ${minutes} min: ${counts.join(', ')} answers to chat calls (${chats_per_s}/s), new tasks (${tasks_per_s}/s, each an image) and streams (${streams_per_s}/s, ${frames_of_a_stream} frames). Medians of the second and of the last quarter of ${samples.length} looks. Tables of history, which retention bounds, are left out: ${history.join(', ')}.`,
      table([['what', 'second quarter', 'last quarter', ''], ...rows]),
      `Difference of the books: ${books.difference} (${books.entries} entries).`,
    ];
    console.log(sections.join('\n\n'));
    if (!values.quick) writeSections('soak', `npm run bench soak -- --minutes ${minutes}`, sections);
    if (books.difference !== '0.000000') throw new Error('the books differ');
    if (growing.length > 0) throw new Error(`it grows: ${growing.join(', ')}`);
  } finally {
    stopServices();
    for (const { child } of [upstream, balancer, ...loaders]) child.kill('SIGKILL');
    await db.close();
    await home.close();
  }
}

function jobsOf(at: number, keys: readonly string[]): Job[] {
  const duration_ms = round_s * 1_000;
  const chat = (stream: boolean) => keys.map((key) => ask('completions', 'bench/completions', { key, stream }));
  const paced = { kind: 'paced', connections: 32, duration_ms, port: at } as const;
  return [
    { ...paced, per_s: chats_per_s, requests: chat(false) },
    { ...paced, per_s: tasks_per_s, requests: keys.map(askGenerate) },
    { kind: 'streams', count: streams_per_s * round_s, starts_per_s: streams_per_s, port: at, requests: chat(true) },
  ];
}

/** Again and again; a request that is not answered as it should be ends the run. Resolves to the number of answers. */
async function load(loader: Loader, job: Job | undefined, until_ms: number): Promise<number> {
  let count = 0;
  while (job && Date.now() < until_ms) count += (await loader.run(job)).count;
  return count;
}

async function look(db: Db, nodes: readonly ChildProcess[]): Promise<Sample> {
  const rows = await db.query<{ name: string; rows: number; megabytes: number }>(
    `select schemaname || '.' || relname as name, n_live_tup::float8 as rows,
            pg_total_relation_size(relid)::float8 / 1048576 as megabytes from pg_stat_user_tables`,
  );
  const current = rows.filter(({ name }) => !history.includes(name.split('.')[1] ?? ''));
  return {
    megabytes: nodes.map((node) => Number(residentMegabytes(node))),
    handles: nodes.map(({ pid }) => readdirSync(`/proc/${pid}/fd`).length),
    tables: new Map(current.map(({ name, ...size }) => [name, size])),
  };
}

type Line = { what: string; of: (sample: Sample) => number; noise: number };

function judge(samples: readonly Sample[]): { rows: string[][]; growing: string[] } {
  const [first] = samples;
  const lines: Line[] = (first?.megabytes ?? []).flatMap((_, i) => [
    { what: `node ${i + 1}: MB of memory`, of: ({ megabytes }) => megabytes[i] ?? 0, noise: noise.megabytes },
    { what: `node ${i + 1}: handles`, of: ({ handles }) => handles[i] ?? 0, noise: noise.handles },
  ]);
  const names = [...(samples.at(-1)?.tables.keys() ?? [])].toSorted();
  for (const name of names) {
    lines.push({ what: `${name}: rows`, of: ({ tables }) => tables.get(name)?.rows ?? 0, noise: noise.rows });
    const megabytes = ({ tables }: Sample) => tables.get(name)?.megabytes ?? 0;
    lines.push({ what: `${name}: MB`, of: megabytes, noise: noise.table_megabytes });
  }
  const quarter = Math.floor(samples.length / 4);
  const growing: string[] = [];
  const rows = lines.flatMap(({ what, of, noise: allowed }) => {
    const [before = 0, after = 0] = [samples.slice(quarter, 2 * quarter), samples.slice(-quarter)].map((part) =>
      quantile(part.map(of), 0.5),
    );
    const grows = after - before > allowed && after > before * (1 + noise.share);
    if (grows) growing.push(what);
    const is_small = what.includes(':') && !what.startsWith('node') && Math.max(before, after) < 1;
    return is_small ? [] : [[what, before.toFixed(0), after.toFixed(0), grows ? 'GROWS' : 'flat']];
  });
  return { rows, growing };
}

await main();
