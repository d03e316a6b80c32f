import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { completion, message, setStage, type Stage } from './setup.ts';
import { chunk, done, event, messageStart } from './streams.ts';

/** Input that callers want kept in the upstream's cache for an hour: twice the price of input, five minutes 1.25 times. */

let stage: Stage;
let client: Client;

const rows = (hour: string) => `[
      { unit: input_token, per: 1000000, amount: "1" },
      { unit: cached_input_token, per: 1000000, amount: "0.1" },
      { unit: cache_write_token, per: 1000000, amount: "1.25" },
      ${hour}{ unit: output_token, per: 1000000, amount: "5" }]`;
const hour_row = '{ unit: cache_write_1h_token, per: 1000000, amount: "2" },';

const model = (id: string, provider: string, hour: string, options = '{}') => `
  - { id: cache/${id}, kind: chat, max_output_tokens: 100, price: ${rows(hour)},
      routes: [{ provider: ${provider}, upstream_model: ${id}, options: ${options}, cost: ${rows(hour)} }] }`;

const more = [
  model('priced', 'ant', hour_row),
  model('unpriced', 'ant', ''),
  model('passed', 'ant', '', '{ pass: [cache_ttl] }'),
  model('elsewhere', 'oai', hour_row),
  model('proxied', 'oai', hour_row, '{ pass: [cache_ttl] }'),
].join('');

beforeAll(async () => {
  stage = await setStage({ more });
  client = await stage.test.client();
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

type Mark = { type: string; ttl?: string };
const hour: Mark = { type: 'ephemeral', ttl: '1h' };
const minutes: Mark = { type: 'ephemeral' };

const paths = ['messages', 'chat/completions'] as const;
type Path = (typeof paths)[number];

const bodyOf = (id: string, mark: Mark, others: object = {}) => ({
  model: `cache/${id}`,
  max_tokens: 50,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'x'.repeat(4_000), cache_control: mark }] }],
  ...others,
});

/** Of 1,000 tokens that were written 900 are for an hour, and 10 were read. */
const usage = {
  input_tokens: 7,
  cache_read_input_tokens: 10,
  cache_creation_input_tokens: 1_000,
  cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 900 },
  output_tokens: 20,
};
const { cache_creation: _, ...other_usage } = usage;

/** Millionths: of the tokens above, and with all that was written for an hour, or for five minutes. */
const costs = { reported: 7 + 1 + 125 + 1_800 + 100, hour: 7 + 1 + 2_000 + 100, minutes: 7 + 1 + 1_250 + 100 };

/** `message_delta` tells of all that was written, but not for how long. */
const frames = [
  messageStart({ ...usage, output_tokens: 1 }),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
  event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
  event({ type: 'content_block_stop', index: 0 }),
  event({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: other_usage }),
  event({ type: 'message_stop' }),
];

/** Asks, and answers what the upstream was sent and the call came to, in millionths. */
async function call(path: Path, body: object) {
  const answer = await client.call('POST', `/v1/${path}`, body);
  expect(answer.status, answer.text).toBe(200);
  const id = answer.headers.get('x-request-id') ?? '';
  await expect.poll(async () => (await client.call('GET', `/v1/chat/${id}`)).status).toBe(200);
  const record = (await client.call('GET', `/v1/chat/${id}`)).json;
  const [entry] = await stage.test.app.db.query<{ upstream_cost: bigint; units: object }>(
    'select upstream_cost, units from ledger_entries where ref = $1 and units is not null',
    [id],
  );
  const sent = JSON.stringify(stage.upstream.requests.at(-1)?.body);
  return { answer, record, cost: Math.round(Number(record.cost.exact) * 1e6), entry, sent };
}

describe.each(paths)('a mark for an hour in a body of %s', (path) => {
  test.each([false, true])(
    'goes to an upstream of messages style and costs the price of an hour, stream %s',
    async (stream) => {
      stage.upstream.script('priced', stream ? { stream: frames } : { json: message('Hi', usage) });
      const { record, cost, entry, sent } = await call(path, bodyOf('priced', hour, { stream }));
      expect(sent).toContain('"cache_control":{"type":"ephemeral","ttl":"1h"}');
      expect(cost).toBe(costs.reported);
      expect(record).toMatchObject({ usage: { cache_write_tokens: 1_000, cache_write_1h_tokens: 900 } });
      expect(entry).toMatchObject({
        upstream_cost: BigInt(costs.reported),
        units: { cache_write_token: '100', cache_write_1h_token: '900', cached_input_token: '10', input_token: '7' },
      });
    },
  );

  test('is one for five minutes where the model has no price for it', async () => {
    stage.upstream.script('unpriced', { json: message('Hi', other_usage) });
    const { cost, sent } = await call(path, bodyOf('unpriced', hour));
    expect(sent).toContain('"cache_control":{"type":"ephemeral"}');
    expect(sent).not.toContain('1h');
    expect(cost).toBe(costs.minutes);
  });

  test('costs what five minutes cost where a route passes it for a model without the price', async () => {
    stage.upstream.script('passed', { json: message('Hi', usage) });
    const { cost, sent } = await call(path, bodyOf('passed', hour));
    expect(sent).toContain('"ttl":"1h"');
    expect(cost).toBe(costs.minutes);
  });

  test('costs the price of an hour where the upstream does not tell how long it keeps what it has written', async () => {
    stage.upstream.script('priced', { json: message('Hi', other_usage) });
    const { record, cost } = await call(path, bodyOf('priced', hour));
    expect(cost).toBe(costs.hour);
    expect(record).toMatchObject({ usage: { cache_write_tokens: 1_000, cache_write_1h_tokens: 1_000 } });
    expect((await call(path, bodyOf('priced', minutes))).cost).toBe(costs.minutes);
  });
});

test('the caller of the messages style reads how many tokens were charged for an hour', async () => {
  stage.upstream.script('priced', { json: message('Hi', other_usage) });
  const { answer } = await call('messages', bodyOf('priced', hour));
  const cache_creation = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: 1_000 };
  expect(answer.json).toMatchObject({ usage: { cache_creation_input_tokens: 1_000, cache_creation } });
});

describe('an upstream of completions style', () => {
  const details = { cached_tokens: 10, cache_write_tokens: 1_000 };
  const chat_usage = {
    prompt_tokens: 1_017,
    completion_tokens: 20,
    total_tokens: 1_037,
    prompt_tokens_details: details,
  };

  test('is sent marks for five minutes, since its usage does not tell of an hour', async () => {
    stage.upstream.script('elsewhere', { json: completion('Hi', chat_usage) });
    const { cost, sent } = await call('chat/completions', bodyOf('elsewhere', hour));
    expect(sent).not.toContain('1h');
    expect(cost).toBe(costs.minutes);
  });

  test.each([
    ['as a detail of the prompt', { ...details, cache_creation_token_details: usage.cache_creation }, {}],
    ['beside it', details, { cache_creation: usage.cache_creation }],
  ])('may be passed marks for an hour, and is believed what it tells of them %s', async (_name, prompt, beside) => {
    const counted = { ...chat_usage, ...beside, prompt_tokens_details: prompt };
    const last = JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'x', choices: [], usage: counted });
    const stream = [chunk({ content: 'Hi' }), chunk({}, {}, 'stop'), `data: ${last}\n\n`, done];
    stage.upstream.script('proxied', { json: completion('Hi', counted) }, { stream });
    const whole = await call('chat/completions', bodyOf('proxied', hour));
    expect(whole.sent).toContain('"ttl":"1h"');
    expect(whole.cost).toBe(costs.reported);
    expect((await call('chat/completions', bodyOf('proxied', hour, { stream: true }))).cost).toBe(costs.reported);
  });
});

test('the hold is for the price of an hour only where the request has such a mark', async () => {
  const held = async (mark: Mark) => {
    const poor = await stage.test.client({ credit: '0.02' }); // every byte is held for
    stage.upstream.script('priced', { json: message('Hi', usage) });
    const answer = await poor.call('POST', '/v1/messages', bodyOf('priced', mark));
    expect(answer.status, answer.text).toBe(200);
    const { data } = (await poor.call('GET', '/v1/balance/transactions')).json;
    return Math.round(Number(data.find(({ type }: { type: string }) => type === 'hold')?.amount.exact) * 1e6);
  };
  const [long, short] = [await held(hour), await held(minutes)];
  expect(long).toBeGreaterThanOrEqual(4_000 * 2 + 50 * 5);
  expect(long).toBeLessThan(4_100 * 2 + 50 * 5);
  expect(short).toBeLessThan(4_100 * 1.25 + 50 * 5);
});

test('a model tells its price of an hour', async () => {
  const { pricing } = (await client.call('GET', '/v1/models/cache/priced')).json;
  expect(pricing).toContainEqual(
    expect.objectContaining({ unit: 'cache_write_1h_token', amount: '2', per: 1_000_000, currency: 'USD' }),
  );
});
