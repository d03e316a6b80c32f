import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { completion, hello, message, setStage, type Stage } from '../chat/setup.ts';
import { chunk } from '../chat/streams.ts';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';

/** Decisions about the money of chat calls: hold and charge. A token costs a millionth, so amounts are tokens. */

let stage: Stage;

const more = `
  - id: test/plain
    kind: chat
    price: &token
      - { unit: input_token, per: 1000000, amount: "1.00" }
      - { unit: output_token, per: 1000000, amount: "1.00" }
    routes: [{ provider: oai, upstream_model: plain }]
  - { id: test/cached, kind: chat, routes: [{ provider: oai, upstream_model: plain }], price: [
      { unit: input_token, per: 1000000, amount: "1.00" }, { unit: cached_input_token, per: 1000000, amount: "0.10" },
      { unit: cache_write_token, per: 1000000, amount: "3.00" }, { unit: output_token, per: 1000000, amount: "1.00" }] }
  - { id: test/short, kind: chat, max_output_tokens: 1000, default_output_tokens: 700, price: *token,
      routes: [{ provider: oai, upstream_model: plain }] }
  - { id: test/ant, kind: chat, max_output_tokens: 1000, price: *token, routes: [{ provider: ant, upstream_model: ant }] }
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const completions = (body: object, client: Client = stage.client): Promise<Answered> =>
  client.call('POST', '/v1/chat/completions', { model: 'test/plain', messages: hello, ...body });

const costOf = (answer: Answered) => Math.round(Number(answer.headers.get('x-cost-amount')) * 1_000_000);

async function balanceOf(client: Client): Promise<{ balance: number; held: number }> {
  const { balance, held } = (await client.call('GET', '/v1/balance')).json;
  return { balance: Math.round(Number(balance.exact) * 1e6), held: Math.round(Number(held.exact) * 1e6) };
}

const heldBy = async (client: Client) => (await balanceOf(client)).held;

/** Millionths that are held while an upstream is silent. */
async function holdOf(body: object, client: Client = stage.client): Promise<number> {
  const answer = Promise.withResolvers<void>();
  stage.upstream.script('plain', { json: completion('x'), after: answer.promise });
  const leave = new AbortController();
  const left = fetch(`${stage.test.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/plain', messages: hello, max_tokens: 1, ...body }),
    signal: leave.signal,
  }).catch(() => undefined);
  await expect.poll(() => heldBy(client)).toBeGreaterThan(0);
  const amount = await heldBy(client);
  await expect.poll(() => stage.upstream.open()).toBe(1);
  leave.abort();
  await left;
  answer.resolve();
  await expect.poll(() => heldBy(client)).toBe(0);
  return amount;
}

const say = (content: unknown) => ({ messages: [{ role: 'user', content }] });

/** Relays half an answer and leaves, with this much of it read. */
async function leaveAfter(parts: (string | number)[], read: number): Promise<string> {
  stage.upstream.script('plain', { stream: parts, then: 'hang' });
  const leave = new AbortController();
  const call = fetch(`${stage.test.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/plain', messages: hello, stream: true }),
    signal: leave.signal,
  });
  call.catch(() => undefined);
  await expect.poll(() => stage.upstream.open()).toBe(1);
  const response = read > 0 ? await call : undefined;
  await response?.body?.getReader().read();
  leave.abort();
  await expect.poll(() => stage.upstream.open()).toBe(0);
  await expect.poll(() => heldBy(stage.client)).toBe(0);
  return response?.headers.get('x-request-id') ?? '';
}

it('D-chat-1 a chat hold counts one token per 2.5 bytes of ASCII text', async () => {
  const long = await holdOf(say('x'.repeat(25_500)));
  expect(long - (await holdOf(say('x'.repeat(500))))).toBe(10_000);
});

it('D-chat-2 a chat hold counts one token per byte of text that is not ASCII', async () => {
  const long = await holdOf(say('é'.repeat(5_250)));
  expect(long - (await holdOf(say('é'.repeat(250))))).toBe(10_000);
});

it('D-chat-3 a chat hold counts images and documents by a rule of their own', async () => {
  const text = { type: 'text', text: 'x' };
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(100_000)}` } };
  const file = { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AAAA' } };
  const without = await holdOf(say([text]));
  expect((await holdOf(say([text, image]))) - without).toBe(1_600);
  expect((await holdOf(say([text, file]))) - without).toBe(10_000);
});

it('D-chat-4 a chat hold covers n answers of max_tokens each', async () => {
  const one = await holdOf({ max_tokens: 100 });
  expect((await holdOf({ max_tokens: 100, n: 3 })) - one).toBe(200);
});

it('D-chat-5 a call without max_tokens holds the default_output_tokens of the model when its money is below twenty times the maximum', async () => {
  const client = await stage.test.client({ credit: '0.015' }); // 1,000 tokens are 0.001
  const least = await holdOf({ model: 'test/short', max_tokens: 1 }, client);
  expect((await holdOf({ model: 'test/short', max_tokens: null }, client)) - least).toBe(699);
});

it('D-chat-6 a model without default_output_tokens has 4096 of them', async () => {
  expect((await holdOf({ max_tokens: null })) - (await holdOf({ max_tokens: 1 }))).toBe(4_095);
});

it('D-chat-7 a chat hold covers at most the max_output_tokens of the model', async () => {
  const least = await holdOf({ model: 'test/short', max_tokens: 1 });
  expect((await holdOf({ model: 'test/short', max_tokens: 50_000 })) - least).toBe(999);
});

it('D-chat-8 a chat hold covers at most the output that the available money buys', async () => {
  const client = await stage.test.client({ credit: '0.002' });
  expect(await holdOf({ max_tokens: 10_000 }, client)).toBe(2_000);
});

it('D-chat-9 a call gets 402 when the available money buys less than 256 output tokens', async () => {
  stage.upstream.script('plain', { json: completion('x') });
  const measured = await stage.test.client({ credit: '0.001' });
  const least = (await holdOf({ max_tokens: 256 }, measured)) / 1e6;
  stage.upstream.script('plain', { json: completion('x') });
  const poor = await stage.test.client({ credit: (least - 0.000001).toFixed(6) });
  expect(await completions({}, poor)).toMatchObject({ status: 402, json: { error: { type: 'insufficient_balance' } } });
  const enough = await stage.test.client({ credit: least.toFixed(6) });
  expect((await completions({}, enough)).status).toBe(200);
});

it('D-chat-10 the upstream gets a max_tokens that is at most the maximum of the model', async () => {
  stage.upstream.script('plain', { json: completion('x') });
  stage.upstream.script('ant', { json: message('x') });
  const maxTokensSent = () => stage.upstream.requests.at(-1)?.body['max_tokens'];
  for (const max_tokens of [null, 50_000]) {
    await completions({ model: 'test/short', max_tokens });
    expect(maxTokensSent()).toBe(1_000);
  }
  await completions({ model: 'test/short', max_tokens: 10 });
  expect(maxTokensSent()).toBe(10);
  await stage.client.call('POST', '/v1/messages', { model: 'test/ant', max_tokens: 50_000, messages: hello });
  expect(maxTokensSent()).toBe(1_000);
});

it('D-chat-11 a call is charged its real cost by the usage that the upstream reports', async () => {
  const usage = { prompt_tokens: 1_234, completion_tokens: 321, total_tokens: 1_555 };
  stage.upstream.script('plain', { json: completion('x', usage) });
  expect(costOf(await completions({}))).toBe(1_555);
});

it('D-chat-12 a call whose upstream reports no usage is charged for the text that was relayed', async () => {
  const { usage: _, ...without } = completion('x'.repeat(4_000));
  stage.upstream.script('plain', { json: without });
  expect(costOf(await completions({}))).toBe(1_005); // "user", "Hello" and 10 bytes for the message are 5 tokens
});

it('D-chat-13 delivered output is never free, whatever usage the upstream reports', async () => {
  const usage = { prompt_tokens: 10, completion_tokens: 0, total_tokens: 10 };
  stage.upstream.script('plain', { json: completion('x'.repeat(4_000), usage) });
  expect(costOf(await completions({}))).toBe(1_010);
});

it('D-chat-14 a cost above the hold is taken from the available balance', async () => {
  const client = await stage.test.client({ credit: '0.010000' });
  const usage = { prompt_tokens: 4_000, completion_tokens: 5_000, total_tokens: 9_000 };
  stage.upstream.script('plain', { json: completion('x', usage) });
  expect(costOf(await completions({ max_tokens: 1 }, client))).toBe(9_000);
  expect(await balanceOf(client)).toEqual({ balance: 1_000, held: 0 });
});

it("D-chat-15 a cost that the balance does not cover is the operator's loss, and the balance is never negative", async () => {
  const client = await stage.test.client({ credit: '0.010000' });
  const usage = { prompt_tokens: 4_000, completion_tokens: 60_000, total_tokens: 64_000 };
  stage.upstream.script('plain', { json: completion('x', usage) });
  expect(costOf(await completions({ max_tokens: 1 }, client))).toBe(10_000);
  expect(await balanceOf(client)).toEqual({ balance: 0, held: 0 });
});

it('D-chat-16 a call whose caller disconnects is charged for the output that the upstream produced', async () => {
  const id = await leaveAfter([chunk({ content: 'x'.repeat(4_000) })], 1);
  await expect.poll(async () => (await stage.client.call('GET', `/v1/chat/${id}`)).status).toBe(200);
  expect((await stage.client.call('GET', `/v1/chat/${id}`)).json.cost.exact).toBe('0.001005');
});

it('D-chat-17 a call whose caller disconnects before any output is charged for the input that the upstream bills', async () => {
  const { balance } = await balanceOf(stage.client);
  await leaveAfter([chunk({ role: 'assistant', content: '' })], 0);
  expect((await balanceOf(stage.client)).balance).toBe(balance - 5);
});

it('D-chat-18 cached and cache-write tokens without a price of their own cost as much as input tokens', async () => {
  const usage = {
    prompt_tokens: 1_000,
    completion_tokens: 5,
    total_tokens: 1_005,
    prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 300 },
  };
  stage.upstream.script('plain', { json: completion('x', usage) });
  expect(costOf(await completions({}))).toBe(1_005);
});

it('D-chat-51 every byte of text counts as a token when the money or the limit is less than twenty times the hold', async () => {
  const text = say('x'.repeat(1_000)); // 400 tokens, or 1,000
  const rich = await holdOf(text);
  for (const options of [{ credit: '0.008' }, { limit: '0.008' }]) {
    const client = await stage.test.client(options);
    expect((await holdOf(text, client)) - rich).toBeGreaterThanOrEqual(600);
  }
});

it('D-chat-52 the input is held at the highest price that the request can cause', async () => {
  const of = async (model: string, bytes: number) => holdOf({ model, ...say('x'.repeat(bytes)) });
  expect((await of('test/cached', 25_500)) - (await of('test/cached', 500))).toBe(30_000);
});

/** The max_tokens that an upstream is sent. */
async function sentFor(body: object, client: Client): Promise<unknown> {
  stage.upstream.script('plain', { json: completion('x') });
  expect((await completions(body, client)).status).toBe(200);
  return stage.upstream.requests.at(-1)?.body['max_tokens'];
}

it("D-chat-53 a call without max_tokens sends the model's maximum when it costs at most a twentieth of the money and the limit", async () => {
  const enough = { credit: '0.0205', limit: '0.0205' }; // a twentieth: 1,000 tokens, and 25 for "user", "Hello" and 10 bytes
  expect(await sentFor({ model: 'test/short' }, await stage.test.client(enough))).toBe(1_000);
  for (const less of [{ credit: '0.02' }, { limit: '0.02' }])
    expect(await sentFor({ model: 'test/short' }, await stage.test.client(less))).toBe(700);
});

it('D-chat-54 a model without a maximum is sent its default_output_tokens, and the hold covers them', async () => {
  expect(await sentFor({}, stage.client)).toBe(4_096);
});

it('D-chat-55 the header x-max-tokens reports a max_tokens that was lowered', async () => {
  const client = await stage.test.client({ credit: '0.002' });
  for (const stream of [false, true]) {
    const part = chunk({ content: 'x' }, { usage: { prompt_tokens: 0, completion_tokens: 0 } }, 'stop');
    stage.upstream.script('plain', stream ? { stream: [part, 'data: [DONE]\n\n'] } : { json: completion('x', {}) });
    const { headers } = await completions({ max_tokens: 10_000, stream }, client);
    const sent = Number(stage.upstream.requests.at(-1)?.body['max_tokens']);
    expect(headers.get('x-max-tokens')).toBe(String(sent));
    expect(sent).toBeLessThan(2_000);
  }
  expect((await completions({ max_tokens: 300 }, client)).headers.get('x-max-tokens')).toBeNull();
});

it('D-chat-56 a call gets 402 unless the money covers 256 output tokens and its thinking budget', async () => {
  stage.upstream.script('ant', { json: message('x') });
  const body = { model: 'test/ant', max_tokens: 1_000, messages: hello };
  const thinking = { type: 'enabled', budget_tokens: 500 };
  const client = await stage.test.client({ credit: '0.0007' });
  expect((await client.call('POST', '/v1/messages', { ...body, thinking })).status).toBe(402);
  expect((await client.call('POST', '/v1/messages', body)).status).toBe(200);
});
