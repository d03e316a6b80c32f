import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { randomUUID } from 'node:crypto';
import { credit } from '../../src/money/ledger.ts';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import { costOf, playGreedy, prices, type Bill } from './greedy.ts';
import { hello, setStage, type Stage } from './setup.ts';

/** Upstreams use all that they may: what they bill is what callers have, to the millionth. */

let stage: Stage;
/** The same with reservations in memory switched off. */
let by_database: Stage;

const price = `[
      { unit: input_token, per: 1000000, amount: "${prices.input}" },
      { unit: cached_input_token, per: 1000000, amount: "0.5" },
      { unit: cache_write_token, per: 1000000, amount: "${prices.cache_write}" },
      { unit: cache_write_1h_token, per: 1000000, amount: "${prices.cache_write_1h}" },
      { unit: output_token, per: 1000000, amount: "${prices.output}" }]`;

const model = (id: string, provider: string, more: string, options = '{}') => `
  - { id: greedy/${id}, kind: chat, ${more} price: ${price},
      routes: [{ provider: ${provider}, upstream_model: ${id}, options: ${options} }] }`;

const more = [
  model('large', 'oai', 'max_output_tokens: 128000,'),
  model('small', 'oai', 'max_output_tokens: 1000,'),
  model('unstated', 'oai', ''),
  model('short', 'oai', 'default_output_tokens: 300,', '{ max_tokens_field: max_completion_tokens }'),
  model('native', 'oai', 'max_output_tokens: 5000,', '{ responses: always }'),
  model('messages', 'ant', 'max_output_tokens: 20000,', '{ thinking: budget }'),
  model('gemini', 'gem', 'max_output_tokens: 3000,', '{ thinking: budget }'),
].join('');
const names = ['large', 'small', 'unstated', 'short', 'native', 'messages', 'gemini'];

beforeAll(async () => {
  stage = await setStage({ more });
  by_database = await setStage({ more, providers: 'money: { reservations: database }\n' });
});
afterEach(async () => {
  await expectExactBooks(stage.test.app);
  await expectExactBooks(by_database.test.app);
});
afterAll(async () => {
  await stage.stop();
  await by_database.stop();
});

const ask = (client: Client, body: object, path = 'chat/completions'): Promise<Answered> =>
  client.call('POST', `/v1/${path}`, { model: 'greedy/large', messages: hello, ...body });

const millionths = (amount: string | undefined) => Math.round(Number(amount) * 1e6);

/** Returns the spending of a key, the money left in its account, and the operator's loss. */
async function standing(
  { account_id, call }: Client,
  { app } = stage.test,
): Promise<{ spent: number; balance: number; lost: number }> {
  await expect.poll(async () => (await call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  const { balance, key } = (await call('GET', '/v1/balance')).json;
  const [row] = await app.db.query<{ lost: string }>(
    'select coalesce(-sum(loss), 0)::text as lost from ledger_entries where account_id = $1',
    [account_id],
  );
  return { spent: millionths(key.spent.exact), balance: millionths(balance.exact), lost: Number(row?.lost) };
}

async function topUp({ account_id }: Client, amount: bigint): Promise<void> {
  const { db, clock } = stage.test.app;
  const payment = { account_id, type: 'topup', amount, ref: randomUUID(), reason: 'paid' } as const;
  expect((await credit(db, payment, new Date(clock.now()))).outcome).toBe('booked');
}

/** As many tokens as bytes. */
const dense = (bytes: number) => [{ role: 'user', content: '\u0001~'.repeat(bytes / 2) }];

describe('calls without max_tokens', () => {
  it('never cost more than the balance when they run at once', async () => {
    const bills = playGreedy(stage.upstream, names);
    const client = await stage.test.client({ credit: '2.00' });
    await Promise.all(Array.from({ length: 8 }, () => ask(client, { messages: dense(9_000) })));
    const { spent, balance, lost } = await standing(client);
    expect({ billed: costOf(bills), lost }).toEqual({ billed: spent, lost: 0 });
    expect(spent + balance).toBe(2_000_000);
    expect(bills).toHaveLength(8);
  });

  it('never cost more than the limit of their key', async () => {
    const bills = playGreedy(stage.upstream, names);
    const client = await stage.test.client({ limit: '1.00' });
    await Promise.all(Array.from({ length: 8 }, () => ask(client, { messages: dense(9_000) })));
    const { spent, lost } = await standing(client);
    expect({ billed: costOf(bills), lost }).toEqual({ billed: spent, lost: 0 });
    expect(spent).toBeLessThanOrEqual(1_000_000);
    expect(spent).toBeGreaterThan(800_000);
  });

  it('never cost more than a limit that buys only a part of a response', async () => {
    const bills = playGreedy(stage.upstream, names);
    const client = await stage.test.client({ limit: '0.02' });
    expect((await ask(client, {})).status).toBe(200);
    const { spent, lost } = await standing(client);
    expect({ billed: costOf(bills), lost }).toEqual({ billed: spent, lost: 0 });
    expect(spent).toBeLessThanOrEqual(20_000);
  });
});

/** The bound that an upstream is sent, and what the caller is told of it. */
async function boundOf(client: Client, body: object, path?: string): Promise<[number | undefined, string | null]> {
  const bills = playGreedy(stage.upstream, names);
  const answer = await ask(client, body, path);
  expect(answer.status, answer.text).toBe(200);
  return [bills[0]?.max_tokens, answer.headers.get('x-max-tokens')];
}

describe('the max_tokens that an upstream is sent', () => {
  it("is the model's maximum when a twentieth of the money and of the limit covers it", async () => {
    const rich = await stage.test.client({ credit: '100' }); // 128,000 tokens are 3.20
    expect(await boundOf(rich, {})).toEqual([128_000, null]);
    expect(await boundOf(rich, {})).toEqual([128_000, null]);
  });

  it.each([{ credit: '50' }, { limit: '50' }])('is default_output_tokens when it does not: %j', async (options) => {
    const client = await stage.test.client(options);
    expect(await boundOf(client, {})).toEqual([4_096, '4096']);
    expect(await boundOf(client, {})).toEqual([4_096, '4096']);
  });

  it("is the model's maximum as soon as the account is topped up", async () => {
    const client = await stage.test.client({ credit: '50' });
    expect(await boundOf(client, {})).toEqual([4_096, '4096']);
    await topUp(client, 100_000_000n);
    expect(await boundOf(client, {})).toEqual([128_000, null]);
  });

  it('is default_output_tokens for a model without a maximum, however much money there is', async () => {
    const client = await stage.test.client({ credit: '10000' });
    expect(await boundOf(client, { model: 'greedy/unstated' })).toEqual([4_096, null]);
    expect(await boundOf(client, { model: 'greedy/short' })).toEqual([300, null]);
    expect(await boundOf(client, { model: 'greedy/unstated', max_tokens: 9_000 })).toEqual([9_000, null]);
  });

  it.each([
    ['completions', 'chat/completions', 'large', { max_tokens: 200_000 }],
    ['completions with the new name', 'chat/completions', 'short', { max_completion_tokens: 50_000 }],
    ['messages', 'messages', 'messages', { max_tokens: 50_000 }],
    ['responses', 'responses', 'native', { input: 'Hello', messages: undefined, max_output_tokens: 50_000 }],
    ['gemini', 'chat/completions', 'gemini', { max_tokens: 50_000 }],
  ])('is what the money buys of a long response, and the caller is informed: %s', async (_style, path, id, body) => {
    const client = await stage.test.client({ credit: '0.05' });
    const [sent, bound] = await boundOf(client, { model: `greedy/${id}`, ...body }, path);
    expect(bound).toBe(String(sent));
    expect(sent).toBeGreaterThan(1_950);
    expect(sent).toBeLessThan(2_000);
    expect(await standing(client)).toMatchObject({ lost: 0 });
  });

  it('is reported to the caller of a stream, too', async () => {
    playGreedy(stage.upstream, names);
    const client = await stage.test.client({ credit: '0.05' });
    for (const [path, id] of [
      ['chat/completions', 'large'],
      ['messages', 'messages'],
    ] as const) {
      // prettier-ignore
      const answer = await ask(client, { model: `greedy/${id}`, stream: true, max_tokens: 50_000 }, path);
      expect(answer.status).toBe(200);
      expect(Number(answer.headers.get('x-max-tokens'))).toBeGreaterThan(250);
      await topUp(client, 50_000n);
    }
  });

  it('leaves room for thinking, and the call gets 402 with less', async () => {
    const thinking = { type: 'enabled', budget_tokens: 2_000 };
    const body = { model: 'greedy/messages', max_tokens: 4_000, thinking };
    const bills = playGreedy(stage.upstream, names);
    const poor = await stage.test.client({ credit: '0.055' }); // 2,200 tokens
    expect((await ask(poor, body, 'messages')).status).toBe(402);
    const enough = await stage.test.client({ credit: '0.058' });
    const answer = await ask(enough, body, 'messages');
    expect(answer.status).toBe(200);
    expect(bills[0]?.max_tokens).toBeGreaterThanOrEqual(2_256);
    expect(stage.upstream.requests.at(-1)?.body['thinking']).toEqual(thinking);
  });

  it('is at least 256 tokens or the requested number for each of n choices', async () => {
    const bills = playGreedy(stage.upstream, names);
    const client = await stage.test.client({ credit: '0.019' });
    expect((await ask(client, { n: 3, max_tokens: 300 })).status).toBe(402); // 768 tokens are 0.0192
    expect((await ask(client, { n: 3, max_tokens: 100 })).status).toBe(200);
    expect(bills).toMatchObject([{ max_tokens: 100, output_tokens: 300 }]);
  });

  it('is never more than the hold covers when the upstream takes no less', async () => {
    const bills = playGreedy(stage.upstream, names);
    const client = await stage.test.client({ credit: '0.0003' });
    const body = { model: 'greedy/native', messages: [{ role: 'user', content: 'x' }], max_tokens: 5 };
    const refused = await ask(client, body);
    expect([refused.status, bills.length]).toEqual([402, 0]); // 16 tokens and the words around the text are 0.0005
  });
});

describe('the input of a chat hold', () => {
  const bytes = 10_000;
  const held = async (client: Client) => {
    playGreedy(stage.upstream, names);
    const answer = await ask(client, { messages: dense(bytes), max_tokens: 10 });
    expect(answer.status).toBe(200);
    const { data } = (await client.call('GET', '/v1/balance/transactions')).json;
    return millionths(data.find(({ type }) => type === 'hold')?.amount.exact);
  };

  it('counts 2.5 bytes per token at the price of a cache write when there is plenty of money', async () => {
    const amount = await held(await stage.test.client({ credit: '1' }));
    expect(amount).toBeGreaterThanOrEqual((bytes / 2.5) * 6.25);
    expect(amount).toBeLessThan((bytes / 2.5) * 6.25 + 400);
  });

  it.each([{ credit: '0.5' }, { limit: '0.5' }])('counts one token per byte when there is not: %j', async (poor) => {
    const amount = await held(await stage.test.client(poor));
    expect(amount).toBeGreaterThanOrEqual(bytes * 6.25);
    expect(amount).toBeLessThan(bytes * 6.25 + 500);
  });
});

it.each([{ credit: '0.126' }, { limit: '0.126' }])(
  'money that a call may cost beyond its hold is reserved for it: %j',
  async (poor) => {
    const are_refused = Promise.withResolvers<void>();
    const bills = playGreedy(stage.upstream, names, () => are_refused.promise);
    const client = await stage.test.client(poor);
    let refused = 0;
    const body = { messages: dense(2_000), max_tokens: 1, stream: true }; // twenty times a hold are 0.1, a cost is 0.0125
    const asking = Array.from({ length: 24 }, async () => {
      const answer = await ask(client, body);
      if (answer.status !== 200) refused += 1;
      return answer;
    });
    await expect.poll(() => refused).toBe(15);
    are_refused.resolve();
    const answers = await Promise.all(asking);
    expect(answers.filter(({ status }) => status === 200).length).toBe(9);
    const { spent, lost } = await standing(client);
    expect({ billed: costOf(bills), lost }).toEqual({ billed: spent, lost: 0 });
    expect(spent).toBeLessThanOrEqual(126_000);
  },
);

type Spending = {
  id: string;
  path: 'chat/completions' | 'messages';
  key: number;
  bytes: number;
  text: string;
  stream: boolean;
  max_tokens: number | undefined;
  n: number;
  budget: number;
  /** The cache marks of the request. */
  cached: 'no' | '5m' | '1h';
};

const spending = fc.record<Spending>({
  id: fc.constantFrom(...names),
  path: fc.constantFrom('chat/completions', 'messages'),
  key: fc.nat({ max: 2 }),
  bytes: fc.oneof(fc.nat({ max: 300 }), fc.nat({ max: 20_000 })),
  text: fc.constantFrom('x', '~\u0001', 'é', '漢'),
  stream: fc.boolean(),
  max_tokens: fc.option(fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 200_000 })), {
    nil: undefined,
  }),
  n: fc.constantFrom(1, 1, 1, 2, 5),
  budget: fc.constantFrom(0, 0, 0, 1_024, 3_000),
  cached: fc.constantFrom('no', '5m', '1h'),
});

function bodyOf({ id, path, bytes, text, stream, max_tokens, n, budget, cached }: Spending): object {
  const part = { type: 'text', text: text.repeat(1 + bytes / Buffer.byteLength(text)) };
  const content = [{ ...part, ...(cached !== 'no' && { cache_control: { type: 'ephemeral', ttl: cached } }) }];
  const thinking = budget > 0 && { thinking: { type: 'enabled', budget_tokens: budget } };
  const common = { model: `greedy/${id}`, messages: [{ role: 'user', content }], ...thinking };
  // These are answered whole by the upstream of this test, or take one answer only.
  if (path === 'messages') return { ...common, max_tokens: max_tokens ?? 700, stream: stream && id !== 'native' };
  const takes_several = ['large', 'small', 'unstated', 'short'].includes(id);
  const streams = stream && id !== 'native';
  return { ...common, ...(takes_several && { n }), stream: streams, ...(max_tokens !== undefined && { max_tokens }) };
}

const long_lived: Spending = {
  id: 'messages',
  path: 'messages',
  key: 0,
  bytes: 9_000,
  text: '~\u0001',
  stream: false,
  max_tokens: 400,
  n: 1,
  budget: 0,
  cached: '1h',
};

/** Begun with, so that these are in every run: with little money, and with plenty. */
const written_for_an_hour: [number, (number | null)[], Spending[]][] = [
  [500_000, [null, 200_000, null], [0, 1, 2, 0, 1].map((key) => ({ ...long_lived, key, stream: key === 2 }))],
  [60_000_000, [null, null, null], [long_lived, { ...long_lived, path: 'chat/completions' }]],
];

const money = fc.oneof(
  fc.integer({ min: 0, max: 50_000 }),
  fc.integer({ min: 0, max: 3_000_000 }),
  fc.constant(60_000_000),
);

it.each([
  { reservations: 'memory', numRuns: 40 },
  { reservations: 'database', numRuns: 10 },
] as const)(
  'no key spends more than its limit and no account more than its balance, whatever runs at once, and the operator loses nothing: %j',
  async ({ reservations, numRuns }) => {
    const place = reservations === 'memory' ? stage : by_database;
    let served = 0;
    let for_an_hour = 0;
    const pauses = [0, 0, 20, 400];
    await fc.assert(
      fc.asyncProperty(
        money,
        fc.array(fc.option(money), { minLength: 3, maxLength: 3 }),
        fc.array(spending, { minLength: 1, maxLength: 30 }),
        async (balance, limits, calls) => {
          let turn = 0;
          const bills: Bill[] = playGreedy(place.upstream, names, () => pauses[turn++ % pauses.length] ?? 0);
          const [first, ...others] = limits;
          const text = (amount: number) => (amount / 1e6).toFixed(6);
          const options = (limit: number | null | undefined) => (limit == null ? {} : { limit: text(limit) });
          const owner = await place.test.client({ credit: text(balance), ...options(first) });
          const { account_id } = owner;
          const keys = [owner];
          for (const limit of others) keys.push(await place.test.client({ account_id, ...options(limit) }));
          const answers = await Promise.all(calls.map((each) => ask(keys[each.key] ?? owner, bodyOf(each), each.path)));
          for (const { status, text: answer_text } of answers)
            expect([200, 400, 402, 403], answer_text).toContain(status);
          served += answers.filter(({ status }) => status === 200).length;
          for_an_hour += bills.filter((bill) => bill.for_an_hour).length;
          const standings: Awaited<ReturnType<typeof standing>>[] = [];
          for (const key of keys) standings.push(await standing(key, place.test));
          const spent = standings.reduce((sum, each) => sum + each.spent, 0);
          expect({ lost: standings[0]?.lost, balance: standings[0]?.balance, billed: costOf(bills) }).toEqual({
            lost: 0,
            balance: balance - spent,
            billed: spent,
          });
          const over = limits.map((limit, index) => limit !== null && (standings[index]?.spent ?? Infinity) > limit);
          expect(over).toEqual([false, false, false]);
        },
      ),
      { numRuns, examples: written_for_an_hour },
    );
    expect(served).toBeGreaterThan(numRuns / 2);
    expect(for_an_hour).toBeGreaterThan(0);
  },
);
