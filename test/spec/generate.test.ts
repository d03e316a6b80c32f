// isolated: it replaces a global of its process
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';

/** Specification 2.5, 2.6 and 4.1: POST /v1/generate, with `wait`, Idempotency-Key and metadata. */

const yaml = `
version: 1
${limits({ failed_per_24h: 100_000 })}
`;

const clock = testClock();
let service: TestApp; // with a worker
let idle: TestApp; // without one: what is created stays queued
let client: Client;
let quiet: Client;

beforeAll(async () => {
  service = await startTestApp({ yaml });
  idle = await startTestApp({ yaml, clock, worker: false });
});
afterAll(async () => {
  await service.stop();
  await idle.stop();
});
beforeEach(async () => {
  client = await service.client();
  quiet = await idle.client();
});
afterEach(async () => {
  vi.restoreAllMocks();
  await expectExactBooks(service.app);
  await expectExactBooks(idle.app);
});

const small = { width: 16, height: 16 };
const order = (prompt: string) => ({ model: 'sandbox/image', input: { prompt, ...small } });
const post = (by: Client, body: unknown, query = '', headers: Record<string, string> = {}): Promise<Answered> =>
  by.call('POST', `/v1/generate${query}`, body, headers);
const get = (by: Client, id: string): Promise<Answered> => by.call('GET', `/v1/tasks/${id}`);
const count = async (by: Client) => (await by.call('GET', '/v1/tasks?limit=100')).json.data.length;
const held = async (by: Client) => (await by.call('GET', '/v1/balance')).json.held.exact;
const refusal = (status: number, param: string) => ({ status, json: { error: { type: 'invalid_request', param } } });

it('S2.5-1 input is an object that must match the input_schema of its model', async () => {
  const timed = { prompt: 'x', duration: 2 };
  expect((await post(quiet, { model: 'sandbox/video', input: timed })).status).toBe(202);
  expect(await post(quiet, { model: 'sandbox/image', input: timed })).toMatchObject(refusal(422, 'input.duration'));
  for (const input of [null, [], 'x', 7, {}]) {
    expect(await post(quiet, { model: 'sandbox/image', input })).toMatchObject({ status: 422 });
  }
});

it('S2.5-2 a video model accepts prompt, aspect_ratio, resolution and duration', async () => {
  const input = { prompt: 'x', aspect_ratio: 'adaptive', resolution: '720p', duration: 1.5 };
  expect((await post(quiet, { model: 'sandbox/video', input })).status).toBe(202);
  const wrong = { ...input, resolution: '720' };
  expect(await post(quiet, { model: 'sandbox/video', input: wrong })).toMatchObject(refusal(422, 'input.resolution'));
});

it('S2.5-3 an image model accepts prompt', async () => {
  expect((await post(quiet, { model: 'sandbox/image', input: { prompt: 'x' } })).status).toBe(202);
});

it('S2.6-1 the id of a model selects it, and an unknown id gets 404', async () => {
  const { json: list } = await quiet.call('GET', '/v1/models');
  const drawn = list.data.filter(({ input_schema }) => String(input_schema.required) === 'prompt');
  expect(drawn.length).toBeGreaterThan(3);
  for (const { id } of drawn) {
    expect((await post(quiet, { model: id, input: { prompt: 'x' } })).json.model).toBe(id);
  }
  expect(await post(quiet, { model: 'no/such', input: { prompt: 'x' } })).toMatchObject({
    status: 404,
    json: { error: { type: 'not_found', param: 'model' } },
  });
});

it('S2.7-1 an account has several keys, and each acts for the whole account', async () => {
  const second = await idle.client({ account_id: quiet.account_id });
  expect(second.key).not.toBe(quiet.key);
  const { json: task } = await post(quiet, order('x'));
  expect((await get(second, task.id)).json.id).toBe(task.id);
  expect(await held(second)).toBe('0.010000');
});

it('S2.7-2 each key may have its own monthly spend limit', async () => {
  const limited = await idle.client({ account_id: quiet.account_id, limit: '0.01' });
  expect((await post(limited, order('x'))).status).toBe(202);
  expect((await post(limited, order('x'))).status).toBe(403);
  expect((await post(quiet, order('x'))).status).toBe(202);
});

it('S4.1-1 POST /v1/generate creates a task and holds its estimated cost', async () => {
  const { json: task } = await post(quiet, { model: 'sandbox/image', input: { prompt: 'x', n: 3 } });
  expect((await get(quiet, task.id)).json.id).toBe(task.id);
  expect([task.estimated_cost.exact, await held(quiet)]).toEqual(['0.030000', '0.030000']);
});

it('S4.1-2 POST /v1/generate?wait=60 returns when the task is finished', async () => {
  const { json: task } = await post(client, order('[[delay 700ms]] x'), '?wait=60');
  expect(task).toMatchObject({ status: 'succeeded', error: null });
});

it('S4.1-3 POST /v1/generate without model gets 400 invalid_request', async () => {
  expect(await post(quiet, { input: { prompt: 'x' } })).toMatchObject(refusal(400, 'model'));
  for (const model of [null, '', 7, ['sandbox/image']]) {
    expect(await post(quiet, { model, input: { prompt: 'x' } })).toMatchObject(refusal(400, 'model'));
  }
});

it('S4.1-4 POST /v1/generate without input gets 400 invalid_request', async () => {
  expect(await post(quiet, { model: 'sandbox/image' })).toMatchObject(refusal(400, 'input'));
});

it('S4.1-5 POST /v1/generate with input that does not match gets a 422 invalid_request that names the field', async () => {
  const answer = await post(quiet, { model: 'sandbox/image', input: { prompt: 'x', width: 3 } });
  expect(answer).toMatchObject(refusal(422, 'input.width'));
  expect(answer.json.error.message).toContain('input.width');
});

it('S4.1-6 webhook_url is optional and must be reachable from the internet', async () => {
  expect((await post(quiet, order('x'))).status).toBe(202);
  const reachable = await post(quiet, { ...order('x'), webhook_url: 'https://example.com/hook' });
  expect(reachable.status).toBe(202);
  const local = await post(quiet, { ...order('x'), webhook_url: 'http://127.0.0.1:8080/hook' });
  expect(local).toMatchObject(refusal(422, 'webhook_url'));
  expect(local.json.error.message).toContain('MEDLEY_ALLOW_PRIVATE=1');
});

it('S4.1-8 POST /v1/generate returns 202 with the task', async () => {
  const answer = await post(quiet, order('x'));
  expect(answer).toMatchObject({ status: 202, json: { status: 'queued', model: 'sandbox/image' } });
});

it('S4.1-9 each successful POST /v1/generate creates a new task and holds its cost', async () => {
  const ids = new Set<string>();
  for (let i = 0; i < 3; i++) ids.add((await post(quiet, order('the same'))).json.id);
  expect(ids.size).toBe(3);
  expect(await held(quiet)).toBe('0.030000');
});

it('D-wait-1 wait is a number of whole seconds, and wait=0 returns at once', async () => {
  const { json: created } = await post(client, order('[[delay 1h]] x'), '?wait=0');
  expect(created.status).toBe('queued'); // as it was at its creation: nobody has looked again
  const started_ms = performance.now();
  const { json: task } = await post(client, order('[[delay 1h]] x'), '?wait=1');
  expect(performance.now() - started_ms).toBeGreaterThanOrEqual(1_000);
  expect(task.completed_at).toBeNull();
});

it('D-wait-2 wait above 300 counts as 300', async () => {
  for (const wait of ['301', '86400', '1000000000', '99999999999999999999']) {
    const timeouts = vi.spyOn(globalThis, 'setTimeout');
    expect((await post(client, order('[[delay 100ms]] x'), `?wait=${wait}`)).json.status).toBe('succeeded');
    const delays_ms = timeouts.mock.calls.map(([, ms]) => ms); // those of scheduled jobs among them, which are long, too
    expect(delays_ms).toContain(300_000);
    expect(delays_ms).not.toContain(Number(wait) * 1_000);
    timeouts.mockRestore();
  }
});

it('D-wait-3 wait that is not a whole number from 0 up gets a 400 invalid_request that names it', async () => {
  for (const wait of ['-1', '-0', '1.5', '1e2', '0x10', 'abc', '', 'true', '%201', '1%0A', 'NaN', 'Infinity']) {
    const answer = await post(quiet, order('x'), `?wait=${wait}`);
    expect(answer).toMatchObject(refusal(400, 'wait'));
    expect(answer.json.error.message).toContain('wait');
  }
  expect(await count(quiet)).toBe(0);
});

it('D-wait-4 a call with wait returns the final task if it finishes in time', async () => {
  const { json: task } = await post(client, order('x'), '?wait=120');
  expect(task).toMatchObject({ status: 'succeeded', output: [{ type: 'image' }] });
  expect((await get(client, task.id)).json).toEqual(task);
});

it('D-wait-5 a call with wait returns 202 with the unfinished task when the time is over', async () => {
  const { status, json: task } = await post(client, order('[[delay 1h]] x'), '?wait=1');
  expect(status).toBe(202);
  expect(['queued', 'running']).toContain(task.status); // a busy machine may not have begun with it
  expect(task).toMatchObject({ output: [], completed_at: null });
});

it('D-wait-6 a caller that disconnects while it waits does not cancel the task', async () => {
  const dropped = new AbortController();
  const request = fetch(`${service.url}/v1/generate?wait=120`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(order('[[delay 6s]] x')),
    signal: dropped.signal,
  });
  request.catch(() => undefined);
  const tasks = async () => (await client.call('GET', '/v1/tasks')).json.data;
  await vi.waitUntil(async () => (await tasks())[0]?.started_at, { interval: 20, timeout: 120_000 });
  dropped.abort();
  await vi.waitUntil(async () => (await tasks())[0]?.completed_at, { interval: 20, timeout: 120_000 });
  expect(await tasks()).toMatchObject([{ status: 'succeeded' }]);
});

it('D-wait-7 waiting calls hold no database connection', async () => {
  let answered = 0;
  const waiting = Array.from({ length: 30 }, () => post(quiet, order('x'), '?wait=120').finally(() => (answered += 1)));
  await vi.waitUntil(async () => (await count(quiet)) === 30, { interval: 20, timeout: 120_000 });
  expect(await held(quiet)).toBe('0.300000');
  expect(answered).toBe(0); // with a connection for each, there would have been none to look by
  for (const { id } of (await quiet.call('GET', '/v1/tasks?limit=100')).json.data)
    expect((await quiet.call('POST', `/v1/tasks/${id}/cancel`)).status).toBe(200);
  for (const { json } of await Promise.all(waiting)) expect(json.error.type).toBe('canceled');
});

const keyed = (by: Client, key: string, body: unknown = order('x')): Promise<Answered> =>
  post(by, body, '', { 'idempotency-key': key });

it('D-idempotency-1 an Idempotency-Key has 1 to 255 characters', async () => {
  expect((await keyed(quiet, 'a')).status).toBe(202);
  expect((await keyed(quiet, 'b'.repeat(255))).status).toBe(202);
  expect(await keyed(quiet, 'c'.repeat(256))).toMatchObject(refusal(400, 'idempotency-key'));
  expect(await keyed(quiet, '')).toMatchObject(refusal(400, 'idempotency-key'));
});

it('D-idempotency-2 a repeated Idempotency-Key with the same body returns the same task with idempotency-replayed: true', async () => {
  const first = await keyed(quiet, 'order 7');
  const second = await keyed(quiet, 'order 7');
  expect([first.status, second.status]).toEqual([202, 202]);
  expect(second.json).toEqual(first.json);
  expect(second.headers.get('idempotency-replayed')).toBe('true');
  expect([await count(quiet), await held(quiet)]).toEqual([1, '0.010000']);
});

it('D-idempotency-3 a repeated Idempotency-Key with another body gets 422', async () => {
  await keyed(quiet, 'k');
  expect(await keyed(quiet, 'k', order('another'))).toMatchObject(refusal(422, 'idempotency-key'));
  expect(await count(quiet)).toBe(1);
});

it('D-idempotency-4 a repeated Idempotency-Key gets 409 with Retry-After: 1 while the first call is in flight', async () => {
  const name = `${quiet.account_id} k`;
  await idle.app.db.tx(async (tx) => {
    await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [name]); // as the first request holds it
    const second = await keyed(quiet, 'k');
    expect(second).toMatchObject({ status: 409, json: { error: { type: 'invalid_request', code: 'conflict' } } });
    expect(second.headers.get('retry-after')).toBe('1');
  });
  const answers = await Promise.all(Array.from({ length: 8 }, () => keyed(quiet, 'k')));
  const accepted = answers.filter(({ status }) => status === 202);
  expect(new Set(answers.map(({ status }) => status)).isSubsetOf(new Set([202, 409]))).toBe(true);
  expect(new Set(accepted.map(({ json }) => json.id)).size).toBe(1);
  expect(await count(quiet)).toBe(1);
});

it('D-idempotency-5 an Idempotency-Key is shared by the API keys of one account and by no other account', async () => {
  const other = await idle.client();
  const same = await idle.client({ account_id: quiet.account_id });
  const first = await keyed(quiet, 'k');
  const foreign = await keyed(other, 'k', order('of another account'));
  expect(foreign.status).toBe(202);
  expect(foreign.headers.get('idempotency-replayed')).toBe('false');
  expect((await keyed(same, 'k')).json.id).toBe(first.json.id);
});

it('D-idempotency-6 an Idempotency-Key is remembered for 24 hours', async () => {
  clock.stop('2031-05-10T12:00:00.000Z');
  const { json: first } = await keyed(quiet, 'k');
  clock.pass(86_400_000 - 1);
  expect((await keyed(quiet, 'k')).json.id).toBe(first.id);
  clock.pass(1);
  const again = await keyed(quiet, 'k', order('another'));
  clock.run(Date.now());
  expect(again.status).toBe(202);
  expect(again.json.id).not.toBe(first.id);
});

it('D-idempotency-7 an Idempotency-Key is stored only after all checks have passed', async () => {
  const poor = await idle.client({ credit: '0.01' });
  expect((await keyed(poor, 'k', { model: 'sandbox/image', input: { prompt: 'x', n: 2 } })).status).toBe(402);
  expect((await keyed(poor, 'k', { model: 'sandbox/image', input: {} })).status).toBe(422);
  expect((await keyed(poor, 'k', order('affordable'))).status).toBe(202);
});

const withMetadata = (metadata: unknown): Promise<Answered> => post(quiet, { ...order('x'), metadata });

it('D-task-7 metadata is returned with the task', async () => {
  const metadata = { order: '17', 'ключ ✓': '', ['__proto__']: 'own' };
  const { json: created } = await withMetadata(metadata);
  expect(created.metadata).toEqual(metadata);
  expect((await get(quiet, created.id)).json.metadata).toEqual(metadata);
  expect((await post(quiet, order('x'))).json.metadata).toEqual({});
});

it('D-task-8 metadata has at most 16 pairs', async () => {
  const pairs = (length: number) => Object.fromEntries(Array.from({ length }, (_, i) => [`k${i}`, 'v']));
  expect((await withMetadata(pairs(16))).status).toBe(202);
  expect(await withMetadata(pairs(17))).toMatchObject(refusal(400, 'metadata'));
});

it('D-task-9 metadata keys have at most 64 characters', async () => {
  expect((await withMetadata({ ['k'.repeat(64)]: 'v' })).status).toBe(202);
  expect(await withMetadata({ ['k'.repeat(65)]: 'v' })).toMatchObject(refusal(400, 'metadata'));
});

it('D-task-10 metadata values have at most 512 characters', async () => {
  expect((await withMetadata({ k: 'v'.repeat(512) })).status).toBe(202);
  expect(await withMetadata({ k: 'v'.repeat(513) })).toMatchObject(refusal(400, 'metadata'));
});

it('D-task-11 metadata values are strings', async () => {
  for (const value of [1, true, null, {}, ['v']]) {
    expect(await withMetadata({ k: value })).toMatchObject(refusal(400, 'metadata'));
  }
  for (const metadata of ['text', 1, ['v']])
    expect(await withMetadata(metadata)).toMatchObject(refusal(400, 'metadata'));
});

it('D-task-12 metadata with NUL is refused', async () => {
  expect(await withMetadata({ k: 'a\0b' })).toMatchObject(refusal(400, 'metadata'));
  expect(await withMetadata({ 'a\0b': 'v' })).toMatchObject(refusal(400, 'metadata'));
});
