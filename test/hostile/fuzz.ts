/**
 * npm run fuzz -- [--requests 100000] [--minutes N] [--seed N] [--connections 16] [--from NUMBER] [--heavy PERCENT]
 *
 * Hostile requests made from the reference, and heavy ones to every endpoint, against a service process of its own with
 * a PostgreSQL of its own. Ends with 1 if an answer, the log, the books or the memory is not as it must be, or if a
 * request keeps the service's event loop from others for longer than turns.ts allows.
 */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openDatabase, type Db } from '../../src/db/database.ts';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { checkBooks } from '../../src/money/books.ts';
import { service_rules } from '../../src/chat/books.ts';
import { runCampaign, showFinding, type Finding } from './campaign.ts';
import { startService, type Service } from './service.ts';
import { SlowRequests } from './slow-requests.ts';
import { watched_arguments, watchTurns, type Memory } from './turns.ts';
import { startHostileUpstream } from './upstream.ts';
import { chat_models, makePlace, withUpstream, type Place } from './world.ts';

const { values } = parseArgs({
  options: {
    requests: { type: 'string' },
    minutes: { type: 'string' },
    heavy: { type: 'string', default: '25' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 2 ** 31)) },
    connections: { type: 'string', default: '16' },
    from: { type: 'string', default: '0' },
  },
});
const seed = Number(values.seed);
const count = Number(values.requests ?? (values.minutes === undefined ? 100_000 : Infinity));
const first = Number(values.from);
const minutes = values.minutes === undefined ? Infinity : Number(values.minutes);

const secret = 'the-secret-of-all-links';

/** Of what is left after a full collection. */
const growth_mb_max = 30;

/** Of all memory: what the allocator keeps for later comes and goes by tens of megabytes. */
const resident_growth_mb_max = 150;
const threads_growth_max = 2;

/** Sessions end in each other's requests, so that people sign in again; suspects are repeated. */
const round_ms = 60_000;

const findings_max = 200;

/** Ctrl-C: what was started is stopped, and nothing is judged. */
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopped.abort());

const print = (line: string) => void process.stdout.write(`${line}\n`);

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), 'medley-fuzz-'));
  chmodSync(folder, 0o755); // PostgreSQL's user must be able to enter
  const embedded = await startEmbedded({ data_dir: join(folder, 'data') });
  const db = openDatabase({ connection: embedded.connection, connections_max: 4 });
  const upstream = await startHostileUpstream();
  let service: Service | undefined;
  try {
    writeFileSync(join(folder, 'medley.yaml'), withUpstream(upstream.url));
    const env = {
      DATABASE_URL: embedded.url,
      MEDLEY_DATA: join(folder, 'files'),
      MEDLEY_CONFIG: join(folder, 'medley.yaml'),
      MEDLEY_SECRET: secret,
      MEDLEY_LOG_LEVEL: 'info',
      PORT: '0',
      UPSTREAM_KEY: 'upstream-key-0123456789',
      STRIPE_SECRET_KEY: 'sk_test_0123456789',
      STRIPE_WEBHOOK_SECRET: 'whsec_0123456789',
      STRIPE_API_URL: upstream.url,
    };
    service = await startService(folder, env, watched_arguments);
    const place = await makePlace(db, service.url, chat_models);
    return await attack(service, db, place);
  } catch (error) {
    if (!stopped.signal.aborted) throw error;
    print('stopped');
    return 1;
  } finally {
    await service?.stop();
    await upstream.stop();
    await db.close();
    await embedded.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function attack(service: Service, db: Db, place: Place): Promise<number> {
  print(`seed ${seed}, ${bounds()} over ${values.connections} connections, ${values.heavy} % of them heavy`);
  const turns = watchTurns(service.child);
  const slow = new SlowRequests(turns);
  const memory = [await turns.memory()];
  const statuses = new Map<number, number>();
  const endpoints = new Map<string, number>();
  const findings: Finding[] = [];
  const ends_ms = performance.now() + minutes * 60_000;
  let elapsed_ms = 0;
  let next = first;
  for (let round = 1; next < first + count && performance.now() < ends_ms && !isOver(findings); round++) {
    await place.signIn();
    const round_ends_ms = performance.now() + round_ms;
    const outcome = await runCampaign({
      world: place.world,
      port: Number(new URL(service.url).port),
      secrets: [...place.secrets, secret],
      seed,
      first: next,
      count: first + count - next,
      connections: Number(values.connections),
      heavy_percent: Number(values.heavy),
      slow,
      goOn: () => performance.now() < Math.min(round_ends_ms, ends_ms),
      signal: stopped.signal,
    });
    stopped.signal.throwIfAborted();
    for (const finding of outcome.findings) print(showFinding(finding));
    findings.push(...outcome.findings);
    elapsed_ms += outcome.elapsed_ms;
    addAll(statuses, outcome.statuses);
    addAll(endpoints, outcome.endpoints);
    next = outcome.next;
    memory.push(await turns.memory());
    print(
      `${next - first} requests after ${(elapsed_ms / 1000).toFixed(0)} s, ${findings.length} findings, ${showMemory(memory.at(-1))}`,
    );
  }
  const problems = [...findings.map(() => 'an answer'), ...(await aftermath(service, db, place, memory))];
  report({ statuses, endpoints, memory, elapsed_ms, slow, place });
  print(problems.length === 0 ? 'nothing found' : `found: ${problems.join('; ')} (seed ${seed})`);
  return problems.length === 0 ? 0 : 1;
}

function bounds(): string {
  return minutes === Infinity ? `${count} requests` : `${minutes} minutes`;
}

/** Only a long run goes on behind a finding: there is more to learn. */
function isOver(findings: readonly Finding[]): boolean {
  return minutes === Infinity ? findings.length > 0 : findings.length >= findings_max;
}

function addAll<Key>(sums: Map<Key, number>, more: ReadonlyMap<Key, number>): void {
  for (const [key, times] of more) sums.set(key, (sums.get(key) ?? 0) + times);
}

function showMemory(memory: Memory | undefined): string {
  return memory
    ? `heap ${memory.heap_mb} MB, external ${memory.external_mb} MB, resident ${memory.resident_mb} MB, ${memory.threads} threads`
    : '';
}

type Report = {
  statuses: Map<number, number>;
  endpoints: Map<string, number>;
  memory: Memory[];
  elapsed_ms: number;
  slow: SlowRequests;
  place: Place;
};

function report({ statuses, endpoints, memory, elapsed_ms, slow, place }: Report): void {
  const answered = [...statuses.values()].reduce((sum, times) => sum + times, 0);
  const rows = [...statuses].toSorted(([a], [b]) => a - b).map(([status, times]) => `${status} ${times}`);
  const missed = place.world.endpoints
    .map(({ method, path }) => `${method} ${path}`)
    .filter((name) => !endpoints.has(name));
  print(`answers: ${rows.join(', ')}`);
  print(`${answered} requests, ${Math.round(answered / (elapsed_ms / 1000))}/s`);
  print(
    `${place.world.endpoints.length - missed.length} of ${place.world.endpoints.length} endpoints; not sent to: ${missed.join(', ') || 'none'}`,
  );
  const longest_ms = Math.max(0, ...slow.turns.map(({ cpu_ms }) => cpu_ms));
  print(
    `turns beyond the limit that no request repeats: ${slow.turns.length}, the longest ${Math.round(longest_ms)} ms`,
  );
  print(`memory: ${showMemory(memory[0])} → ${showMemory(memory.at(-1))}`);
}

/** Checks everything that must be true when it is over. */
async function aftermath(service: Service, db: Db, place: Place, memory: readonly Memory[]): Promise<string[]> {
  const problems: string[] = [];
  if ((await fetch(`${service.url}/livez`)).status !== 200) problems.push('the service does not live');
  await place.expectForeignUntouched();
  await settle(db);
  const books = await checkBooks(db, { full: true, more: service_rules });
  print(`books: ${books.entries} entries, difference ${books.difference}, ${books.ok ? 'ok' : 'NOT ok'}`);
  if (!books.ok) problems.push(`the books: ${JSON.stringify(books.findings)}`);
  const log = service.log();
  for (const text of [...place.secrets, secret]) if (log.includes(text)) problems.push(`the log shows ${text}`);
  const surprises = log.split('\n').filter((line) => /"level":(?:50|60)|rejected that nobody/.test(line));
  if (surprises.length > 0) problems.push(`${surprises.length} errors in the log: ${surprises[0]}`);
  const growths = [
    { name: 'heap', growth: growthOf(memory, ({ heap_mb, external_mb }) => heap_mb + external_mb), max: growth_mb_max },
    { name: 'resident memory', growth: growthOf(memory, (m) => m.resident_mb), max: resident_growth_mb_max },
    { name: 'the number of threads', growth: peakGrowthOf(memory, (m) => m.threads), max: threads_growth_max },
  ];
  for (const { name, growth: by } of growths.filter((each) => each.growth > each.max))
    problems.push(`${name} grows by ${by}: ${memory.map(showMemory).join('; ')}`);
  return problems;
}

/** Until every task is final: what was created must end. */
async function settle(db: Db): Promise<void> {
  const deadline_ms = performance.now() + 300_000;
  while (performance.now() < deadline_ms) {
    const [row] = await db.query<{ open: bigint }>('select count(*) as open from tasks where completed_at is null');
    if (row?.open === 0n) return;
    await sleep(500);
  }
  const open = await db.query(
    `select t.id, t.status, t.model, t.created_at, t.webhook_url, t.input, t.metadata, j.name, j.state, j.retry_count,
       j.start_after, a.state as attempt
       from tasks t left join pgboss.job j on j.data->>'task_id' = t.id
       left join attempts a on a.account_id = t.account_id and a.task_id = t.id
      where t.completed_at is null limit 20`,
  );
  throw new Error(`tasks are still open after 5 minutes: ${JSON.stringify(open, null, 1)}`);
}

/** The most of the last third less the most of the second one: idle threads of image workers end after a minute. */
function peakGrowthOf(memory: readonly Memory[], value: (memory: Memory) => number): number {
  return -growthOf(memory, (each) => -value(each));
}

/** The least of the last third less the least of the second one: what is collected is no growth. */
function growthOf(memory: readonly Memory[], value: (memory: Memory) => number): number {
  const third = Math.floor(memory.length / 3);
  if (third === 0) return 0;
  const least = (some: readonly Memory[]) => Math.min(...some.map(value));
  return least(memory.slice(2 * third)) - least(memory.slice(third, 2 * third));
}

process.exitCode = await main();
