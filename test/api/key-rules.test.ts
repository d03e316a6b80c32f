// isolated: it moves the monotonic clock of its process
import { afterAll, beforeAll, expect, it } from 'vitest';
import { changeKeyRules, createKey } from '../../src/accounts/keys.ts';
import { no_rules, type KeyRules } from '../../src/accounts/key-rules.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { elapse } from '../helpers/clock.ts';

/** The rules of a key: until when it is valid, for what, from where. */

let test: TestApp;
let client: Client;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  client = await test.client();
});
afterAll(() => test.stop());

const now = () => new Date();

async function keyWith(rules: Partial<KeyRules>): Promise<{ id: string; key: string }> {
  const { account_id } = client;
  const fields = { account_id, name: 'ruled', limit_month: null, rules: { ...no_rules, ...rules } };
  const { key, text } = await createKey(test.app.db, fields, now());
  return { id: key.id, key: text };
}

async function call(key: string, method: string, path: string, body?: object) {
  const answer = await fetch(test.url + path, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
  return { status: answer.status, headers: answer.headers, json: (await answer.json()) as { error?: object } };
}

const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 };
const image = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };

it.each<[KeyRules['scopes'], number[]]>([
  [['chat'], [200, 403, 403, 403, 200]],
  [['media'], [403, 202, 200, 403, 200]],
  [['read'], [403, 403, 200, 200, 200]],
  [
    ['chat', 'read'],
    [200, 403, 200, 200, 200],
  ],
  [null, [200, 202, 200, 200, 200]],
])('a key for %j gets these statuses on chat, generate, tasks, balance and models', async (scopes, statuses) => {
  const { key } = await keyWith({ scopes });
  const answers = [
    await call(key, 'POST', '/v1/chat/completions', chat),
    await call(key, 'POST', '/v1/generate', image),
    await call(key, 'GET', '/v1/tasks'),
    await call(key, 'GET', '/v1/balance'),
    await call(key, 'GET', '/v1/models'),
  ];
  expect(answers.map(({ status }) => status)).toEqual(statuses);
  const refused = answers.filter(({ status }) => status === 403);
  expect(refused.map(({ headers }) => headers.get('x-should-retry'))).toEqual(refused.map(() => 'false'));
  expect(refused.map(({ json }) => json.error)).toEqual(
    refused.map(() => expect.objectContaining({ type: 'permission_error', code: 'scope_missing' })),
  );
});

it('a call that the rules of its key refuse counts in no rate limit and holds nothing', async () => {
  client = await test.client();
  const { key } = await keyWith({ scopes: ['read'] });
  for (let i = 0; i < 70; i++) expect((await call(key, 'POST', '/v1/generate', image)).status).toBe(403);
  expect((await call(key, 'GET', '/v1/balance')).headers.get('x-ratelimit-remaining-requests')).toBe('599');
  const { json } = await client.call('GET', '/v1/balance');
  expect(json.held.exact).toBe('0.000000');
});

it('a key for other addresses is refused from here, also on paths that do not exist', async () => {
  const { id, key } = await keyWith({ addresses: ['203.0.113.0/24', '2001:db8::/32'] });
  for (const path of ['/v1/balance', '/v1/nothing']) {
    const { status, json } = await call(key, 'GET', path);
    expect([status, json.error]).toEqual([403, expect.objectContaining({ code: 'address_not_allowed' })]);
  }
  await changeKeyRules(test.app.db, id, { ...no_rules, addresses: ['127.0.0.0/8', '::1/128'] });
  await expect.poll(async () => (await call(key, 'GET', '/v1/balance')).status).toBe(200);
});

it('an expired key gets a 401 that says so, and works again with a later expiry', async () => {
  const minutesFromNow = (minutes: number) => new Date(Date.now() + minutes * 60_000);
  const { id, key } = await keyWith({ expires_at: minutesFromNow(60) });
  expect((await call(key, 'GET', '/v1/key')).json).toMatchObject({ expires_at: expect.stringMatching(/Z$/) });
  elapse(61 * 60_000);
  expect((await call(key, 'GET', '/v1/key')).status).toBe(401);
  const { json } = await call(key, 'GET', '/v1/key');
  expect(json.error).toMatchObject({ type: 'authentication_error', message: expect.stringContaining('expired') });
  await changeKeyRules(test.app.db, id, { ...no_rules, expires_at: minutesFromNow(600) });
  await expect.poll(async () => (await call(key, 'GET', '/v1/key')).status).toBe(200);
});

it('a key has no more requests per minute than its own limit, of each kind alone', async () => {
  const { key } = await keyWith({ requests_per_minute: 2 });
  const listed = [await call(key, 'GET', '/v1/tasks'), await call(key, 'GET', '/v1/tasks')];
  expect(listed.map(({ status }) => status)).toEqual([200, 200]);
  expect(listed.map(({ headers }) => headers.get('x-ratelimit-limit-requests'))).toEqual(['2', '2']);
  const refused = await call(key, 'GET', '/v1/key');
  const message = expect.stringMatching(
    /at most 2 per minute .*, by the limit of the key itself\. Try again in \d+ s\.$/,
  );
  expect([refused.status, refused.json.error]).toEqual([429, expect.objectContaining({ type: 'rate_limit', message })]);
  expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
  expect((await call(key, 'POST', '/v1/chat/completions', chat)).status).toBe(200);
  expect((await call(key, 'POST', '/v1/generate', image)).status).toBe(202);
});

it('a limit above that of the service raises nothing, and GET /v1/key shows what counts', async () => {
  const { key } = await keyWith({ requests_per_minute: 100 });
  const { json, headers } = await call(key, 'GET', '/v1/key');
  expect(headers.get('x-ratelimit-limit-requests')).toBe('100');
  expect(json).toMatchObject({
    requests_per_minute: 100,
    limits: { generate_per_minute: 60, chat_per_minute: 100 },
  });
});

it('a lowered limit counts on every node within a second, without a notification', async () => {
  const { id, key } = await keyWith({});
  const other = await test.beside();
  try {
    const ask = async () => {
      const { headers } = await fetch(`${other.url}/v1/tasks`, { headers: { authorization: `Bearer ${key}` } });
      return headers.get('x-ratelimit-limit-requests');
    };
    expect(await ask()).toBe('600');
    await changeKeyRules(test.app.db, id, { ...no_rules, requests_per_minute: 5 });
    elapse(1_000);
    expect(await ask()).toBe('5');
  } finally {
    await other.stop();
  }
});

it('GET /v1/key shows the rules of a key, or null', async () => {
  const { key } = await keyWith({ scopes: ['media'], addresses: ['127.0.0.0/8'] });
  expect((await call(key, 'GET', '/v1/key')).json).toMatchObject({
    expires_at: null,
    scopes: ['media'],
    addresses: ['127.0.0.0/8'],
  });
  expect((await client.call('GET', '/v1/key')).json).toMatchObject({ expires_at: null, scopes: null, addresses: null });
});
