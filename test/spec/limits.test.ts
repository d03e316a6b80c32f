// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { finish } from '../../src/tasks/finish.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { elapse, stopElapsing, testClock } from '../helpers/clock.ts';

/** Specification 8: limits, as they are without any configuration. */

const clock = testClock();
let service: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({ clock, worker: false });
  stopElapsing(true); // windows are counted to the millisecond, however slow this machine is
});
afterAll(() => service.stop());
beforeEach(async () => {
  clock.stop('2031-05-10T12:00:00.000Z');
  client = await service.client();
});
afterEach(() => expectExactBooks(service.app));

const order = (n = 1) => ({ model: 'sandbox/image', input: { prompt: 'x', n } });
const generate = (by = client, n = 1): Promise<Answered> => by.call('POST', '/v1/generate', order(n));

/** Sends `count` requests, 20 at a time, and counts the statuses of their answers. */
async function fire(count: number, send: (i: number) => Promise<{ status: number }>): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  for (let first = 0; first < count; first += 20) {
    const some = Array.from({ length: Math.min(20, count - first) }, (_, i) => send(first + i));
    for (const { status } of await Promise.all(some)) counts[status] = (counts[status] ?? 0) + 1;
  }
  return counts;
}

/** A generation that fails now, after its start. */
async function failOne(by = client): Promise<void> {
  const { json } = await generate(by);
  await finish(
    service.app,
    { account_id: by.account_id, task_id: json.id },
    { status: 'failed', type: 'upstream_error', message: 'x', counts: true, attempt: 'failed', reason: 'x' },
  );
}

/** Failures a minute apart; beyond 25 they come from tasks that were created before. */
async function failMinutely(count: number): Promise<void> {
  const tasks: string[] = [];
  for (let i = 0; i < count; i++) tasks.push((await generate()).json.id);
  for (const task_id of tasks) {
    await finish(
      service.app,
      { account_id: client.account_id, task_id },
      { status: 'failed', type: 'upstream_error', message: 'x', counts: true, attempt: 'failed', reason: 'x' },
    );
    clock.pass(60_000);
  }
}

const retryAfter = (answer: Answered) => answer.headers.get('retry-after');

it('S8-1 a key that sends more than 60 requests per minute to POST /v1/generate gets 429 rate_limit', async () => {
  expect(await fire(60, () => generate())).toEqual({ 202: 60 });
  expect(await generate()).toMatchObject({ status: 429, json: { error: { type: 'rate_limit' } } });
});

it('S8-2 a key that sends more than 600 chat requests per minute gets 429 rate_limit', async () => {
  const chat = () => client.call('POST', '/v1/chat/completions', { model: 'no/such' });
  expect(await fire(600, chat)).toEqual({ 400: 600 });
  expect(await chat()).toMatchObject({ status: 429, json: { error: { type: 'rate_limit' } } });
});

it('S8-3 an account with 25 failed generations in 24 hours gets 429 rate_limit_error with Retry-After', async () => {
  for (let i = 0; i < 24; i++) await failOne();
  expect((await generate()).status).toBe(202);
  await failOne();
  const refused = await generate();
  expect(refused).toMatchObject({ status: 429, json: { error: { type: 'rate_limit_error' } } });
  expect(retryAfter(refused)).toBe('86400');
});

it('S8-4 failed generations count per account, whichever key made them', async () => {
  const second = await service.client({ account_id: client.account_id });
  const other = await service.client();
  for (let i = 0; i < 13; i++) await failOne();
  for (let i = 0; i < 12; i++) await failOne(second);
  expect([(await generate()).status, (await generate(second)).status, (await generate(other)).status]).toEqual([
    429, 429, 202,
  ]);
});

it('S8-5 an account may create tasks again after the pause for failed generations', async () => {
  for (let i = 0; i < 25; i++) await failOne();
  clock.pass(86_400_000 - 1);
  expect(retryAfter(await generate())).toBe('1');
  clock.pass(1);
  expect((await generate()).status).toBe(202);
});

it('S8-6 a key at its monthly spend limit gets 403 permission_error until the next month', async () => {
  clock.stop('2031-01-31T23:59:59.000Z');
  const limited = await service.client({ limit: '0.03' });
  const { json: task } = await generate(limited, 3); // exactly the limit
  expect(await generate(limited)).toMatchObject({ status: 403, json: { error: { type: 'permission_error' } } });
  await finish(
    service.app,
    { account_id: limited.account_id, task_id: task.id },
    { status: 'succeeded', files: [], units: { image: '3' } },
  );
  expect((await generate(limited)).status).toBe(403);
  clock.stop('2031-02-01T00:00:00.000Z');
  expect((await generate(limited)).status).toBe(202);
});

it('S8-7 a task whose hold exceeds the available balance gets 402', async () => {
  const exact = await service.client({ credit: '0.02' });
  expect((await generate(exact, 2)).status).toBe(202);
  const short = await service.client({ credit: '0.019999' });
  expect(await generate(short, 2)).toMatchObject({ status: 402, json: { error: { type: 'insufficient_balance' } } });
  expect((await generate(short, 1)).status).toBe(202);
});

it('D-fail-5 Retry-After is the whole seconds, rounded up, until the 25th newest failure is 24 hours old', async () => {
  await failMinutely(27); // at minutes 0 to 26; the 25th newest is that of minute 2
  expect(retryAfter(await generate())).toBe(String(86_400 - 25 * 60));
  clock.pass(500);
  expect(retryAfter(await generate())).toBe(String(86_400 - 25 * 60));
  clock.stop('2031-05-11T12:01:59.999Z');
  expect(retryAfter(await generate())).toBe('1');
  clock.stop('2031-05-11T12:02:00.000Z');
  expect((await generate()).status).toBe(202);
});

it('D-limits-1 at most 60 requests are accepted in any 60 seconds', async () => {
  expect(await fire(30, () => generate())).toEqual({ 202: 30 });
  elapse(30_000);
  expect(await fire(40, () => generate())).toEqual({ 202: 30, 429: 10 });
  elapse(20_000); // 50 s after the first: all of them still count
  const refused = await generate();
  expect(refused.status).toBe(429);
  expect(retryAfter(refused)).toMatch(/^1[01]$/);
  elapse(10_001); // a minute after the first 30
  expect(await fire(40, () => generate())).toEqual({ 202: 30, 429: 10 });
});

it('D-limits-2 only requests that the rate limit itself refused do not count in it', async () => {
  const poor = await service.client({ credit: '0' });
  const refused = [
    () => poor.call('POST', '/v1/generate', {}),
    () => poor.call('POST', '/v1/generate', { ...order(), model: 'no/such' }),
    () => poor.call('POST', '/v1/generate', order()),
  ];
  expect(await fire(60, (i) => refused[i % 3]?.() ?? generate(poor))).toEqual({ 400: 20, 402: 20, 404: 20 });
  elapse(30_000);
  expect(await fire(100, () => generate(poor))).toEqual({ 429: 100 });
  elapse(30_001);
  expect(await fire(61, () => generate(poor))).toEqual({ 402: 60, 429: 1 });
});

it('D-limits-3 both chat paths share one rate limit', async () => {
  const chat = (i: number) =>
    client.call('POST', i % 2 === 0 ? '/v1/messages' : '/v1/chat/completions', { model: 'no/such' });
  expect(await fire(600, chat)).toEqual({ 400: 600 });
  expect([(await chat(0)).status, (await chat(1)).status]).toEqual([429, 429]);
});

it('D-limits-4 all other paths accept 600 requests per minute', async () => {
  expect(await fire(600, () => client.call('GET', '/v1/key'))).toEqual({ 200: 600 });
  expect((await client.call('GET', '/v1/key')).status).toBe(429);
});

it('D-limits-5 reads, estimate, cancel, links and count_tokens share one rate limit', async () => {
  const others = [
    () => client.call('GET', '/v1/balance'),
    () => client.call('POST', '/v1/estimate', order()),
    () => client.call('POST', '/v1/tasks/x/cancel'),
    () => client.call('POST', '/v1/tasks/x/links'),
    () => client.call('POST', '/v1/messages/count_tokens', { model: 'x' }),
    () => client.call('GET', '/v1/models'),
  ];
  const left: number[] = [];
  for (const send of others) left.push(Number((await send()).headers.get('x-ratelimit-remaining-requests')));
  expect(left).toEqual([599, 598, 597, 596, 595, 594]);
  expect((await generate()).headers.get('x-ratelimit-remaining-requests')).toBe('59');
});

it('D-limits-6 rate limits are exact over several nodes', async () => {
  expect(await fire(40, () => generate())).toEqual({ 202: 40 });
  const second = await service.beside({ clock });
  const answers = await fire(30, () =>
    fetch(`${second.url}/v1/generate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify(order()),
    }),
  );
  expect(answers).toEqual({ 202: 20, 429: 10 });
  await second.stop();
  expect(await fire(5, () => generate())).toEqual({ 429: 5 }); // what it accepted counts on
});

it('D-errors-13 responses of paths with a rate limit carry its limit, the remaining requests and the reset time', async () => {
  const limitHeaders = ({ headers }: Answered) =>
    ['limit', 'remaining', 'reset'].map((name) => headers.get(`x-ratelimit-${name}-requests`));
  const format = expect.stringMatching(/^(\d+m)?\d+s$/); // such as 1s or 6m0s
  expect(limitHeaders(await generate())).toEqual(['60', '59', format]);
  elapse(59_501);
  expect(limitHeaders(await generate())).toEqual(['60', '58', '1s']);
  expect(limitHeaders(await client.call('GET', '/v1/balance'))).toEqual(['600', '599', format]);
  expect(limitHeaders(await client.call('POST', '/v1/messages', { model: 'x' }))).toEqual(['600', '599', format]);
});

it('D-errors-14 every 429 carries Retry-After', async () => {
  await fire(60, () => generate());
  expect(retryAfter(await generate())).toMatch(/^6[01]$/);
  const failing = await service.client();
  for (let i = 0; i < 25; i++) await failOne(failing);
  expect(retryAfter(await generate(failing))).toBe('86400');
});
