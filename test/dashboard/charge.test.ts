import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ChargeView, ChatView, TaskView } from '../../src/dashboard/views/activity.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, required_prompt } from '../helpers/catalog.ts';
import { ownerOfNew, okBody, type Someone } from './people.ts';

/** Charges of calls and tasks taken apart, from the prices of the time at which they were made. */

const yaml = (input: string) => `
version: 1
currencies: { USD: "1", PLN: "3.6543" }
${limits()}
providers: { sandbox: { adapter: sandbox } }
models:
  - id: test/chat
    kind: chat
    price:
      - { unit: input_token, per: 1000000, amount: "${input}" }
      - { unit: output_token, per: 1000000, amount: "15" }
    routes: [{ provider: sandbox, upstream_model: chat }]${mediaModel({
      id: 'test/image',
      schema: required_prompt,
      price: '0.0313',
      routes: ['{ provider: sandbox, upstream_model: image }'],
    })}
`;

let test: TestApp;
let owner: Someone;
let client: Client;

beforeAll(async () => {
  test = await startTestApp({ yaml: yaml('3.0001') });
  owner = await ownerOfNew(test);
  client = await test.client({ account_id: owner.account_id });
});

afterAll(async () => {
  await expectExactBooks(test.app);
  await test.stop();
});

async function chat(by: Client): Promise<string> {
  const messages = [{ role: 'user', content: 'Hello there' }];
  const { headers } = await by.call('POST', '/v1/chat/completions', { model: 'test/chat', messages });
  return headers.get('x-request-id') ?? '';
}

async function generate(by: Client, prompt: string, query = '?wait=60'): Promise<string> {
  return (await by.call('POST', `/v1/generate${query}`, { model: 'test/image', input: { prompt } })).json.id;
}

/** Records are written after answers. */
async function callOf(id: string, who = owner): Promise<ChatView> {
  const read = () => who.get(`${who.base}/chats/${id}`);
  await expect.poll(async () => (await read()).status).toBe(200);
  return okBody<ChatView>(await read());
}

const taskOf = async (id: string, who = owner) => okBody<TaskView>(await who.get(`${who.base}/tasks/${id}`));

/** In millionths of a millionth. */
function picos(text: string): bigint {
  const [, sign = '', whole = '', fraction = ''] = /^(-?)(\d+)(?:\.(\d{1,12}))?$/.exec(text) ?? [];
  const value = BigInt(whole) * 10n ** 12n + BigInt(fraction.padEnd(12, '0'));
  return sign === '-' ? -value : value;
}

function expectSum({ rows, rounding, not_charged, charged, adds_up }: ChargeView): void {
  const texts = [...rows.map(({ amount }) => amount), rounding, not_charged].flatMap((each) => each?.amount ?? []);
  expect(texts.reduce((sum, text) => sum + picos(text), 0n)).toBe(picos(charged.exact));
  expect(adds_up).toBe(true);
}

it('a call has a row for each unit, at the price of then, and they add up to the charge', async () => {
  const call = await callOf(await chat(client));
  const { charge } = call;
  expect(charge).toMatchObject({
    of: 'charge',
    rows: [
      {
        unit: 'input_token',
        quantity: String(call.input_tokens),
        price: { amount: '3.0001', per: 1_000_000, currency: 'USD' },
      },
      { unit: 'output_token', quantity: String(call.output_tokens), price: { amount: '15', per: 1_000_000 } },
    ],
    rate: null,
    not_charged: null,
    charged: call.cost,
    priced_at: call.created_at,
  });
  if (charge) expectSum(charge);
});

it('a task has its rows, too: of its hold while it waits, of its charge when it has ended, and none when it failed', async () => {
  const slow = await taskOf(await generate(client, '[[delay 600s]] slow', ''));
  expect(slow.charge).toMatchObject({
    of: 'hold',
    rows: [{ unit: 'image', quantity: '1', amount: { amount: '0.0313' } }],
  });
  const task = await taskOf(await generate(client, 'a lake'));
  expect(task.charge).toMatchObject({
    of: 'charge',
    rows: [{ unit: 'image', quantity: '1', price: { amount: '0.0313', per: 1 }, amount: { amount: '0.0313' } }],
    charged: task.cost,
    priced_at: task.created_at,
  });
  for (const { charge } of [slow, task]) if (charge) expectSum(charge);
  expect((await taskOf(await generate(client, '[[fail]] no lake'))).charge).toBe(null);
  expect((await owner.post(`${owner.base}/tasks/${slow.id}/cancel`)).status).toBe(200);
});

it('in another currency each row has the rate, and the rows add up in that currency', async () => {
  const zloty = await test.client({ currency: 'PLN', credit: '10' });
  const operator = await ownerOfNew(test, 'Operating');
  await test.app.db.query('update auth."user" set "isOperator" = true where id = $1', [operator.user_id]);
  const who = { ...operator, base: `/dash/accounts/${zloty.account_id}` };
  okBody(await operator.post(`/dash/admin/accounts/${zloty.account_id}/view`));
  const [call, task] = [await callOf(await chat(zloty), who), await taskOf(await generate(zloty, 'a lake'), who)];
  for (const { charge, cost } of [call, task]) {
    expect(charge).toMatchObject({ rate: '3.6543', charged: cost });
    expect(charge?.rows.every(({ amount, price }) => amount.currency === 'PLN' && price.currency === 'USD')).toBe(true);
    if (charge) expectSum(charge);
  }
  expect(task.charge?.rows[0]?.amount.amount).toBe('0.11437959');
  expect(task.charge?.rounding).toEqual({ amount: '0.00000041', currency: 'PLN' });
});

it('a call keeps the prices of then when they change; without them its rows say that they are those of today', async () => {
  const id = await chat(client);
  const before = await callOf(id);
  await test.configure(yaml('7'));
  expect((await callOf(id)).charge).toEqual(before.charge);
  await test.app.db.query('update chat_calls set price_id = null where id = $1', [id]); // as in a call of before
  const { charge } = await callOf(id);
  expect(charge).toMatchObject({ priced_at: null, adds_up: false, charged: before.cost });
  await test.configure(yaml('3.0001'));
  expect((await callOf(id)).charge).toMatchObject({ priced_at: null, adds_up: true });
});

it('prices are stored once for all calls that had them', async () => {
  await Promise.all([chat(client), chat(client)]);
  const rows = await test.app.db.query(
    `select distinct price_id from chat_calls where account_id = $1 and model = 'test/chat' and price_id is not null`,
    [owner.account_id],
  );
  expect(rows).toHaveLength(1);
  expect(await test.app.db.query('select 1 from call_prices')).toHaveLength(2); // in two currencies
});
