import { connect } from 'node:net';
import { text as textOf } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { setAccountStatus } from '../../src/accounts/accounts.ts';
import { deleteKey } from '../../src/accounts/keys.ts';
import { default_timeouts } from '../../src/http/options.ts';
import type { Pricing } from '../../src/catalog/price.ts';
import { countInput, holdFor } from '../../src/chat/price.ts';
import { openGuard } from '../../src/net/guard.ts';
import { money_max } from '../../src/money/money.ts';
import { refusalError } from '../../src/providers/http/refusal.ts';
import { openai } from '../../src/providers/adapters/openai/adapter.ts';
import { InputRefused, NotStarted } from '../../src/providers/provider.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { rereadRoutes } from '../helpers/routes.ts';
import { callOf, configOf, startRaw } from '../providers/upstreams.ts';
import { completion, hello, setStage, yamlOf, type Stage, withUpstreamIds } from './setup.ts';
import { chunk, completionsStream, done, event, messagesStream } from './streams.ts';

/** Found by reading: ways out of a call that the other files do not take. */

let stage: Stage;
const more = `
  - id: acme/late
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: late, timeout: { first_byte: 6s, idle: 60s, total: 120s } }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
beforeEach(() => stage.test.app.db.query('delete from route_health'));
afterEach(async () => {
  vi.restoreAllMocks();
  await expectExactBooks(stage.test.app);
});
afterAll(() => stage.stop());

type Wire = { url: string; key: string };

function post(
  path: 'chat/completions' | 'messages',
  body: object,
  wire?: Wire,
  signal?: AbortSignal,
): Promise<Response> {
  const { url, key } = wire ?? { url: stage.test.url, key: stage.client.key };
  return fetch(`${url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: hello, ...(path === 'messages' && { max_tokens: 100 }), ...body }),
    ...(signal && { signal }),
  });
}

async function recordOf(response: Response): Promise<Record<string, unknown>> {
  const id = response.headers.get('x-request-id') ?? '';
  await expect
    .poll(async () => (await stage.client.call('GET', `/v1/chat/${id}`)).status, { timeout: 120_000 })
    .toBe(200);
  return JSON.parse((await stage.client.call('GET', `/v1/chat/${id}`)).text) as Record<string, unknown>;
}

async function openHolds(): Promise<number> {
  return (await stage.test.app.db.query('select from open_holds')).length;
}

test.each([
  [400, { message: "Invalid schema for function 'billing': type is missing", type: 'invalid_request_error' }],
  [400, { message: "Invalid schema for function 'authentication': type is missing" }],
  [422, { message: "tools.0.name: 'insufficient_quota' is taken; 'invalid_api_key' too" }],
  [404, { message: 'File not found: file_011CNha8iCJcU1wXNR6q4V8w', type: 'not_found_error' }],
  [431, { message: 'Request header fields too large' }],
])('a caller cannot close a route with words of its own: %i %j', (status, error) => {
  const body = JSON.stringify({ error });
  expect(refusalError({ status, retry_after: undefined, body }, [])).toBeInstanceOf(InputRefused);
});

test("an upstream's 403 about the input is the caller's fault, and one about the key is ours", () => {
  const refusal = (error: object) =>
    refusalError({ status: 403, retry_after: undefined, body: JSON.stringify({ error }) }, []);
  const flagged = refusal({ code: 403, message: 'This model requires moderation, and your input was flagged' });
  expect(flagged).toMatchObject({ name: 'InputRefused', type: 'content_policy_violation' });
  expect(refusal({ message: 'Country not supported' })).toBeInstanceOf(NotStarted);
});

const an_hour_ms = 3_600_000;

async function openRoute(name: string): Promise<void> {
  const now_ms = stage.test.app.clock.now();
  await stage.test.app.db.query(
    `insert into route_health (route, cause, openings, opened_at, retry_at) values ($1, 'upstream_error', 1, $2, $2)`,
    [name, new Date(now_ms - an_hour_ms)],
  );
  await rereadRoutes(stage.test.app);
}

async function probesTaken(): Promise<number> {
  return (await stage.test.app.db.query('select from route_health where probing_until is not null')).length;
}

test('a call without money releases the probe of an open route, and the next call with money closes the circuit', async () => {
  stage.upstream.script('gpt-x', { json: completion('healed') });
  const poor = await stage.test.client({ credit: '0.0001' });
  await openRoute('acme/oai#oai');
  const refused = await post('chat/completions', { model: 'acme/oai' }, { url: stage.test.url, key: poor.key });
  expect(refused.status).toBe(402);
  await expect.poll(probesTaken).toBe(0);
  expect((await post('chat/completions', { model: 'acme/oai' })).status).toBe(200);
});

test('a caller who disconnects releases the probe', async () => {
  stage.upstream.script('gpt-x', 'hang');
  await openRoute('acme/oai#oai');
  const leave = new AbortController();
  const left = post('chat/completions', { model: 'acme/oai' }, undefined, leave.signal).catch(() => 'left');
  await expect.poll(() => stage.upstream.open()).toBe(1);
  expect(await probesTaken()).toBe(1);
  leave.abort();
  expect(await left).toBe('left');
  stage.upstream.letGo();
  await expect.poll(probesTaken).toBe(0);
  await expect.poll(openHolds).toBe(0);
});

test('the idle time applies from the first content on, not the time until the first content', async () => {
  stage.upstream.script('late', {
    stream: [1_200, chunk({ content: 'Well' }), 5_300, ...completionsStream([' then'])],
  });
  const text = await (await post('chat/completions', { model: 'acme/late', stream: true })).text();
  expect(text).toContain(' then');
  expect(text).not.toContain('error');
});

test('a stream whose call cannot be settled never ends like a complete one', async () => {
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Half' })], then: 'cut' });
  const { holds } = stage.test.app;
  const closing = vi.spyOn(holds, 'settle').mockRejectedValue(new Error('disk full'));
  const response = await post('chat/completions', { model: 'acme/oai', stream: true });
  await expect(response.text()).rejects.toThrow('terminated');
  const [request, held] = closing.mock.calls[0] ?? [];
  vi.restoreAllMocks();
  if (request) await holds.settle(request, held);
});

test('a hold whose confirmation was lost is released', async () => {
  const { holds } = stage.test.app;
  const take = holds.hold.bind(holds);
  vi.spyOn(holds, 'hold').mockImplementation(async (request) => {
    await take(request);
    throw new Error('Connection terminated unexpectedly');
  });
  expect((await post('chat/completions', { model: 'acme/oai' })).status).toBe(503);
  await expect.poll(openHolds).toBe(0);
});

test('a connection that stays open after [DONE] is not waited for', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]), then: 'hang' });
  const started_ms = performance.now();
  const response = await post('chat/completions', { model: 'acme/oai', stream: true });
  expect((await response.text()).endsWith(done)).toBe(true);
  expect(performance.now() - started_ms).toBeLessThan(20_000);
  expect(await recordOf(response)).toMatchObject({ status: 200, cost: { exact: '0.000070' } });
  await expect.poll(() => stage.upstream.open()).toBe(0);
  expect(await stage.test.app.db.query('select from route_health')).toHaveLength(0);
});

test('a stream that ends without content is a failure: the next route is tried and nobody pays for it', async () => {
  stage.upstream.script('first', { stream: [done] });
  stage.upstream.script('second', { stream: messagesStream(['from the second']) });
  for (const path of ['chat/completions', 'messages'] as const) {
    const text = await (await post(path, { model: 'acme/two', stream: true })).text();
    expect(text).toContain('from the second');
  }
  stage.upstream.script('claude-x', { stream: [event({ type: 'message_stop' })] });
  for (const path of ['chat/completions', 'messages'] as const) {
    const response = await post(path, { model: 'acme/ant', stream: true });
    expect(response.status).toBe(502);
    await response.text();
    expect(await recordOf(response)).toMatchObject({ cost: { exact: '0.000000' } });
  }
});

test('a stream with several choices is complete only when each has ended', async () => {
  const both = chunk({ content: 'a' }).replace('"choices":[{', '"choices":[{"index":1,"delta":{"content":"b"}},{');
  stage.upstream.script('gpt-x', { stream: [both, chunk({}, {}, 'stop')] });
  const text = await (await post('chat/completions', { model: 'acme/oai', n: 2, stream: true })).text();
  expect(text).toContain('"type":"upstream_error"');
  expect(text).not.toContain('[DONE]');
});

test('the 1 output token of a message_start does not count as the output that follows', async () => {
  const stream = messagesStream(['many words, '.repeat(100)]).map((part) =>
    part.replace('"usage":{"output_tokens":5}', '"usage":{}'),
  );
  stage.upstream.script('claude-x', { stream });
  for (const path of ['messages', 'chat/completions'] as const) {
    const response = await post(path, { model: 'acme/ant', stream: true });
    await response.text();
    expect(await recordOf(response)).toMatchObject({
      counted_here: true,
      usage: { input_tokens: 10, output_tokens: 300 },
    });
  }
});

test('a refusal whose explanation never ends is passed on at once', async () => {
  const head = 'HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nBusy';
  const raw = await startRaw((socket) => void socket.on('data', () => socket.write(head)));
  const provider = openai.openChat(configOf('openai', raw.url), { guard: openGuard() });
  const started_ms = performance.now();
  const refused = provider.send(callOf('completions'), AbortSignal.timeout(240_000));
  await expect(refused).rejects.toMatchObject({ name: 'NotStarted', reason: 'unavailable' });
  expect(performance.now() - started_ms).toBeLessThan(60_000);
  await provider.close?.();
  await raw.stop();
});

test('a finish reason that no database accepts still leaves a record', async () => {
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'x' }), chunk({}, {}, 'st\u0000op \ud83d'), done] });
  const response = await post('chat/completions', { model: 'acme/oai', stream: true });
  await response.text();
  expect(await recordOf(response)).toMatchObject({ status: 200, finish: 'stop \ufffd' });
});

test('a key over its limit gets 403 also when the account has less than the whole hold', async () => {
  const { key } = await stage.test.client({ credit: '0.005', limit: '0.001' });
  const response = await post('chat/completions', { model: 'acme/oai' }, { url: stage.test.url, key });
  expect([response.status, await response.json()]).toMatchObject([403, { error: { type: 'permission_error' } }]);
});

test("a refusal within a stream is the caller's mistake, too", async () => {
  const error = { type: 'BadRequestError', message: 'This model’s maximum context length is 8192 tokens', code: 400 };
  stage.upstream.script('first', { stream: [`data: ${JSON.stringify({ error })}\n\n`] });
  stage.upstream.script('second', { stream: messagesStream(['not asked']) });
  const response = await post('chat/completions', { model: 'acme/two', stream: true });
  expect(response.status).toBe(400);
  expect(await response.json()).toMatchObject({
    error: { type: 'invalid_request', message: expect.stringContaining(error.message) },
  });
  expect(await recordOf(response)).toMatchObject({ status: 400, cost: { exact: '0.000000' } });
});

test('tokens that no upstream counted are reported as they are charged', async () => {
  const { usage: _, ...without } = completion('some words');
  stage.upstream.script('gpt-x', { json: without });
  const response = await post('messages', { model: 'acme/oai' });
  const { usage } = (await response.json()) as { usage: { input_tokens: number; output_tokens: number } };
  const record = await recordOf(response);
  expect(record['usage']).toMatchObject({ input_tokens: usage.input_tokens, output_tokens: usage.output_tokens });
});

test('the time until the first content begins with the call, not with the last route', async () => {
  stage.upstream.script('first', 'hang');
  stage.upstream.script('second', { stream: messagesStream(['x']) });
  const response = await post('messages', { model: 'acme/two', stream: true });
  await response.text();
  expect(Number((await recordOf(response))['first_content_ms'])).toBeGreaterThanOrEqual(1_000);
});

test('a whole response may take as long as its model permits before the connection is cut', () => {
  expect(default_timeouts.silence_ms).toBeGreaterThan(600_000);
});

test('an estimate never exceeds what a balance or a column can hold', () => {
  const rows: Pricing['rows'] = [{ unit: 'output_token', amount: '600', per: 1 }];
  expect(holdFor({ currency: 'USD', rate: '30000', rows }, 0, 16_000_000)).toBe(money_max);
  const size = { ascii_bytes: 0, other_bytes: 0, images: 0, documents: 1_280_000, document_bytes: 0 };
  expect(countInput(size)).toBeLessThan(2 ** 31);
});

/** The time that the database takes over the end of a hold in these tests: longer than all else that a stop waits for. */
const settling_ms = 300;

test('a node that stops during a whole response ends its hold first', async () => {
  stage.upstream.script('gpt-x', 'hang');
  const node = await stage.test.beside({ yaml: yamlOf(stage.upstream), worker: false });
  const left = post('chat/completions', { model: 'acme/oai' }, { url: node.url, key: stage.client.key }).catch(
    () => 'cut',
  );
  await expect.poll(() => stage.upstream.open()).toBe(1);
  const { holds } = node.app;
  const settle = holds.settle.bind(holds);
  vi.spyOn(holds, 'settle').mockImplementation(async (request, held) => {
    await new Promise((resolve) => setTimeout(resolve, settling_ms));
    return settle(request, held);
  });
  await node.stop();
  await left;
  expect(await openHolds()).toBe(0);
});

test('a node that stops during a stream charges what it delivered and leaves its record', async () => {
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'Half of it' })], then: 'hang' });
  const node = await stage.test.beside({ yaml: yamlOf(stage.upstream), worker: false });
  const response = await post(
    'chat/completions',
    { model: 'acme/oai', stream: true },
    { url: node.url, key: stage.client.key },
  );
  const { holds } = node.app;
  const settle = holds.settle.bind(holds);
  vi.spyOn(holds, 'settle').mockImplementation(async (request, held) => {
    await new Promise((resolve) => setTimeout(resolve, settling_ms));
    return settle(request, held);
  });
  const reading = response.text().catch(() => 'cut');
  await node.stop();
  expect(await reading).toBe('cut');
  const id = response.headers.get('x-request-id');
  const rows = await stage.test.app.db.query('select status, cost > 0 as paid from chat_calls where id = $1', [id]);
  expect(rows).toEqual([{ status: 503, paid: true }]);
});

test('a reload, a deleted key and a closed account break no running stream', async () => {
  const { key, key_id, account_id } = await stage.test.client();
  const texts = ['one ', 'two ', 'three'];
  const slowly = completionsStream(texts, [10, 5]).flatMap((part) => [part, 300]);
  stage.upstream.script('gpt-x', { stream: slowly });
  const response = await post('chat/completions', { model: 'acme/oai', stream: true }, { url: stage.test.url, key });
  await stage.test.configure(yamlOf(stage.upstream, more));
  const { db, clock } = stage.test.app;
  await deleteKey(db, key_id, new Date(clock.now()));
  await setAccountStatus(db, account_id, 'blocked');
  stage.upstream.script('claude-x', { stream: messagesStream(['on new connections']) });
  expect(await (await post('messages', { model: 'acme/ant', stream: true })).text()).toContain('message_stop');
  expect((await response.text()).endsWith(done)).toBe(true);
  await expect.poll(openHolds).toBe(0);
});

test('a caller of HTTP/1.0 gets the bytes of the stream and the end of the connection', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const body = JSON.stringify({ model: 'acme/oai', stream: true, messages: hello });
  const socket = connect(Number(new URL(stage.test.url).port), '127.0.0.1');
  socket.write(
    `POST /v1/chat/completions HTTP/1.0\r\nauthorization: Bearer ${stage.client.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  const [head = '', rest = ''] = (await textOf(socket)).split(/\r\n\r\n(.*)/s);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(head).not.toMatch(/transfer-encoding/i);
  expect(withUpstreamIds(rest)).toBe(completionsStream(['Hi']).join('').replaceAll('gpt-x', 'acme/oai'));
});

/** A call waits 3 s for its settlement, then has its end written to the journal: the refusal comes in between. */
const refusal_ms = 3_300;
const writing_ms = 700;

test('a settlement that the database refuses while its end is written to the journal ends no process', async () => {
  const { app } = stage.test;
  const { holds, journal } = app;
  // Once: the journal is replayed each second, and what the database refuses there stays there for good.
  vi.spyOn(holds, 'settle').mockImplementationOnce(
    () => new Promise((_, reject) => setTimeout(() => reject(new Error('the database refuses')), refusal_ms)),
  );
  const write = journal.write.bind(journal);
  vi.spyOn(journal, 'write').mockImplementation(async (entries) => {
    await new Promise((resolve) => setTimeout(resolve, writing_ms));
    return write(entries);
  });
  stage.upstream.script('gpt-x', { json: completion('Hello.') });
  const unheard: unknown[] = [];
  const hear = (error: unknown) => void unheard.push(error);
  process.on('unhandledRejection', hear);
  const response = await post('chat/completions', { model: 'acme/oai' });
  await response.text();
  process.off('unhandledRejection', hear);
  expect(response.status).toBe(200);
  expect(unheard).toEqual([]);
  vi.restoreAllMocks();
  await expect.poll(() => journal.pending()).toEqual([]);
  expect(await recordOf(response)).toMatchObject({ status: 200 });
});
