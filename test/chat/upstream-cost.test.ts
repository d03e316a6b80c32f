import { afterAll, afterEach, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { service_rules } from '../../src/chat/books.ts';
import { checkBooks } from '../../src/money/books.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { completion, hello, message, setStage, type Stage } from './setup.ts';

const more = `
  - id: acme/costly
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - provider: oai
        upstream_model: costly
        cost:
          - { unit: input_token, per: 1000000, amount: "1.50" }
          - { unit: cached_input_token, per: 1000000, amount: "0.15" }
          - { unit: output_token, per: 1000000, amount: "7.50", currency: EUR }
      - provider: ant
        upstream_model: second
        cost: [{ unit: input_token, per: 1000000, amount: "3" }, { unit: output_token, per: 1000000, amount: "5" }]
  - id: acme/vectors
    kind: embedding
    price: [{ unit: input_token, per: 1000000, amount: "0.10" }]
    routes: [{ provider: oai, upstream_model: vectors, cost: [{ unit: input_token, per: 1000000, amount: "0.02" }] }]
currencies: { USD: "1", EUR: "0.87" }
`;

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const ask = (model: string, body: object = {}) =>
  stage.client.call('POST', '/v1/chat/completions', { model, messages: hello, ...body });

type Booked = { event: string; route: string; basis: string | null; cost: bigint; unknown: number };

/** A database that is slow gets an end of a call from the journal, behind the answer. */
async function booked(headers: Headers): Promise<Booked[]> {
  return stage.test.app.db.query(
    `select event, route, upstream_basis as basis, upstream_cost as cost, upstream_unknown as unknown
       from ledger_entries where ref = $1 and upstream_basis is not null order by event`,
    [headers.get('x-request-id')],
  );
}

const close = (route: string, basis: string, cost: bigint): Booked => ({
  event: 'close',
  route,
  basis,
  cost,
  unknown: basis === 'unknown' ? 1 : 0,
});

test('the upstream cost follows the cost rows of the route that answered, with the same usage that the caller pays for', async () => {
  const usage = {
    prompt_tokens: 1_000,
    completion_tokens: 87,
    total_tokens: 1_087,
    prompt_tokens_details: { cached_tokens: 900 },
  };
  stage.upstream.script('costly', { json: completion('x', usage) });
  const { headers } = await ask('acme/costly');
  // 100 × 1.5 + 900 × 0.15 + 87 × 7.5 / 0.87, by the million
  await expect.poll(() => booked(headers)).toEqual([close('acme/costly#oai', 'rows', 1_035n)]);
  const recorded = () =>
    stage.test.app.db.query('select upstream_cost from chat_calls where id = $1', [headers.get('x-request-id')]);
  await expect.poll(recorded).toEqual([{ upstream_cost: 1_035n }]);
});

test('a settlement whose confirmation was lost leaves the same record', async () => {
  const { db } = stage.test.app;
  const query = db.query.bind(db);
  let lost = 0;
  vi.spyOn(db, 'query').mockImplementation(async (text: string, values?: readonly unknown[]) => {
    const rows = await query(text, values);
    if (!/close_hold|commit_hold|move_money/.test(text) || lost > 0) return rows;
    lost += 1;
    throw new Error('Connection terminated unexpectedly');
  });
  onTestFinished(() => void vi.restoreAllMocks());
  stage.upstream.script('costly', { json: completion('x', { prompt_tokens: 1_000, completion_tokens: 87 }) });
  const { status, headers } = await ask('acme/costly');
  expect(status).toBe(200);
  expect(lost).toBe(1);
  const recorded = () =>
    stage.test.app.db.query('select cost, upstream_cost from chat_calls where id = $1', [headers.get('x-request-id')]);
  // 1,000 × 2 + 87 × 10, and 1,000 × 1.5 + 87 × 7.5 / 0.87
  await expect.poll(recorded).toEqual([{ cost: 2_870n, upstream_cost: 2_250n }]);
});

test('the upstream cost of a stream without usage is counted as for the caller', async () => {
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  stage.upstream.script('costly', {
    stream: [chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop'), 'data: [DONE]\n\n'],
  });
  const { headers } = await ask('acme/costly', { stream: true });
  await expect
    .poll(() => booked(headers))
    .toEqual([{ ...close('acme/costly#oai', 'counted', 0n), cost: expect.anything() as bigint }]);
});

test('the upstream cost of a route without cost rows is unknown', async () => {
  stage.upstream.script('gpt-x', { json: completion('x') });
  const { headers } = await ask('acme/oai');
  await expect.poll(() => booked(headers)).toEqual([close('acme/oai#oai', 'unknown', 0n)]);
});

test('a refusal has no upstream cost, and a response that breaks off before content is counted', async () => {
  stage.upstream.script('second', { json: message('x') });
  stage.upstream.script('costly', { status: 500, json: { error: { message: 'oops' } } });
  const by_second = close('acme/costly#ant', 'rows', 55n); // 10 × 3 + 5 × 5
  const refused = await ask('acme/costly');
  await expect.poll(() => booked(refused.headers)).toEqual([by_second]);
  stage.upstream.script('costly', 'cut');
  const { headers } = await ask('acme/costly');
  await expect
    .poll(() => booked(headers), { timeout: 120_000 })
    .toEqual([by_second, { ...close('acme/costly#oai', 'unknown', 0n), event: 'upstream 1' }]);
});

test('embeddings have an upstream cost', async () => {
  const data = [{ object: 'embedding', index: 0, embedding: [0.1, 0.2] }];
  const usage = { prompt_tokens: 5_000, total_tokens: 5_000 };
  stage.upstream.script('vectors', { json: { object: 'list', data, model: 'vectors', usage } });
  const { headers } = await stage.client.call('POST', '/v1/embeddings', { model: 'acme/vectors', input: 'x' });
  await expect.poll(() => booked(headers)).toEqual([close('acme/vectors#oai', 'rows', 100n)]);
});

test('the books notice a difference of a millionth between the record of a call and the ledger', async () => {
  const { db } = stage.test.app;
  stage.upstream.script('costly', { json: completion('x') });
  const { headers } = await ask('acme/costly');
  const change = (by: number) =>
    db.query('update chat_calls set upstream_cost = upstream_cost + $2 where id = $1 returning id', [
      headers.get('x-request-id'),
      by,
    ]);
  await expect.poll(() => change(1)).toHaveLength(1); // the record is written behind the answer
  expect(await checkBooks(db, { full: true, more: service_rules })).toMatchObject({
    ok: false,
    difference: '0.000001',
    findings: [{ rule: 'what the upstream charges for a chat call is what the ledger has' }],
  });
  await change(-1);
});

test('our own sandbox has no upstream cost', async () => {
  const { headers, status } = await ask('sandbox/chat');
  expect(status).toBe(200);
  await expect.poll(() => booked(headers)).toEqual([close('sandbox/chat#sandbox', 'free', 0n)]);
});
