/**
 * Webhooks with everything switched on: how fast a worker delivers a backlog, how long after its
 * `completed_at` the first byte of a task's webhook arrives while 10,000 tasks are in flight, and
 * whether 200 receivers that hang change that. Every body is compared with the stored one.
 * `npm run bench webhooks [-- --quick]`
 */
import { fork, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { Pool } from 'undici';
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { checkBooks } from '../src/money/books.ts';
import { service_rules } from '../src/chat/books.ts';
import { newDelivery } from '../src/webhooks/delivery.ts';
import { openHome } from './home.ts';
import type { Leash } from './leash.ts';
import { table, writeResults } from './report.ts';
import {
  base_yaml,
  quantile,
  residentMegabytes,
  startService,
  stopService,
  stopServices,
  type Service,
} from './service.ts';

const quick = process.argv.includes('--quick');
const accounts = 120;
const receivers = 50;
const backlog = quick ? 2_000 : 10_000;
/** Tasks in flight while the flow is measured, one after the other. */
const in_flight = quick ? [1_000] : [1_000, 10_000];
const flow_s = quick ? 5 : 20;
const flow_per_s = 100;
const hanging_count = 200;
const hanging_hosts = 25;

/** A request as the receivers' process reports it. */
type Arrival = { id: string; at_ms: number; hash: string };

type Bench = { db: Db; service: Service; keys: { account_id: string; text: string }[]; receiver: Receivers };

async function main(): Promise<void> {
  const home = await openHome();
  const { folder, embedded, leash } = home;
  writeFileSync(join(folder, 'medley.yaml'), base_yaml);
  const db = openDatabase({ connection: embedded.connection, connections_max: 4 });
  const service = { folder, database_url: embedded.url, leash };
  const receiver = await startReceivers(leash);
  try {
    const first = await startService('api', service);
    const bench = { db, service, keys: await makeKeys(db), receiver };
    const rows = await measureBacklog(bench);
    await stopService(first);
    rows.push(...(await measureFlow(bench)));
    const books = await checkBooks(db, { full: true, more: service_rules });
    rows.push(['difference of the books', `${books.difference} (${books.entries} entries)`]);
    console.log(table([['what', 'figure'], ...rows]));
    if (!quick) writeResults('webhooks', 'npm run bench webhooks', [['what', 'figure'], ...rows]);
  } finally {
    stopServices();
    receiver.stop();
    await db.close();
    await home.close();
  }
}

async function makeKeys(db: Db): Promise<Bench['keys']> {
  const now = new Date();
  const keys = [];
  for (let i = 0; i < accounts; i++) {
    const owner = { name: `bench ${i}`, currency: 'USD', initial_credit: 1_000_000_000_000n };
    const account = await createAccount(db, owner, now);
    const { text } = await createKey(db, { account_id: account.id, name: 'bench', limit_month: null }, now);
    keys.push({ account_id: account.id, text });
  }
  return keys;
}

/** A backlog of deliveries for healthy receivers, and one worker. */
async function measureBacklog({ db, service, keys, receiver }: Bench): Promise<string[][]> {
  const body = JSON.stringify({ id: 'task_bench', filler: 'x'.repeat(700) });
  for (let i = 0; i < backlog; i += 500) {
    const rows = Array.from({ length: Math.min(500, backlog - i) }, (_, k) => {
      const account_id = keys[(i + k) % accounts]?.account_id ?? '';
      const url = `${receiver.url}/healthy/${(i + k) % receivers}`;
      return {
        account_id,
        event: 'task.failed',
        url,
        body,
        ...newDelivery({ account_id, traceparent: null }, url, Date.now()),
        host: `host-${(i + k) % receivers}`,
      };
    });
    await db.query('select add_delivery($1, r) from jsonb_array_elements($2) r', [new Date(), JSON.stringify(rows)]);
  }
  const worker = await startService('worker', service);
  const started_ms = performance.now();
  while (receiver.arrivals.length < backlog && performance.now() - started_ms < 120_000) await sleep(20);
  const rate = receiver.arrivals.length / ((performance.now() - started_ms) / 1000);
  const memory = residentMegabytes(worker);
  await stopService(worker);
  return [
    [`deliveries/s by one worker, ${receivers} healthy receivers (backlog of ${backlog})`, rate.toFixed(0)],
    ['memory of the worker process after that', `${memory} MB`],
  ];
}

/** Tasks end at a steady pace while others are in flight; then the same beside receivers that hang. */
async function measureFlow(bench: Bench): Promise<string[][]> {
  const service = await startService('all', bench.service);
  const flows: { name: string; flow: Flow }[] = [];
  let running = 0;
  for (const count of in_flight) {
    await createTasks(bench, count - running, 1_000, '[[delay 900s]] long', () => undefined);
    running = count;
    const name = `completed_at → first byte at ${flow_per_s} tasks/s, ${count} tasks in flight (p50 / p99)`;
    flows.push({ name, flow: await flow(bench, `alone${count}`) });
  }
  await createTasks(
    bench,
    hanging_count,
    1_000,
    '[[fail]] x',
    (i) => `${bench.receiver.hanging[i % hanging_hosts]}/${i}`,
  );
  await sleep(1_000);
  flows.push({ name: `… beside ${hanging_count} receivers that hang`, flow: await flow(bench, 'beside') });
  const total = (of: 'same' | 'count') => flows.reduce((sum, each) => sum + each.flow[of], 0);
  const rows = [
    ...flows.map((each) => [each.name, shown(each.flow)]),
    ['bodies that are the bytes of the stored task', `${total('same')} of ${total('count')}`],
    ['memory of the process', `${residentMegabytes(service)} MB`],
  ];
  await stopService(service);
  return rows;
}

type Flow = { p50_ms: number; p99_ms: number; same: number; count: number };

function shown({ p50_ms, p99_ms, count }: Flow): string {
  return `${p50_ms.toFixed(0)} / ${p99_ms.toFixed(0)} ms (${count})`;
}

async function flow(bench: Bench, name: string): Promise<Flow> {
  const { receiver, db } = bench;
  receiver.arrivals.length = 0;
  const count = flow_s * flow_per_s;
  const ids = await createTasks(
    bench,
    count,
    flow_per_s,
    '[[fail]] x',
    (i) => `${receiver.url}/${name}/${i % receivers}`,
  );
  const sent_ids = new Set(ids);
  const mine = () => receiver.arrivals.filter((one) => sent_ids.has(one.id));
  const give_up_ms = performance.now() + 30_000;
  while (mine().length < count && performance.now() < give_up_ms) await sleep(50);
  const rows = await db.query<{ id: string; completed_at: Date; body: string }>(
    'select id, completed_at, body from tasks where id = any ($1)',
    [ids],
  );
  const stored = new Map(rows.map((row) => [row.id, row]));
  const arrivals = mine();
  const waits = arrivals.map((one) => one.at_ms - (stored.get(one.id)?.completed_at.getTime() ?? 0));
  const same = arrivals.filter((one) => hashOf(stored.get(one.id)?.body ?? '') === one.hash).length;
  return { p50_ms: quantile(waits, 0.5), p99_ms: quantile(waits, 0.99), same, count: arrivals.length };
}

/** Creates tasks at a pace; answers their ids. */
async function createTasks(
  { keys }: Bench,
  count: number,
  per_s: number,
  prompt: string,
  webhook: (i: number) => string | undefined,
): Promise<string[]> {
  const pool = new Pool('http://127.0.0.1:18099', { connections: 32, pipelining: 1 });
  const started_ms = performance.now();
  const ids: string[] = [];
  let next = 0;
  const loop = async () => {
    for (let i = next++; i < count; i = next++) {
      const early_ms = started_ms + (i * 1000) / per_s - performance.now();
      if (early_ms > 0) await sleep(early_ms);
      const { statusCode, body } = await pool.request({
        path: '/v1/generate',
        method: 'POST',
        headers: { authorization: `Bearer ${keys[i % keys.length]?.text}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          model: 'sandbox/image',
          input: { prompt, width: 64, height: 64 },
          webhook_url: webhook(i),
        }),
      });
      const text = await body.text();
      if (statusCode !== 202) throw new Error(`${statusCode} ${text}`);
      ids.push(String(JSON.parse(text).id));
    }
  };
  await Promise.all(Array.from({ length: 32 }, loop));
  await pool.close();
  return ids;
}

type Receivers = { url: string; hanging: string[]; arrivals: Arrival[]; stop(): void };

/** The receivers have a process of their own, so that they measure nothing but what they receive. */
async function startReceivers(leash: Leash): Promise<Receivers> {
  const child: ChildProcess = fork(import.meta.filename, ['--receivers']);
  leash.hold(child);
  const arrivals: Arrival[] = [];
  const urls = await new Promise<string[]>((resolve) => {
    child.on('message', (message: { urls: string[] } | { arrivals: Arrival[] }) => {
      if ('urls' in message) resolve(message.urls);
      else arrivals.push(...message.arrivals);
    });
  });
  const [url = '', ...hanging] = urls;
  return { url, hanging, arrivals, stop: () => void child.kill('SIGKILL') };
}

/** The other process: the first server answers at once, the others never. */
async function receive(): Promise<void> {
  let fresh: Arrival[] = [];
  setInterval(() => {
    if (fresh.length > 0) process.send?.({ arrivals: fresh });
    fresh = [];
  }, 20);
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const at_ms = Date.now();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      fresh.push({ id: String(JSON.parse(text).id), at_ms, hash: hashOf(text) });
      response.writeHead(204).end();
    });
  });
  const silent = Array.from({ length: hanging_hosts }, () => createServer(() => undefined));
  process.send?.({ urls: await Promise.all([server, ...silent].map(listening)) });
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

if (process.argv.includes('--receivers')) await receive();
else await main();
