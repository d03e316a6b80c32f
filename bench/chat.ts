/**
 * Chat with everything switched on (key, window, limits, hold, settle, ledger, record) beside a bare proxy,
 * Portkey and nginx before the same upstream: rates, latency added, streams, memory, CPU, books.
 * `npm run bench chat [-- --quick] [--profile]`
 */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { service_rules } from '../src/chat/books.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { checkBooks } from '../src/money/books.ts';
import { startLoader, type Load, type Loader } from './chat-load.ts';
import {
  ask,
  makeKeys,
  startBareProxy,
  startNginx,
  startPortkey,
  startUpstream,
  yamlOf,
  type Keys,
  type Rival,
} from './chat-places.ts';
import { divideCores } from './cores.ts';
import { cpuOf_us, cpuOfChildren_us, machineTime, stolenShare } from './cpu.ts';
import { flushTimes_ms } from './disk.ts';
import { openHome } from './home.ts';
import { makeLeash } from './leash.ts';
import { heaviest } from './profile.ts';
import { table, writeSections } from './report.ts';
import { peakMegabytes, port, quantile, residentMegabytes, startService, stopService } from './service.ts';

const quick = process.argv.includes('--quick');
const profiled = process.argv.includes('--profile');
const warm_up_ms = quick ? 3_000 : 30_000;
const rival_warm_up_ms = quick ? 500 : 5_000;
/**
 * Virtual machines are up to 1.8 times slower for some 10 s (turns of 2 s of the same service: 4,302 to 6,795 calls/s
 * within 40 s): so all take short turns, many times, and whom one compares stand beside each other.
 */
const turn_ms = quick ? 500 : 1_000;
const turns = quick ? 2 : 14;
const rounds = quick ? 1 : 3;
/** Of the disk itself, beside each round of the latencies. */
const flushes = quick ? 50 : 500;
const single_ms = quick ? 700 : 6_000;
const paced_ms = quick ? 1_000 : 10_000;
const paced_per_s = 500;
const streams = 512;
const stream_s = quick ? 2 : 10;
const short_streams = quick ? 50 : 500;
/** Whatever hangs or takes too long, so that a bench ends within ten minutes: the leash ends the rest. */
const give_up_ms = quick ? 120_000 : 540_000;

type Stage = {
  folder: string;
  /** Cores of each process, for the report. */
  cores: string;
  db: Db;
  keys: Keys;
  postmaster: number;
  upstream: { port: number; child: ChildProcess };
  loader: Loader;
  service: ChildProcess;
  rivals: Rival[];
};

/** A server and the requests to it. `service`: its CPU is PostgreSQL's too. */
type Place = { name: string; port: number; requests: string[]; child: ChildProcess; is_ours: boolean };

async function main(): Promise<void> {
  const leash = makeLeash();
  setTimeout(giveUp, give_up_ms).unref();
  const cores = divideCores();
  const upstream = await startUpstream(leash);
  const loader = startLoader();
  leash.hold(loader.child);
  cores.measured();
  const home = await openHome({}, leash);
  const { folder, embedded } = home;
  writeFileSync(join(folder, 'medley.yaml'), yamlOf(upstream.port, stream_s * 50));
  const profiles = join(folder, 'profiles');
  mkdirSync(profiles);
  const node_options = profiled ? ['--cpu-prof', `--cpu-prof-dir=${profiles}`] : [];
  const service = await startService('all', { folder, database_url: embedded.url, leash }, node_options);
  const db = openDatabase({ connection: embedded.connection, connections_max: 20 });
  const rivals = [
    await startBareProxy(upstream.port, leash),
    await startPortkey(upstream.port, leash),
    await startNginx(upstream.port, folder, leash),
  ].filter((rival) => rival !== undefined);
  cores.measuring();
  const keys = await makeKeys(db);
  const stage = { folder, cores: cores.words, db, keys, postmaster: embedded.pid, upstream, loader, service, rivals };
  const sections = await measureAll(stage);
  await stopService(service);
  const books = await checkBooks(db, { full: true, more: service_rules });
  const missing = ['Portkey', 'nginx'].filter((name) => !rivals.some((rival) => rival.name === name));
  if (missing.length > 0) sections.push(`Not installed here: ${missing.join(', ')}.`);
  sections.push(`Difference of the books: ${books.difference} (${books.entries} entries).`);
  if (profiled) sections.push(table(heaviest(profiles)));
  console.log(sections.join('\n\n'));
  if (!quick && !profiled) writeSections('chat', 'npm run bench chat', sections);
  for (const { child } of [...rivals, upstream, loader]) child.kill('SIGKILL');
  await db.close();
  await home.close();
  if (books.difference !== '0.000000') throw new Error('the books differ');
}

function giveUp(): void {
  say('given up: it takes too long on this machine now');
  process.exit(1);
}

async function measureAll(stage: Stage): Promise<string[]> {
  say('warm-up');
  const before = machineTime();
  const ours = medley(stage, 'bench/completions', stage.keys.shared);
  await stage.loader.run({ kind: 'closed', ...ours, connections: 64, duration_ms: warm_up_ms });
  for (const rival of stage.rivals) {
    const theirs = commandOf(rivalPlace(rival, 'frames-10-50', false));
    await stage.loader.run({ kind: 'closed', ...theirs, connections: 64, duration_ms: rival_warm_up_ms });
  }
  say('rates');
  const rates = await measureRates(stage);
  const after_rates = residentMegabytes(stage.service);
  say('latency');
  const { rows: added, disk_ms } = await measureAdded(stage);
  say('streams');
  const first = await measureFirst(stage);
  const long = await measureStreams(stage);
  const memory = [
    ['process', 'after JSON', 'after streams', 'peak'],
    ['Medley', after_rates, residentMegabytes(stage.service), peakMegabytes(stage.service)],
    ...stage.rivals.map(({ name, child }) => [name, '', residentMegabytes(child), peakMegabytes(child)]),
  ];
  return [
    `Key, window, monthly limit, hold, settlement, ledger and record of every call are on; PostgreSQL waits for the disk. ${stage.cores} Rates, and what stands beside them, are means of ${turns} turns of ${turn_ms} ms; latencies and first words below are medians of ${rounds} rounds. CPU: µs per call of the process itself + PostgreSQL; then of upstream + callers, and the share of one core that the callers used.`,
    table(rates),
    `Latency in ms, p50 / p99, and in brackets what is added to asking the upstream itself: one call at a time, and at ${paced_per_s} calls/s.`,
    table(added),
    `Medley waits for one flush of the disk per call: to write a block and flush it, with nothing else to do, took ${pair(quantile(disk_ms, 0.5), quantile(disk_ms, 0.99))} ms between these rounds, at most ${Math.max(...disk_ms).toFixed(0)}.`,
    `Time to the first words of a stream, ${short_streams} streams of 10 frames, 50 started per second.`,
    table(first),
    `${streams} streams at 50 frames/s for ${stream_s} s. A stall is a gap of more than 100 ms.`,
    table(long),
    'Memory (RSS) in MB.',
    table(memory),
    `Whoever else uses the machine's cores took ${stolenShare(before, machineTime())} of their time meanwhile (steal).`,
  ];
}

const started_ms = performance.now();

/** Prints progress. */
function say(what: string): void {
  console.error(`${((performance.now() - started_ms) / 1000).toFixed(0).padStart(4)} s  ${what}`);
}

/** The service, asked with these keys in turn. */
function medley(
  stage: Pick<Stage, 'service'>,
  model: string,
  keys: readonly string[],
  { style = 'completions', stream = false, name = 'Medley' }: { style?: Style; stream?: boolean; name?: string } = {},
): Place {
  const requests = keys.map((key) => ask(style, model, { key, stream }));
  return { name, port, requests, child: stage.service, is_ours: true };
}

type Style = 'completions' | 'messages';

function rivalPlace({ name, port: rival_port, headers, child }: Rival, model: string, stream: boolean): Place {
  const requests = [ask('completions', model, { stream, headers })];
  return { name, port: rival_port, requests, child, is_ours: false };
}

function directly({ upstream }: Stage, model: string, stream: boolean): Place {
  const requests = [ask('completions', model, { stream })];
  return { name: 'the upstream itself', port: upstream.port, requests, child: upstream.child, is_ours: false };
}

/** µs of CPU per call. */
type Costs = { node_us: number; server_us: number; upstream_us: number };
type Turn = Load & Costs;

async function runTurn(stage: Stage, place: Place, connections: number): Promise<Turn> {
  const before = cpuNow(stage, place);
  const load = await stage.loader.run({ kind: 'closed', ...commandOf(place), connections, duration_ms: turn_ms });
  return { ...load, ...costs(before, cpuNow(stage, place), load.count) };
}

function commandOf({ port: asked_port, requests }: Place): { port: number; requests: string[] } {
  return { port: asked_port, requests };
}

function cpuNow({ postmaster, upstream }: Stage, { child, is_ours }: Place): Costs {
  return {
    node_us: child === upstream.child ? 0 : cpuOf_us(child.pid),
    server_us: is_ours ? cpuOfChildren_us(postmaster) : 0,
    upstream_us: cpuOf_us(upstream.child.pid),
  };
}

function costs(before: Costs, after: Costs, count: number): Costs {
  const each = (of: keyof Costs) => (after[of] - before[of]) / count;
  return { node_us: each('node_us'), server_us: each('server_us'), upstream_us: each('upstream_us') };
}

async function measureRates(stage: Stage): Promise<string[][]> {
  const { shared, many, hot } = stage.keys;
  const main_name = `Medley, ${shared.length} keys of 120 accounts`;
  const ours = (name: string, model: string, keys: readonly string[], style: Style = 'completions') =>
    medley(stage, model, keys, { name, style });
  const ours_shared = ours(main_name, 'bench/completions', shared);
  const others = [
    ...stage.rivals.map((rival) => rivalPlace(rival, 'frames-10-50', false)),
    directly(stage, 'frames-10-50', false),
  ];
  const cases = [
    ...[ours_shared, ...others].map((place) => ({ place, count: 32 })),
    { place: ours('Medley, 1,000 accounts', 'bench/completions', many), count: 256 },
    { place: ours('Medley, one hot account', 'bench/completions', hot), count: 256 },
    { place: ours('Medley, messages → completions', 'bench/completions', shared, 'messages'), count: 256 },
    { place: ours('Medley, completions → messages', 'bench/messages', shared), count: 256 },
    ...[ours_shared, ...others].map((place) => ({ place, count: 256 })),
  ].map((one) => ({ ...one, results: [] as Turn[] }));
  for (let turn = 0; turn < turns; turn++) {
    for (const one of turn % 2 === 0 ? cases : cases.toReversed())
      one.results.push(await runTurn(stage, one.place, one.count));
  }
  const means = cases.map(({ place, count, results }) => ({ place, count, mean: meansOf(results) }));
  const rateOf = (name: string, count: number) =>
    means.find((one) => one.place.name === name && one.count === count)?.mean.per_s ?? Number.NaN;
  return [
    [
      'chat JSON',
      'connections',
      'calls/s',
      ': Medley',
      'p50 / p99 ms',
      'CPU of process + PostgreSQL',
      'upstream + callers',
    ],
    ...means.map(({ place, count, mean }) => [
      place.name,
      String(count),
      mean.per_s.toFixed(0),
      (mean.per_s / rateOf(main_name, count)).toFixed(2),
      pair(mean.p50_ms, mean.p99_ms),
      `${mean.node_us.toFixed(0)} + ${mean.server_us.toFixed(0)}`,
      `${mean.upstream_us.toFixed(0)} + ${mean.cpu_us.toFixed(0)} (${(100 * mean.cpu_share).toFixed(0)} %)`,
    ]),
  ];
}

type Figure = 'per_s' | 'p50_ms' | 'p99_ms' | 'node_us' | 'server_us' | 'upstream_us' | 'cpu_us' | 'cpu_share';

function meansOf(results: readonly Turn[]): { [figure in Figure]: number } {
  const mean = (of: Figure) => results.reduce((sum, result) => sum + result[of], 0) / results.length;
  return {
    per_s: mean('per_s'),
    p50_ms: mean('p50_ms'),
    p99_ms: mean('p99_ms'),
    node_us: mean('node_us'),
    server_us: mean('server_us'),
    upstream_us: mean('upstream_us'),
    cpu_us: mean('cpu_us'),
    cpu_share: mean('cpu_share'),
  };
}

/** One at a time and at a fixed rate, in alternating rounds; the same of the upstream itself is what one pays anyway. */
async function measureAdded(stage: Stage): Promise<{ rows: string[][]; disk_ms: number[] }> {
  const places = placesOf(stage, 'bench/completions', 'frames-10-50', false);
  const single: Load[][] = places.map(() => []);
  const paced: Load[][] = places.map(() => []);
  const disk_ms: number[] = [];
  for (let round = 0; round < rounds; round++) {
    disk_ms.push(...flushTimes_ms(stage.folder, flushes));
    for (const [i, place] of places.entries()) {
      const asks = commandOf(place);
      const shares = { duration_ms: single_ms / rounds };
      single[i]?.push(await stage.loader.run({ kind: 'closed', ...asks, connections: 1, ...shares }));
      const pace = { connections: 64, per_s: paced_per_s, duration_ms: paced_ms / rounds };
      paced[i]?.push(await stage.loader.run({ kind: 'paced', ...asks, ...pace }));
    }
  }
  const middles = [single, paced].map((kind) =>
    kind.map((loads) => ({
      p50_ms: middleOf(loads.map((load) => load.p50_ms)),
      p99_ms: middleOf(loads.map((load) => load.p99_ms)),
    })),
  );
  const rows = places.map(({ name }, i) => [
    name,
    ...middles.map((kind) => {
      const { p50_ms = 0, p99_ms = 0 } = kind[i] ?? {};
      const { p50_ms: base50_ms = 0, p99_ms: base99_ms = 0 } = kind[0] ?? {};
      return `${pair(p50_ms, p99_ms)} (+ ${pair(p50_ms - base50_ms, p99_ms - base99_ms)})`;
    }),
  ]);
  return { rows: [['chat JSON', 'one at a time', `at ${paced_per_s}/s`], ...rows], disk_ms };
}

/** In alternating rounds, like the latencies. */
async function measureFirst(stage: Stage): Promise<string[][]> {
  const places = placesOf(stage, 'bench/short', 'frames-10-50', true);
  const results: (Load | { failed: string })[][] = places.map(() => []);
  for (let round = 0; round < rounds; round++) {
    for (const [i, place] of places.entries()) {
      const count = Math.ceil(short_streams / rounds);
      const job = { kind: 'streams', ...commandOf(place), count, starts_per_s: 50 } as const;
      results[i]?.push(await stage.loader.run(job).catch(failedStream));
    }
  }
  const rows = places.map(({ name }, i) => [name, ...firstFigures(results[i] ?? [])]);
  return [['streams', 'first words p50 / p99 ms', 'stalls'], ...rows];
}

function firstFigures(results: readonly (Load | { failed: string })[]): string[] {
  const loads: Load[] = [];
  for (const result of results) {
    if ('failed' in result) return [result.failed];
    loads.push(result);
  }
  const stalls = loads.reduce((sum, load) => sum + load.stalls, 0);
  const p50_ms = middleOf(loads.map((load) => load.first_p50_ms));
  const p99_ms = middleOf(loads.map((load) => load.first_p99_ms));
  return [pair(p50_ms, p99_ms), String(stalls)];
}

/** Somebody else's failure is a figure like any other. */
function failedStream(error: Error): { failed: string } {
  return { failed: error.message.replace(/^Error: /, '').split('\r\n')[0] ?? '' };
}

async function measureStreams(stage: Stage): Promise<string[][]> {
  const translated = medley(stage, 'bench/completions', stage.keys.shared, {
    style: 'messages',
    stream: true,
    name: 'Medley, messages → completions',
  });
  const rows = [];
  for (const place of [...placesOf(stage, 'bench/completions', `frames-${stream_s * 50}-50`, true), translated]) {
    say(`${streams} streams: ${place.name}`);
    const before = cpuNow(stage, place);
    const begun_ms = performance.now();
    const job = { kind: 'streams', ...commandOf(place), count: streams, starts_per_s: streams } as const;
    const load = await stage.loader.run(job).catch(failedStream);
    const { node_us } = costs(before, cpuNow(stage, place), 1);
    const share = (100 * node_us) / 1000 / (performance.now() - begun_ms);
    rows.push([place.name, ...('failed' in load ? [load.failed] : streamFigures(load, node_us, share))]);
  }
  return [
    [
      `${streams} streams`,
      'frames',
      'stalls',
      'longest gap ms',
      'first words p50 / p99 ms',
      'CPU µs per frame',
      'of one core',
    ],
    ...rows,
  ];
}

function streamFigures(load: Load, node_us: number, share: number): string[] {
  return [
    String(load.frames),
    String(load.stalls),
    load.longest_gap_ms.toFixed(0),
    pair(load.first_p50_ms, load.first_p99_ms),
    (node_us / load.frames).toFixed(1),
    `${share.toFixed(0)} %`,
  ];
}

/** The upstream itself first, then the service and the others. */
function placesOf(stage: Stage, ours: string, theirs: string, stream: boolean): Place[] {
  return [
    directly(stage, theirs, stream),
    medley(stage, ours, stage.keys.shared, { stream }),
    ...stage.rivals.map((rival) => rivalPlace(rival, theirs, stream)),
  ];
}

function middleOf(values: number[]): number {
  return quantile(values, 0.5);
}

function pair(a: number, b: number): string {
  return `${a.toFixed(2)} / ${b.toFixed(2)}`;
}

await main();
