import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { completion, hello, message, setStage, yamlOf, type Stage } from './setup.ts';
import { chunk } from './streams.ts';

/** The limit on calls of a key under way at once, and on the time of one that nobody reads. */

let stage: Stage;
const at_once = 3;
const patience = { timeout: 120_000 };
const more = `
  - id: acme/stalled
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: stalled, timeout: { first_byte: 30s, idle: 3s, total: 60s } }]
  - id: acme/patient
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: stalled }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
  await stage.test.configure(yamlOf(stage.upstream, more, '', { chat_at_once: at_once }));
});
beforeEach(() => {
  stage.upstream.script('gpt-x', 'hang');
  stage.upstream.script('claude-x', 'hang');
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

function post(path: string, body: object, client: Client, signal?: AbortSignal): Promise<Response> {
  return fetch(`${stage.test.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: hello, max_tokens: 10, ...body }),
    ...(signal && { signal }),
  });
}

/** Calls of both styles, streamed and not, that their upstream never answers. */
async function fill(client: Client, leave: AbortController): Promise<Promise<unknown>[]> {
  const open_before = stage.upstream.open();
  const calls = Array.from({ length: at_once }, (_, i) => {
    const [path, model] = i % 2 === 0 ? ['chat/completions', 'acme/oai'] : ['messages', 'acme/ant'];
    return post(path ?? '', { model, stream: i !== 0 }, client, leave.signal).catch(() => 'left');
  });
  await expect.poll(() => stage.upstream.open(), patience).toBe(open_before + at_once);
  return calls;
}

test('a key with too many calls at once gets 429 rate_limit in each style with Retry-After until a call ends', async () => {
  const client = await stage.test.client();
  const other = await stage.test.client({ account_id: client.account_id });
  const leave = new AbortController();
  const calls = await fill(client, leave);
  for (const stream of [false, true]) {
    const first = await post('chat/completions', { model: 'acme/oai', stream }, client);
    expect([first.status, first.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await first.json()).toMatchObject({ error: { type: 'rate_limit', param: null } });
    const second = await post('messages', { model: 'acme/ant', stream }, client);
    expect([second.status, second.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await second.json()).toMatchObject({ type: 'error', error: { type: 'rate_limit' } });
  }
  const others = new AbortController();
  const other_calls = await fill(other, others); // another key of the same account has places of its own
  others.abort();
  leave.abort();
  await Promise.all([...calls, ...other_calls]);
  expect((await post('chat/completions', { model: 'acme/oai' }, client)).status).toBe(429); // they are read on
  stage.upstream.letGo();
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  await expect
    .poll(async () => (await post('chat/completions', { model: 'acme/oai' }, client)).status, patience)
    .toBe(200);
  await expect.poll(() => stage.test.app.limits.chat_calls.state.in_use, patience).toBe(0);
});

function stall(client: Client, model: string): Socket {
  const { port } = new URL(stage.test.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const body = JSON.stringify({ model, stream: true, messages: hello });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${client.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  return socket.pause();
}

const megabyte = chunk({ content: 'x'.repeat(1_000_000) });

test('callers who read nothing keep their places', async () => {
  const client = await stage.test.client();
  stage.upstream.script('stalled', { stream: Array.from({ length: 40 }, () => megabyte), then: 'hang' });
  const sockets = Array.from({ length: at_once }, () => stall(client, 'acme/patient'));
  await expect.poll(() => stage.upstream.open(), patience).toBe(at_once);
  expect((await post('chat/completions', { model: 'acme/oai' }, client)).status).toBe(429);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => stage.upstream.open(), patience).toBe(0);
  await expect.poll(() => stage.test.app.limits.chat_calls.state.in_use, patience).toBe(0);
});

test('a caller who reads nothing holds its upstream for at most twice the idle time, and the upstream is not blamed', async () => {
  const client = await stage.test.client();
  const asked_before = stage.upstream.requests.length;
  stage.upstream.script('stalled', { stream: Array.from({ length: 40 }, () => megabyte), then: 'hang' });
  const sockets = Array.from({ length: at_once }, () => stall(client, 'acme/stalled'));
  await expect.poll(() => stage.upstream.requests.length, patience).toBe(asked_before + at_once);
  await expect.poll(() => stage.upstream.open(), patience).toBe(0);
  await expect.poll(() => stage.test.app.limits.chat_calls.state.in_use, patience).toBe(0);
  expect(await stage.test.app.db.query('select from route_health')).toHaveLength(0);
  const statuses = async () => {
    const of_account = 'select status from chat_calls where account_id = $1';
    const rows = await stage.test.app.db.query<{ status: number }>(of_account, [client.account_id]);
    return rows.map(({ status }) => status);
  };
  await expect.poll(statuses, patience).toEqual(Array.from({ length: at_once }, () => 499));
  for (const socket of sockets) socket.destroy();
});

test('a caller who reads slowly gets the whole response', async () => {
  const client = await stage.test.client();
  const piece = chunk({ content: 'x'.repeat(200_000) });
  stage.upstream.script('stalled', { stream: [...Array.from({ length: 20 }, () => piece), 'data: [DONE]\n\n'] });
  const response = await post('chat/completions', { model: 'acme/patient', stream: true }, client);
  let size = 0;
  for await (const bytes of response.body ?? []) {
    size += bytes.length;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(size).toBeGreaterThan(4_000_000);
});
