import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { depth } from '../helpers/depth.ts';
import { playGreedy, prices, type Bill } from './greedy.ts';
import { setStage, type Stage } from './setup.ts';
import { chunk } from './streams.ts';

/** Money of calls that choose among routes and models, at once, while upstreams fail and callers leave. */

let stage: Stage;

const times: Readonly<Record<string, number>> = { dear: 4, dearer: 4, plain: 1, other: 1, cheap: 0.5 };
const model = (id: string, routes: [provider: string, upstream_model: string][], factor: number) => `
  - id: r/${id}
    kind: chat
    max_output_tokens: 2000
    price:
      - { unit: input_token, per: 1000000, amount: "${prices.input * factor}" }
      - { unit: cached_input_token, per: 1000000, amount: "${0.5 * factor}" }
      - { unit: cache_write_token, per: 1000000, amount: "${prices.cache_write * factor}" }
      - { unit: output_token, per: 1000000, amount: "${prices.output * factor}" }
    routes: [${routes.map(([provider, upstream]) => `{ provider: ${provider}, upstream_model: ${upstream} }`).join(', ')}]`;
const more =
  model(
    'dear',
    [
      ['oai', 'dear'],
      ['ant', 'dearer'],
    ],
    4,
  ) +
  model(
    'plain',
    [
      ['ant', 'plain'],
      ['gem', 'other'],
    ],
    1,
  ) +
  model('cheap', [['gem', 'cheap']], 0.5) +
  `
aliases:
  smart: { models: [{ model: r/dear }, { model: r/plain, weight: 2 }], fallbacks: true }
  split: { models: [{ model: r/plain }, { model: r/cheap }] }
`;
const routes = ['dear#oai', 'dear#ant', 'plain#ant', 'plain#gem', 'cheap#gem'].map((name) => `r/${name}`);

beforeAll(async () => {
  stage = await setStage({ more });
});
afterAll(() => stage.stop());

const failing: Script = { status: 500, json: { error: { message: 'no' } } };
const limited: Script = { status: 429, json: { error: { message: 'slow down' } } };
const too_long: Script = {
  status: 400,
  json: { error: { code: 'context_length_exceeded', message: 'maximum context length' } },
};
const broken: Script = { stream: [chunk({ role: 'assistant', content: 'x' })], then: 'cut' };

const names = ['r/dear', 'r/plain', 'r/cheap', 'smart', 'split'];
const call = fc.record({
  path: fc.constantFrom('chat/completions', 'messages'),
  model: fc.constantFrom(...names),
  models: fc.array(fc.constantFrom(...names), { maxLength: 3 }),
  key: fc.nat({ max: 2 }),
  bytes: fc.integer({ min: 1, max: 4_000 }),
  max_tokens: fc.integer({ min: 1, max: 3_000 }),
  stream: fc.boolean(),
  /** The caller leaves: perhaps before anything has come, or with the first byte. */
  leaves: fc.constantFrom('no', 'no', 'no', 'no', 'no', 'no', 'soon', 'at the first byte'),
  provider: fc.option(
    fc.record(
      {
        order: fc.subarray(['oai', 'ant', 'gem']),
        ignore: fc.constantFrom(['oai'], ['gem'], []),
        sort: fc.constantFrom('price', 'latency', 'throughput'),
        allow_fallbacks: fc.boolean(),
        max_price: fc.constantFrom({ completion: 50 }, { completion: 500 }),
      },
      { requiredKeys: [] },
    ),
    { nil: undefined },
  ),
});
type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

const plain_call: Call = {
  path: 'chat/completions',
  model: 'r/dear',
  models: ['r/plain', 'r/cheap'],
  key: 0,
  bytes: 500,
  max_tokens: 300,
  stream: false,
  leaves: 'no',
  provider: undefined,
};

/** Begun with, so that these are in every run: both routes of the first model fail, then one of the second answers. */
const falling_back: [number, (number | null)[], Call[], (Script | undefined)[]][] = [
  [90_000_000, [null, null], [plain_call], [failing, limited, undefined]],
  [90_000_000, [null, null], [{ ...plain_call, stream: true, path: 'messages' }], [too_long, undefined]],
];

async function make(clients: readonly Client[], { path, key, bytes, leaves, ...fields }: Call, tag: string) {
  const { call: _, key: secret = '' } = clients[key % clients.length] ?? {};
  const leave = new AbortController();
  const messages = [{ role: 'user', content: `#${tag}#${'x'.repeat(bytes)}` }];
  const asking = fetch(`${stage.test.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...fields, messages }),
    signal: leave.signal,
  });
  try {
    if (leaves === 'soon') setTimeout(() => leave.abort(), 12);
    const response = await asking;
    if (leaves === 'at the first byte') leave.abort();
    return {
      tag,
      status: response.status,
      id: response.headers.get('x-request-id') ?? '',
      route: response.headers.get('x-route'),
      text: await response.text(),
    };
  } catch {
    return undefined;
  }
}

type Row = { id: string; key_id: string; model: string; status: number; cost: bigint };
type Entry = { ref: string; model: string; route: string | null };

/** Records of calls, once all of them have ended; and the ends of their holds. */
async function bookedOf({ account_id, call: ask }: Client): Promise<{ rows: Row[]; entries: Entry[]; lost: bigint }> {
  const { db } = stage.test.app;
  const { chat_calls } = stage.test.app.limits;
  const settled = () =>
    db.query<Entry>(`select ref, model, route from ledger_entries where account_id = $1 and type = 'settle'`, [
      account_id,
    ]);
  const recorded = () =>
    db.query<Row>('select id, key_id, model, status, cost from chat_calls where account_id = $1', [account_id]);
  const look = async () => ({
    in_use: chat_calls.state.in_use,
    held: (await ask('GET', '/v1/balance')).json.held.exact,
    without_record: (await settled()).length - (await recorded()).filter(({ cost }) => cost > 0n).length,
  });
  await expect.poll(look).toEqual({ in_use: 0, held: '0.000000', without_record: 0 });
  const entries = await settled();
  const [sum] = await db.query<{ lost: bigint }>(
    'select coalesce(-sum(loss), 0)::bigint as lost from ledger_entries where account_id = $1',
    [account_id],
  );
  return { rows: await recorded(), entries, lost: sum?.lost ?? 0n };
}

const money = fc.oneof(
  fc.integer({ min: 10_000, max: 300_000 }),
  fc.integer({ min: 1_000, max: 2_000_000 }),
  fc.constant(90_000_000),
);
const text = (amount: number) => (amount / 1e6).toFixed(6);
const millionths = (amount: string) => BigInt(Math.round(Number(amount) * 1e6));

test('balances, holds, limits and books are exact whatever calls choose, upstreams fail and callers leave, at once', async () => {
  const seen = { charged: 0, by_fallback: 0 };
  await fc.assert(
    fc.asyncProperty(
      money,
      fc.array(fc.option(money), { minLength: 2, maxLength: 2 }),
      fc.array(call, { minLength: 4, maxLength: 10 }),
      fc.array(fc.constantFrom(undefined, undefined, undefined, failing, limited, too_long, broken, 'cut' as const), {
        minLength: 1,
        maxLength: 24,
      }),
      async (balance, limits, calls, scripts) => {
        for (const route of routes) await stage.test.app.health.closeCircuits(route);
        let turn = 0;
        const instead = () => scripts[turn++ % scripts.length];
        const timesOf = (name: string) => times[name] ?? 1;
        const bills: Bill[] = playGreedy(stage.upstream, Object.keys(times), () => 20, { instead, timesOf });
        const owner = await stage.test.client({ credit: text(balance) });
        const { account_id } = owner;
        const options = limits.map((limit) => ({ account_id, ...(limit !== null && { limit: text(limit) }) }));
        const clients = [owner, ...(await Promise.all(options.map((each) => stage.test.client(each))))];
        const answers = await Promise.all(calls.map((each, index) => make(clients, each, `call${index}`)));
        const { rows, entries, lost } = await bookedOf(owner);
        const by_id = new Map(rows.map((row) => [row.id, row]));
        expect(lost).toBe(0n);
        for (const { ref, model: booked, route } of entries) {
          expect(by_id.get(ref)?.model).toBe(booked);
          expect(route?.startsWith(`${booked}#`)).toBe(true);
        }
        for (const answer of answers) {
          const row = answer && by_id.get(answer.id);
          if (!answer || row?.status !== 200) continue;
          const paid = bills.filter(({ tag }) => tag === answer.tag);
          expect(paid.map(({ cost }) => BigInt(cost))).toEqual([row.cost]);
          expect(answer.route?.split('#')[0]).toBe(row.model);
          expect(answer.text).toContain(`"model":"${row.model}"`);
        }
        const spent = rows.reduce((sum, { cost }) => sum + cost, 0n);
        const { json } = await owner.call('GET', '/v1/balance');
        expect(millionths(json.balance.exact)).toBe(BigInt(balance) - spent);
        for (const [index, { key_id }] of clients.entries()) {
          const of_key = rows.filter((row) => row.key_id === key_id).reduce((sum, { cost }) => sum + cost, 0n);
          expect(of_key).toBeLessThanOrEqual(BigInt(limits[index - 1] ?? balance));
        }
        await expectExactBooks(stage.test.app);
        seen.charged += entries.length;
        const [fallbacks] = await stage.test.app.db.query<{ count: bigint }>(
          `select count(*) from ledger_entries e join ledger_entries h on h.ref = e.ref and h.event = 'hold'
            where e.account_id = $1 and e.type = 'settle' and e.model <> h.model`,
          [account_id],
        );
        seen.by_fallback += Number(fallbacks?.count);
      },
    ),
    { numRuns: depth(7, 200), seed: depth(27, Date.now()), endOnFailure: true, examples: falling_back },
  );
  expect(seen.charged).toBeGreaterThan(2);
  expect(seen.by_fallback).toBeGreaterThan(0);
});
