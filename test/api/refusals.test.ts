import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { setAccountStatus } from '../../src/accounts/accounts.ts';
import { createKey } from '../../src/accounts/keys.ts';
import { no_rules, type KeyRules } from '../../src/accounts/key-rules.ts';
import { newId } from '../../src/lib/ids.ts';
import { setAccountBudget } from '../../src/money/account-budgets.ts';
import { memberOf, okBody } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** Requests that are refused before any work, as their account sees them. */

const yaml = `version: 1
limits: { generate_per_minute: 4, failed_per_24h: 1, chat_at_once: 1 }
aliases: { small: { models: [{ model: sandbox/chat }] } }
`;

let test: TestApp;
let client: Client;

beforeAll(async () => {
  test = await startTestApp({ yaml });
});
beforeEach(async () => {
  client = await test.client();
});
afterEach(() => expectExactBooks(test.app));
afterAll(() => test.stop());

const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 5 };
const image = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };

async function keyWith(rules: Partial<KeyRules>, limit_month: bigint | null = null) {
  const { account_id } = client;
  const fields = { account_id, name: 'ruled', limit_month, rules: { ...no_rules, ...rules } };
  const { key, text } = await createKey(test.app.db, fields, new Date());
  const call = async (method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${text}`, 'content-type': 'application/json' };
    const answer = await fetch(test.url + path, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    await answer.text();
    return answer.status;
  };
  return { id: key.id, call };
}

type Report = { data: Record<string, string | number | null>[]; total: number };

/** Asks with a key of the account that nothing restricts. */
async function reportOf({ account_id }: Client, query = 'group_by=reason,key,model', from = test): Promise<Report> {
  const reader = await from.client({ account_id });
  const { status, text } = await reader.call('GET', `/v1/usage/refusals?${query}`);
  expect(status, text).toBe(200);
  return JSON.parse(text) as Report;
}

const patience = { interval: 100 };

/** Waits until so many were counted. */
async function rowsOf(of: Client, total: number): Promise<Report['data']> {
  await expect.poll(async () => (await reportOf(of)).total, patience).toBe(total);
  return (await reportOf(of)).data;
}

async function setBudget(scope: 'account' | 'key', subject: string | null, amount: bigint): Promise<string> {
  const id = newId('budget');
  const budget = { id, account_id: client.account_id, name: 'b', scope, subject, period: 'day', amount } as const;
  expect(await setAccountBudget(test.app.db, { ...budget, is_hard: true }, new Date())).toBe('set');
  return id;
}

describe('is counted once, with its reason, key and model:', () => {
  it('402, of chat, of a task and of a call in a batch', async () => {
    client = await test.client({ credit: '0' });
    const { key_id: key } = client;
    expect((await client.call('POST', '/v1/chat/completions', chat)).status).toBe(402);
    expect((await client.call('POST', '/v1/messages', chat)).status).toBe(402);
    expect((await client.call('POST', '/v1/generate', image)).status).toBe(402);
    const reason = 'insufficient_balance';
    expect(await rowsOf(client, 3)).toEqual([
      { reason, key, model: 'sandbox/chat', count: 2 },
      { reason, key, model: 'sandbox/image', count: 1 },
    ]);
    const form = new FormData();
    const line = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body: chat };
    form.set('purpose', 'batch');
    form.set('file', new File([JSON.stringify(line)], 'calls.jsonl'));
    const headers = { authorization: `Bearer ${client.key}` };
    const file = (await (await fetch(`${test.url}/v1/files`, { method: 'POST', headers, body: form })).json()) as {
      id: string;
    };
    const batch = { input_file_id: file.id, endpoint: '/v1/chat/completions', completion_window: '24h' };
    expect((await client.call('POST', '/v1/batches', batch)).status).toBe(200);
    expect(await rowsOf(client, 4)).toContainEqual({ reason, key, model: 'sandbox/chat', count: 3 });
  });

  it('403 of a limit of a key, of a budget, and of each rule of a key', async () => {
    const limited = await keyWith({}, 0n);
    expect(await limited.call('POST', '/v1/chat/completions', chat)).toBe(403);
    expect(await limited.call('POST', '/v1/generate', image)).toBe(403);
    const other_models = await keyWith({ models: ['sandbox/image'] });
    expect(await other_models.call('POST', '/v1/chat/completions', chat)).toBe(403);
    expect(await other_models.call('POST', '/v1/chat/completions', { ...chat, model: 'small' })).toBe(403);
    const reader = await keyWith({ scopes: ['read'] });
    expect(await reader.call('POST', '/v1/chat/completions', chat)).toBe(403);
    const elsewhere = await keyWith({ addresses: ['203.0.113.0/24'] });
    expect(await elsewhere.call('GET', '/v1/nothing')).toBe(403);
    const budgeted = await keyWith({});
    const budget = await setBudget('key', budgeted.id, 0n);
    expect(await budgeted.call('POST', '/v1/chat/completions', chat)).toBe(403);
    expect(await budgeted.call('POST', '/v1/generate', image)).toBe(403);
    const rows = await rowsOf(client, 8);
    expect(rows).toHaveLength(8);
    expect(rows).toEqual(
      expect.arrayContaining([
        { reason: 'monthly_limit', key: limited.id, model: 'sandbox/chat', count: 1 },
        { reason: 'monthly_limit', key: limited.id, model: 'sandbox/image', count: 1 },
        { reason: 'model_not_allowed', key: other_models.id, model: 'sandbox/chat', count: 1 },
        { reason: 'model_not_allowed', key: other_models.id, model: 'small', count: 1 },
        { reason: 'scope_missing', key: reader.id, model: null, count: 1 },
        { reason: 'address_not_allowed', key: elsewhere.id, model: null, count: 1 },
        { reason: 'budget_reached', key: budgeted.id, model: 'sandbox/chat', count: 1 },
        { reason: 'budget_reached', key: budgeted.id, model: 'sandbox/image', count: 1 },
      ]),
    );
    const { data } = await reportOf(client, 'group_by=budget,project&reason=budget_reached');
    expect(data).toEqual([{ budget, project: 'default', count: 2 }]);
    expect((await reportOf(client, `key=${reader.id}`)).data).toEqual([{ reason: 'scope_missing', count: 1 }]);
  });

  it('403 of a blocked account', async () => {
    await setAccountStatus(test.app.db, client.account_id, 'blocked');
    await expect.poll(async () => (await client.call('POST', '/v1/chat/completions', chat)).status, patience).toBe(403);
    expect((await client.call('POST', '/v1/generate', image)).status).toBe(403);
    expect(await rowsOf(client, 2)).toEqual([{ reason: 'account_blocked', key: client.key_id, model: null, count: 2 }]);
  });

  it('429 of the limits of a key, and of failed generations', async () => {
    const often = await keyWith({ requests_per_minute: 2 });
    for (const status of [200, 200, 429, 429])
      expect(await often.call('POST', '/v1/chat/completions', chat)).toBe(status);
    const at_once = await keyWith({});
    const other_call = test.app.limits.chat_calls.tryAcquire(at_once.id);
    expect(await at_once.call('POST', '/v1/chat/completions', chat)).toBe(429);
    other_call?.release();
    expect(await at_once.call('POST', '/v1/chat/completions', chat)).toBe(200);
    const failing = await keyWith({});
    const fails = { ...image, input: { ...image.input, prompt: '[[fail]]' } };
    expect(await failing.call('POST', '/v1/generate?wait=60', fails)).toBe(202);
    expect(await failing.call('POST', '/v1/generate', image)).toBe(429);
    const report = async () => (await reportOf(client)).data;
    await expect.poll(async () => (await report()).map(({ reason }) => reason), patience).toContain('failures_pause');
    const rows = await report();
    expect(rows).toContainEqual({ reason: 'failures_pause', key: failing.id, model: 'sandbox/image', count: 1 });
    expect(rows).toContainEqual({ reason: 'rate_limit', key: often.id, model: null, count: 2 });
    const crowded = rows.filter(({ reason, key }) => reason === 'concurrency_limit' && key === at_once.id);
    expect(crowded).toEqual([expect.objectContaining({ model: null, count: 1 })]);
  });

  it('a call of a tool for agents', async () => {
    client = await test.client({ credit: '0' });
    const args = { model: 'sandbox/image', input: image.input, max_cost: '0.01' };
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'generate', arguments: args } };
    const accept = { accept: 'application/json, text/event-stream' };
    expect((await client.call('POST', '/mcp', message, accept)).text).toContain('Top up');
    expect(await rowsOf(client, 1)).toEqual([
      { reason: 'insufficient_balance', key: client.key_id, model: 'sandbox/image', count: 1 },
    ]);
  });

  it('a call of the playground, with the key of the playground', async () => {
    client = await test.client({ credit: '0' });
    const owner = await memberOf(test, client, 'owner');
    expect((await owner.post(`${owner.base}/generate`, image)).status).toBe(402);
    const keys = okBody<{ data: { id: string; name: string }[] }>(await owner.get(`${owner.base}/keys`)).data;
    expect(await rowsOf(client, 1)).toEqual([
      {
        reason: 'insufficient_balance',
        key: keys.find(({ name }) => name === 'Playground')?.id,
        model: 'sandbox/image',
        count: 1,
      },
    ]);
  });
});

it('mistakes of callers, errors of models, estimates and strangers count nowhere', async () => {
  const { call } = client;
  expect((await call('POST', '/v1/generate', { ...image, model: 'sandbox/none' })).status).toBe(404);
  expect((await call('POST', '/v1/chat/completions', { ...chat, max_tokens: 'x' })).status).toBe(400);
  for (const status of [402, 403, 429]) {
    const request = { ...chat, messages: [{ role: 'user', content: `[[error ${status}]]` }] };
    expect((await call('POST', '/v1/chat/completions', request)).status).toBe(502);
  }
  const poor = await test.client({ credit: '0' });
  expect((await poor.call('POST', '/v1/estimate', image)).json.allowed).toBe(false);
  const headers = { authorization: 'Bearer mdl_none' };
  expect((await fetch(`${test.url}/v1/generate`, { method: 'POST', headers })).status).toBe(401);
  expect((await poor.call('POST', '/v1/chat/completions', chat)).status).toBe(402); // the last one to be written
  await rowsOf(poor, 1);
  expect(await reportOf(client)).toMatchObject({ data: [], total: 0 });
});

it('refusals of two nodes add up, those of a node that stops too', async () => {
  client = await test.client({ credit: '0' });
  const other = await test.beside();
  const calls = [test.url, other.url].flatMap((url) =>
    Array.from({ length: 20 }, async () => {
      const headers = { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' };
      const body = JSON.stringify(chat);
      const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body });
      expect(await answer.text()).toMatch(/insufficient_balance|at once/);
    }),
  );
  await Promise.all(calls);
  await other.stop();
  const rows = await rowsOf(client, 40);
  expect(rows.reduce((sum, { count }) => sum + Number(count), 0)).toBe(40);
});

describe('the report', () => {
  it('groups by hour and day in a range, and names what is wrong with its parameters', async () => {
    client = await test.client({ credit: '0' });
    await client.call('POST', '/v1/chat/completions', chat);
    await rowsOf(client, 1);
    const { data } = await reportOf(client, 'group_by=day,hour');
    const [row] = data;
    expect(row).toEqual({ day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/), hour: expect.any(String), count: 1 });
    const from = String(row?.['hour']);
    expect((await reportOf(client, `from=${from}`)).total).toBe(1);
    expect((await reportOf(client, `from=2026-01-01&to=${from}`)).total).toBe(0);
    for (const [query, param] of [
      ['group_by=user', 'group_by'],
      ['group_by=', 'group_by'],
      ['reason=none', 'reason'],
      ['from=x', 'from'],
      ['from=2026-01-02&to=2026-01-01', 'to'],
      ['model=x', 'model'],
    ] as const) {
      const { status, json } = await client.call('GET', `/v1/usage/refusals?${query}`);
      expect([status, json.error.param], query).toEqual([400, param]);
    }
  });

  it('is for keys that may read, and of their own account', async () => {
    const [chats, reads] = [await keyWith({ scopes: ['chat'] }), await keyWith({ scopes: ['read'] })];
    expect(await chats.call('GET', '/v1/usage/refusals')).toBe(403);
    expect(await reads.call('GET', '/v1/usage/refusals')).toBe(200);
    await rowsOf(client, 1);
    expect((await reportOf(await test.client())).total).toBe(0);
  });
});
