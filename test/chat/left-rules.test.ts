import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { completion, hello, setStage, yamlOf, type Stage } from './setup.ts';
import { chunk, done, messagesStream } from './streams.ts';

/** Rules about callers that leave, beside the table of left.test.ts: what they cost, and what ends behind them. */

let stage: Stage;

const more = `
  - id: acme/thinker
    kind: chat
    capabilities: [thinking]
    price: *price
    routes: [{ provider: oai, upstream_model: thinker, timeout: { first_byte: 60s, idle: 1s, total: 60s } }]
  - id: acme/patient-thinker
    kind: chat
    capabilities: [thinking]
    price: *price
    routes: [{ provider: oai, upstream_model: thinker }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const left = (client: Client, body: object, signal: AbortSignal, url = stage.test.url): Promise<Response> =>
  fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: hello, ...body }),
    signal,
  });

type Recorded = { status: number; cost: bigint; attempts: { outcome: string; reason?: string }[] };

async function recordOf(client: Client): Promise<Recorded> {
  const find = () =>
    stage.test.app.db.query<Recorded>('select status, cost, attempts from chat_calls where account_id = $1', [
      client.account_id,
    ]);
  await expect.poll(async () => (await find()).length).toBe(1);
  const [row] = await find();
  if (!row) throw new Error('the record is there');
  return row;
}

/** Reads until this has come, leaves, and returns when the service knows it. */
async function leaveAt(client: Client, body: object, text: string): Promise<void> {
  const before = callersGone();
  const leave = new AbortController();
  const response = await left(client, { stream: true, ...body }, leave.signal);
  const reader = response.body?.getReader();
  let read = '';
  while (!read.includes(text)) read += Buffer.from((await reader?.read())?.value ?? []).toString();
  leave.abort();
  await expect.poll(callersGone).toBe(before + 1);
}

const thoughts = { prompt_tokens: 5, completion_tokens: 50_005, total_tokens: 50_010 };
const last_chunk = `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'x', choices: [], usage: thoughts })}\n\n`;

test.each([
  ['the last word', 'end.', {}],
  ['the finish reason', '"finish_reason":"stop"', {}],
  ['the last word, the request asks to reason', 'end.', { model: 'acme/oai', reasoning_effort: 'low' }],
])('50,000 tokens of reasoning are charged although the caller disconnects at %s', async (_, text, request) => {
  const client = await stage.test.client();
  const noticed = Promise.withResolvers<void>();
  const word = [chunk({ role: 'assistant', content: '' }), chunk({ content: 'The end.' })];
  const finish = chunk({}, {}, 'stop');
  const pieces = text === 'end.' ? [...word, noticed.promise, finish] : [...word, finish, noticed.promise];
  for (const model of ['gpt-x', 'thinker']) stage.upstream.script(model, { stream: [...pieces, last_chunk, done] });
  await leaveAt(client, { model: 'acme/patient-thinker', ...request }, text);
  noticed.resolve();
  expect(await recordOf(client)).toMatchObject({ status: 499, cost: 500_060n });
});

test('a stream that shows thoughts is read to its end although neither catalogue nor request mentions thinking', async () => {
  const client = await stage.test.client();
  const noticed = Promise.withResolvers<void>();
  const word = [chunk({ reasoning_content: 'Well' }), chunk({ content: 'The end.' })];
  stage.upstream.script('gpt-x', { stream: [...word, noticed.promise, chunk({}, {}, 'stop'), last_chunk, done] });
  await leaveAt(client, { model: 'acme/oai' }, 'end.');
  noticed.resolve();
  expect(await recordOf(client)).toMatchObject({ status: 499, cost: 500_060n });
});

/** Callers of chat whose leaving the service has noticed. */
function callersGone(): number {
  const lines = [...stage.test.app.metrics.http_requests.lines()];
  const line = lines.find((each) => each.includes('route="/v1/chat/completions",status="499"'));
  return Number(line?.split(' ').at(-1) ?? 0);
}

test.each([true, false])(
  'a million tokens of input are charged although nothing came before the caller disconnected (stream %s)',
  async (stream) => {
    const client = await stage.test.client();
    const leave = new AbortController();
    const usage = { prompt_tokens: 1_000_000, completion_tokens: 5, total_tokens: 1_000_005 };
    const script = Promise.withResolvers<void>();
    const noticed = Promise.withResolvers<void>();
    stage.upstream.script('gpt-x', () => {
      script.resolve();
      return stream
        ? {
            stream: [noticed.promise, chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hi' })],
            then: 'hang',
          }
        : { stream: [noticed.promise, JSON.stringify(completion('Hi', usage))] };
    });
    const before = callersGone();
    const messages = [{ role: 'user', content: 'x'.repeat(4_000_000 - 14) }];
    const call = left(client, { model: 'acme/oai', stream, messages }, leave.signal).catch(() => 'left');
    await script.promise;
    leave.abort();
    expect(await call).toBe('left');
    await expect.poll(callersGone).toBe(before + 1);
    noticed.resolve();
    const { status, cost } = await recordOf(client);
    expect(status).toBe(499);
    expect([2_000_010n, 2_000_050n]).toContain(cost); // with one token of output, or five
    await expect.poll(() => stage.upstream.open()).toBe(0);
  },
);

test.each<[string, (noticed: Promise<void>) => Script]>([
  ['takes longer than first_byte', () => ({ stream: [': processing\n\n'], then: 'hang' })],
  ['answers an error', (noticed) => ({ stream: [noticed, 'data: {"error":{"message":"overloaded"}}\n\n'] })],
  ['breaks off', (noticed) => ({ stream: [noticed], then: 'cut' })],
])(
  'an upstream that %s after its caller disconnected costs nothing, and no other route is tried',
  async (_, script) => {
    const client = await stage.test.client();
    const leave = new AbortController();
    const begun = Promise.withResolvers<void>();
    const noticed = Promise.withResolvers<void>();
    stage.upstream.script('first', () => (begun.resolve(), script(noticed.promise)));
    stage.upstream.script('second', { stream: messagesStream(['paid twice']) });
    const before = stage.upstream.requests.length;
    const gone_before = callersGone();
    const call = left(client, { model: 'acme/two', stream: true }, leave.signal).catch(() => 'left');
    await begun.promise;
    leave.abort();
    expect(await call).toBe('left');
    await expect.poll(callersGone).toBe(gone_before + 1);
    noticed.resolve();
    const record = await recordOf(client);
    expect(record).toMatchObject({ status: 499, cost: 0n, attempts: [{ outcome: 'failed' }] });
    expect(stage.upstream.requests).toHaveLength(before + 1);
    await expect.poll(() => stage.upstream.open()).toBe(0);
  },
);

test("a whole response that never comes ends with its route's total time, and holds money and a slot until then", async () => {
  const client = await stage.test.client();
  const leave = new AbortController();
  stage.upstream.script('first', 'hang');
  const call = left(client, { model: 'acme/two' }, leave.signal).catch(() => 'left');
  await expect.poll(() => stage.upstream.open()).toBe(1);
  leave.abort();
  await call;
  expect(Number((await client.call('GET', '/v1/balance')).json.held.exact)).toBeGreaterThan(0);
  expect(stage.test.app.limits.chat_calls.state.in_use).toBe(1);
  expect(await recordOf(client)).toMatchObject({ status: 499, cost: 0n, attempts: [{ outcome: 'failed' }] });
  await expect.poll(() => stage.test.app.limits.chat_calls.state.in_use).toBe(0);
  await expect.poll(() => stage.upstream.open()).toBe(0);
});

test.each([true, false])(
  'a stop of the service ends streams without a caller and charges their input (stream %s)',
  async (stream) => {
    const client = await stage.test.client();
    const node = await stage.test.beside({ yaml: yamlOf(stage.upstream, more), worker: false });
    stage.upstream.script('thinker', stream ? { stream: [chunk({ content: 'Word' })], then: 'hang' } : 'hang');
    const leave = new AbortController();
    const messages = [{ role: 'user', content: 'x'.repeat(4_000 - 14) }];
    const call = left(client, { model: 'acme/patient-thinker', stream, messages }, leave.signal, node.url);
    call.catch(() => undefined);
    await expect.poll(() => stage.upstream.open()).toBe(1);
    if (stream) await (await call).body?.getReader().read();
    leave.abort();
    await expect.poll(() => node.app.limits.chat_calls.state.in_use).toBe(1);
    const begun_at = performance.now();
    await node.stop();
    expect(performance.now() - begun_at).toBeLessThan(40_000); // the silence of the upstream is waited for a minute
    expect(await recordOf(client)).toMatchObject({ status: 499, cost: stream ? 2_010n : 2_000n });
    await expect.poll(() => stage.upstream.open()).toBe(0);
  },
);

test.each<[string, Script, object, { status: number; cost: bigint }]>([
  ['a whole answer', 'hang', {}, { status: 503, cost: 0n }],
  ['a stream that has not begun', 'hang', { stream: true }, { status: 503, cost: 0n }],
  [
    'a stream that reasons',
    { stream: [chunk({ content: 'Word' })], then: 'hang' },
    { stream: true },
    { status: 503, cost: 2_010n },
  ],
])(
  'a stop of the service costs a caller who waits for %s no more than what has come',
  async (_, script, body, ended) => {
    const client = await stage.test.client();
    const node = await stage.test.beside({ yaml: yamlOf(stage.upstream, more), worker: false });
    stage.upstream.script('thinker', script);
    const messages = [{ role: 'user', content: 'x'.repeat(4_000 - 14) }];
    const sent = { model: 'acme/patient-thinker', messages, ...body };
    const answered = left(client, sent, AbortSignal.timeout(60_000), node.url);
    const seen = answered.then((response) => response.text()).catch(() => 'cut');
    await expect.poll(() => stage.upstream.open()).toBe(1);
    if (script !== 'hang') await answered; // the word has come
    await node.stop();
    expect(await recordOf(client)).toMatchObject(ended);
    expect(await seen).not.toContain('[DONE]');
    expect(Number((await client.call('GET', '/v1/balance')).json.held.exact)).toBe(0);
    await expect.poll(() => stage.upstream.open()).toBe(0);
  },
);

test('a caller who stops reading pays for the reasoning that comes after that', async () => {
  const client = await stage.test.client();
  const megabyte = chunk({ content: 'x'.repeat(1_000_000) });
  stage.upstream.script('thinker', {
    stream: [...Array.from({ length: 30 }, () => megabyte), chunk({}, {}, 'stop'), last_chunk, done],
  });
  const { port } = new URL(stage.test.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const body = JSON.stringify({ model: 'acme/thinker', stream: true, messages: hello });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${client.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  socket.pause();
  expect(await recordOf(client)).toMatchObject({ status: 499, cost: 500_060n });
  socket.destroy();
});
