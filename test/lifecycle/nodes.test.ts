import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey, deleteKey } from '../../src/accounts/keys.ts';
import { service_rules } from '../../src/chat/books.ts';
import { checkBooks } from '../../src/money/books.ts';
import { credit } from '../../src/money/ledger.ts';
import { whileLeased } from '../../src/leases/while-leased.ts';
import { completionsStream } from '../chat/streams.ts';
import { startChatUpstream, type ChatUpstream } from '../helpers/chat-upstream.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { depth } from '../helpers/depth.ts';
import { clusterFolder, removeFolder } from '../helpers/embedded.ts';
import { watchStandstills } from '../queue/engine.ts';

/** Several nodes of one service, each a process as `npm start` runs it, behind a balancer that takes them in turn. */

const main = join(import.meta.dirname, '../../src/main.ts');
const chat_per_minute = 60;

/** Calls get shares on all nodes before one of them dies. */
const before_faults_ms = 1_000;
/** Silence that a call to the model of the upstream bears. */
const silence_ms = 3_000;
/** More than the total time of such a call. */
const frozen_ms = 5_000;
/** A key has its limit in so long. */
const window_ms = 60_000;
/** A call to a frozen node gets no answer. */
const patience_ms = 5_000;

type Node = { child: ChildProcess; url: string; is_ready: boolean };

let database: TestDatabase;
let upstream: ChatUpstream;
let folder = '';
let nodes: Node[] = [];
const children: ChildProcess[] = [];

beforeAll(async () => {
  database = await testDatabase({ state: 'engine' });
  folder = clusterFolder();
  upstream = await startChatUpstream();
  writeFileSync(join(folder, 'medley.yaml'), settings(upstream.url));
  nodes = await Promise.all([start('all'), start('api'), start('api')]);
});

afterEach(async () => {
  await vi.waitFor(
    async () => {
      const { findings } = await checkBooks(database.db, { full: true, more: service_rules });
      if (findings.length > 0) throw new Error(JSON.stringify(findings));
    },
    { timeout: 120_000, interval: 200 },
  );
});

afterAll(async () => {
  for (const child of children) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGCONT');
    child.kill('SIGTERM');
    await once(child, 'exit');
  }
  await upstream.stop();
  await database.drop();
  removeFolder(folder);
});

/** The sandbox, and a model of an upstream that may be silent for three seconds. */
function settings(url: string): string {
  return `version: 1
storage: { shared: true }
limits: { chat_per_minute: ${chat_per_minute}, chat_at_once: 400 }
providers:
  outside: { adapter: openai, base_url: "${url}/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
models:
  - id: outside/chat
    kind: chat
    max_output_tokens: 1000
    price: [{ unit: input_token, per: 1000000, amount: "100" }, { unit: output_token, per: 1000000, amount: "100" }]
    routes:
      - { id: only, provider: outside, upstream_model: chat, timeout: { connect: 2s, first_byte: 3s, idle: 3s, total: 4s } }
`;
}

/** Listens beyond loopback, as behind a balancer: then a node that stops says so before it refuses connections. */
async function start(role: string): Promise<Node> {
  const env = {
    ...process.env,
    PORT: '0',
    HOST: '0.0.0.0',
    MEDLEY_BASE_URL: 'http://medley.test',
    MEDLEY_DATA: join(folder, 'data'),
    MEDLEY_CONFIG: join(folder, 'medley.yaml'),
    MEDLEY_ROLE: role,
    DATABASE_URL: database.url,
    TEST_UPSTREAM_KEY: 'key-of-the-upstream',
  };
  const child = spawn(process.execPath, [main], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  await vi.waitUntil(() => /running at \S+:\d+/.test(output), { interval: 20, timeout: 240_000 });
  const port = /running at \S+:(\d+)/.exec(output)?.[1];
  return { child, url: `http://127.0.0.1:${port}`, is_ready: true };
}

type Caller = { account_id: string; key_id: string; key: string };

async function openCaller(amount: bigint, limit_month: bigint | null = null): Promise<Caller> {
  const now = new Date();
  const account = await createAccount(database.db, { name: 'nodes', currency: 'USD', initial_credit: amount }, now);
  const { key, text } = await createKey(database.db, { account_id: account.id, name: 'nodes', limit_month }, now);
  return { account_id: account.id, key_id: key.id, key: text };
}

let turn = 0;

/** The next node that is ready. */
function next(): Node {
  for (let i = 0; i < nodes.length; i++) {
    const node = nodes[turn++ % nodes.length];
    if (node?.is_ready) return node;
  }
  throw new Error('no node is ready');
}

type Answered = { status: number; headers: Headers; json: Record<string, unknown> };

async function call(node: Node, caller: Caller, method: string, path: string, body?: object): Promise<Answered> {
  const response = await fetch(node.url + path, {
    method,
    headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json: unknown = await response.json();
  return { status: response.status, headers: response.headers, json: { ...(json as object) } };
}

const isRefused = (error: unknown) =>
  error instanceof TypeError && error.cause instanceof Error && error.cause.message.includes('ECONNREFUSED');

const messages = [{ role: 'user', content: 'Say hello' }];
const chat = (caller: Caller, max_tokens = 16, node = next()) =>
  call(node, caller, 'POST', '/v1/chat/completions', { model: 'sandbox/chat', max_tokens, messages });

const many = <T>(count: number, make: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => make(i)));

function tally(answers: readonly Answered[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}

test('all nodes are listed, and a key of 60 per minute gets exactly 60 of 300 calls at once over three nodes', async () => {
  const roles = () => database.db.query('select role from nodes order by role');
  await expect.poll(roles).toEqual([{ role: 'all' }, { role: 'api' }, { role: 'api' }]);
  const send = async (caller: Caller, count: number) => {
    const { 200: ok = 0, 429: refused = 0 } = tally(await many(count, () => chat(caller)));
    expect(ok + refused).toBe(count);
    return ok;
  };
  // In the next minute there are more: a machine that is so slow does it all again.
  let accepted = 0;
  for (let is_counted = false; !is_counted;) {
    const begun_ms = performance.now();
    const isSameMinute = () => performance.now() - begun_ms < window_ms;
    const caller = await openCaller(10_000_000n);
    accepted = await send(caller, 300);
    // A node waits 200 ms for what others give back: who was refused while they stood still is let in a moment later.
    while (accepted < chat_per_minute && isSameMinute()) accepted += await send(caller, 9);
    accepted += await send(caller, 30);
    is_counted = isSameMinute();
  }
  expect(accepted).toBe(chat_per_minute);
});

test('a balance, and a limit, that pay for some calls are spent to the last of them, and no further', async () => {
  for (const by of ['balance', 'limit'] as const) {
    const exactly = 2_000n;
    const callers = by === 'balance' ? [await openCaller(exactly)] : [await openCaller(1_000_000_000n, exactly)];
    const [first] = callers;
    const more = await many(3, () =>
      createKey(
        database.db,
        { account_id: first?.account_id ?? '', name: 'more', limit_month: by === 'limit' ? 0n : null },
        new Date(),
      ),
    );
    const keys =
      by === 'balance'
        ? [
            ...callers,
            ...more.map(({ key, text }) => ({ account_id: first?.account_id ?? '', key_id: key.id, key: text })),
          ]
        : callers;
    const answers = await many(200, (i) =>
      chat(keys[i % keys.length] ?? keys[0] ?? { account_id: '', key_id: '', key: '' }, 100),
    );
    const counts = tally(answers);
    expect(counts[200]).toBeGreaterThan(0);
    expect((counts[402] ?? 0) + (counts[403] ?? 0)).toBeGreaterThan(0);
    const [spent] = await database.db.query<{ spent: bigint; lost: bigint }>(
      'select coalesce(sum(revenue + loss), 0)::bigint as spent, coalesce(-sum(loss), 0)::bigint as lost from ledger_entries where account_id = $1',
      [first?.account_id],
    );
    expect(spent?.lost).toBe(0n);
    expect(spent?.spent).toBeLessThanOrEqual(exactly);
  }
});

/** Waits until `look` passes. That takes twice the second that is promised at most, and what the machine stood still. */
async function withinASecond(look: () => Promise<void>): Promise<void> {
  using standstills = watchStandstills(database.db);
  const begun_ms = performance.now();
  await vi.waitFor(look, { timeout: 120_000, interval: 50 });
  expect(performance.now() - begun_ms).toBeLessThan(2_000 + standstills.longestMs());
}

test('a deleted key, a withdrawal and what is held are so on every node within a second', async () => {
  const caller = await openCaller(1_000_000n);
  for (const node of nodes) for (let i = 0; i < 3; i++) expect((await chat(caller, 16, node)).status).toBe(200);
  const taken = {
    account_id: caller.account_id,
    type: 'adjustment',
    amount: -900_000n,
    ref: 'out',
    reason: 'out',
  } as const;
  expect((await whileLeased(() => credit(database.db, taken, new Date()))).outcome).toBe('booked');
  await withinASecond(async () => {
    for (const node of nodes) {
      const { json } = await call(node, caller, 'GET', '/v1/balance');
      expect(json).toMatchObject({ held: { exact: '0.000000' } });
      expect(Number(Object(json['balance'])['exact'])).toBeLessThanOrEqual(0.1);
    }
  });
  await deleteKey(database.db, caller.key_id, new Date());
  await withinASecond(async () => {
    for (const node of nodes) expect((await call(node, caller, 'GET', '/v1/balance')).status).toBe(401);
  });
});

test('a task is waited for on one node, carried out on the second, and seen and cancelled on the third', async () => {
  const [with_worker, second, third] = nodes;
  if (!with_worker || !second || !third) throw new Error('there are three nodes');
  const caller = await openCaller(10_000_000n);
  const create = (prompt: string) =>
    call(second, caller, 'POST', '/v1/generate?wait=60', { model: 'sandbox/image', input: { prompt } });
  expect((await create('waves')).json['status']).toBe('succeeded');
  const waiting = create('waves [[delay 120s]]');
  await vi.waitFor(
    async () => {
      const { json } = await call(third, caller, 'GET', '/v1/tasks?limit=1');
      const [task] = [json['data']].flat() as { id: string; status: string }[];
      expect(task?.status).toBe('running');
      expect((await call(third, caller, 'POST', `/v1/tasks/${task?.id}/cancel`)).status).toBe(200);
    },
    { timeout: 120_000, interval: 50 },
  );
  expect((await waiting).json).toMatchObject({ status: 'failed', error: { type: 'canceled' } });
});

test('a stream goes on, and is paid as billed, when its node was frozen for longer than all its timeouts', async () => {
  const [node] = nodes;
  // Where this process stood still before the node was frozen, its upstream was silent for too long: then once more.
  let begun = await beginStream(node);
  while (begun.took_ms > silence_ms / 2) {
    begun.goOn();
    node?.child.kill('SIGCONT');
    await begun.reader?.cancel().catch(() => undefined);
    begun = await beginStream(node);
  }
  const { caller, reader, goOn } = begun;
  let { text } = begun;
  goOn(); // what comes meanwhile waits in the node's sockets
  await sleep(frozen_ms);
  node?.child.kill('SIGCONT');
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) text += part.value;
  expect(text).toContain('four');
  expect(text).toContain('[DONE]');
  expect(text).not.toContain('"error"');
  await vi.waitFor(
    async () => {
      const spent = await database.db.query(
        'select sum(revenue)::bigint as sum from ledger_entries where account_id = $1',
        [caller.account_id],
      );
      expect(spent).toEqual([{ sum: 70_700n }]);
    },
    { timeout: 120_000, interval: 50 },
  );
});

/** A stream on a node that is frozen once its first word has come; the upstream sends the others after `goOn`. */
async function beginStream(node: Node | undefined) {
  const caller = await openCaller(10_000_000n);
  const { promise: rest, resolve: goOn } = Promise.withResolvers<void>();
  const parts = completionsStream(['one', 'two', 'three', 'four'], [7, 700]);
  const first = parts.findIndex((part) => part.includes('one')) + 1;
  upstream.script('chat', { stream: [...parts.slice(0, first), rest, ...parts.slice(first)] });
  const begun_ms = performance.now();
  const response = await fetch(`${node?.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${caller.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'outside/chat', stream: true, messages }),
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  for (let is_over = false; !text.includes('one') && !is_over;) {
    const part = await reader?.read();
    text += part?.value ?? '';
    is_over = part?.done ?? true;
  }
  node?.child.kill('SIGSTOP');
  return { caller, reader, goOn, text, took_ms: performance.now() - begun_ms };
}

test('one node after the other is replaced under load, and not one request fails', async () => {
  const callers = await many(8, () => openCaller(100_000_000n));
  let is_over = false;
  const failed: string[] = [];
  let answered = 0;
  const load = callers.map(async (caller) => {
    while (!is_over) {
      const path = answered % 2 === 0 ? '/v1/balance' : '/v1/models?limit=1';
      const node = nodes.find((each) => each.is_ready) && next();
      if (!node) {
        await sleep(20); // as a balancer does: a call waits while no node has said that it is ready
        continue;
      }
      try {
        const { status } = await call(node, caller, 'GET', path);
        if (status !== 200 && status !== 429) failed.push(`${path}: ${status}`);
      } catch (error) {
        // As a balancer does: a refused connection carried nothing, and the node gets no more until it is ready.
        if (isRefused(error)) node.is_ready = false;
        else failed.push(`${path}: ${String(error)}`);
      }
      answered += 1;
      await sleep(20);
    }
  });
  const watching = (async () => {
    while (!is_over) {
      for (const node of nodes)
        node.is_ready = await fetch(`${node.url}/readyz`).then(
          ({ ok }) => ok,
          () => false,
        );
      await sleep(50);
    }
  })();
  for (const old of nodes.slice()) {
    const fresh = await start(old.child === nodes[0]?.child ? 'all' : 'api');
    nodes.push(fresh);
    old.child.kill('SIGTERM');
    await once(old.child, 'exit');
    nodes = nodes.filter((node) => node !== old);
  }
  is_over = true;
  await Promise.all([...load, watching]);
  for (const node of nodes) node.is_ready = true;
  expect(failed).toEqual([]);
  expect(answered).toBeGreaterThan(100);
});

test(
  'a key never has more than its limit in a minute while nodes are killed, frozen and resumed',
  { timeout: 400_000 },
  async () => {
    const caller = await openCaller(100_000_000n);
    const accepted: { sent_ms: number; answered_ms: number }[] = [];
    const begun = performance.now();
    const lasts_ms = depth(8_000, 150_000);
    let is_over = false;
    const load = Array.from({ length: 6 }, async () => {
      while (!is_over) {
        const node = next();
        const sent_ms = performance.now();
        const answer = await Promise.race([chat(caller, 16, node).catch(() => undefined), sleep(patience_ms)]);
        if (answer?.status === 200) accepted.push({ sent_ms, answered_ms: performance.now() });
        await sleep(30);
      }
    });
    await sleep(before_faults_ms);
    const [, frozen, killed] = nodes;
    frozen?.child.kill('SIGSTOP');
    if (frozen) frozen.is_ready = false;
    killed?.child.kill('SIGKILL');
    nodes = nodes.filter((node) => node !== killed);
    nodes.push(await start('api'));
    await sleep(Math.max(0, Math.min(30_000, lasts_ms - 3_000) - (performance.now() - begun)));
    frozen?.child.kill('SIGCONT');
    if (frozen) frozen.is_ready = true;
    await sleep(Math.max(0, lasts_ms - (performance.now() - begun)));
    is_over = true;
    await Promise.all(load);
    // Each was accepted at some time between the two.
    for (const { sent_ms: from_ms } of accepted) {
      const in_minute = accepted.filter(
        (other) => other.sent_ms >= from_ms && other.answered_ms <= from_ms + window_ms,
      );
      expect(in_minute.length).toBeLessThanOrEqual(chat_per_minute);
    }
    expect(accepted.length).toBeGreaterThan(0);
  },
);
