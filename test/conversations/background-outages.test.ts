import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startWorker } from '../../src/worker.ts';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import type { Script } from '../helpers/chat-upstream.ts';
import { testClock, type TestClock } from '../helpers/clock.ts';
import { setStage, yamlOf, type Stage } from '../chat/setup.ts';
import { chunk, completionsStream, messagesStream } from '../chat/streams.ts';

/** Responses in the background whose upstream, or whose worker, is away; large ones; and those that choose their route. */

/** For an upstream that says nothing: every other answer has its time on a busy machine. */
const short = 'timeout: { first_byte: 5s, idle: 5s, total: 60s }';
const long = 'timeout: { first_byte: 2m, idle: 2m, total: 5m }';
const price = `[{ unit: input_token, per: 1000000, amount: "2.00" }, { unit: output_token, per: 1000000, amount: "10.00" }]`;
const moreOf = (time: string) => `
  - { id: acme/short, kind: chat, max_output_tokens: 1000, price: ${price}, routes: [{ provider: oai, upstream_model: short-x, ${time} }] }
  - { id: acme/down, kind: chat, max_output_tokens: 1000, price: ${price}, routes: [{ provider: down, upstream_model: down-x, ${long} }] }
`;
const more = moreOf(long);
/** Nothing listens at port 9. */
const providers = `
  down: { adapter: openai, base_url: "http://127.0.0.1:9/v1", api_key: env:TEST_UPSTREAM_KEY, allow_private: true }
`;
const shared_storage = 'storage: { shared: true }\n';
const clock = testClock();

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ more, providers, clock });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** Cost of an answer of the upstream: 10 tokens in, 5 out. */
const answer_cost = 70n;

/** Changes the times of the model `acme/short`, for attempts that begin from now on. */
const setTimes = (time: string) => stage.test.configure(yamlOf(stage.upstream, moreOf(time), providers));

/** Does something with a service of its own that has no worker yet. */
async function withoutWorker(act: (clock: TestClock) => Promise<void>): Promise<void> {
  const shared = stage;
  const own_clock = testClock();
  stage = await setStage({ worker: false, clock: own_clock, more: shared_storage });
  try {
    await act(own_clock);
    expect(await heldOf(stage.client)).toBe('0.000000');
    await expectExactBooks(stage.test.app);
  } finally {
    await stage.stop();
    stage = shared;
  }
}

type Entry = { type: string; revenue: bigint };
type Body = { id: string; status: string; error: { code: string; message: string } | null; output: object[] };
const bodyOf = ({ text }: Answered) => JSON.parse(text) as Body;

async function create(client: Client, body: object): Promise<string> {
  const answer = await client.call('POST', '/v1/responses', { input: 'Hi', background: true, ...body });
  expect([answer.status, bodyOf(answer).status]).toEqual([200, 'queued']);
  return bodyOf(answer).id;
}

/** The response when all that follows from its end is done. */
async function ended(client: Client, id: string): Promise<Body> {
  const query = 'select 1 from background_responses where id = $1 and done_at is not null';
  await expect.poll(() => stage.test.app.db.query(query, [id]), { timeout: 120_000, interval: 50 }).toHaveLength(1);
  return bodyOf(await client.call('GET', `/v1/responses/${id}`));
}

/** The entries of the ledger for the hold of a response. */
const entriesOf = (id: string): Promise<Entry[]> =>
  stage.test.app.db.query<Entry>(
    "select type, revenue from ledger_entries where event in ('close', 'late') and ref = $1",
    [id.replace('resp_', '')],
  );
const heldOf = async (client: Client) => (await client.call('GET', '/v1/balance')).json.held.exact;

const released: Entry[] = [{ type: 'release', revenue: 0n }];
const settled: Entry[] = [{ type: 'settle', revenue: answer_cost }];
const unavailable: Script = {
  status: 503,
  headers: { 'retry-after': '60' },
  json: { error: { message: 'overloaded' } },
};

describe('an outage of the upstream', () => {
  test.each<[what: string, model: string, script: Script, code?: string]>([
    ['refuses connections', 'acme/down', 'cut'],
    ['answers 503 and says when to come again', 'acme/short', unavailable, 'rate_limit_exceeded'],
    ['answers 500', 'acme/short', { status: 500, json: { error: { message: 'secret words' } } }],
    ['says nothing', 'acme/short', 'hang'],
    ['breaks off before its first word', 'acme/short', { stream: [], then: 'cut' }],
  ])(
    'that %s fails every response at no cost, and the next one after it is made',
    async (_, model, script, code = 'server_error') => {
      const client = await stage.test.client();
      stage.upstream.script('short-x', script);
      if (script === 'hang') await setTimes(short);
      const ids = await Promise.all([create(client, { model }), create(client, { model, stream: false })]);
      for (const id of ids) {
        const { status, error, output } = await ended(client, id);
        expect([status, error?.code, output]).toEqual(['failed', code, []]);
        expect(error?.message).not.toContain('secret words');
        expect(await entriesOf(id)).toEqual(released);
      }
      expect(await heldOf(client)).toBe('0.000000');
      clock.pass(3 * 3_600_000); // a long one
      await setTimes(long);
      stage.upstream.script('short-x', { stream: completionsStream(['Hello'], [10, 5]) });
      const next = await create(client, { model: 'acme/short' });
      expect(await ended(client, next)).toMatchObject({
        status: 'completed',
        output: [{ content: [{ text: 'Hello' }] }],
      });
      expect(await entriesOf(next)).toEqual(settled);
    },
  );

  test('of one of two is not noticed: the other route makes it, and it is charged once', async () => {
    const client = await stage.test.client();
    stage.upstream.script('first', unavailable);
    stage.upstream.script('second', { stream: messagesStream(['Hello']) });
    const id = await create(client, { model: 'acme/two' });
    expect(await ended(client, id)).toMatchObject({ status: 'completed', error: null });
    expect(await entriesOf(id)).toEqual(settled);
  });
});

describe('an upstream that falls silent in the middle', () => {
  const words = 'These words have come. ';
  const idIn = ({ text }: Answered) => /resp_\w+/.exec(text)?.[0] ?? '';

  async function costOf(client: Client, id: string): Promise<string> {
    const read = () => client.call('GET', `/v1/chat/${id.replace('resp_', '')}`);
    await expect.poll(async () => (await read()).status).toBe(200); // records are written behind the answer
    return (await read()).json.cost.exact;
  }

  test('costs what has come, as a call that somebody waits for, and the response that has failed has it', async () => {
    const client = await stage.test.client();
    stage.upstream.script('short-x', { stream: [chunk({ content: words })], then: 'hang' });
    await setTimes(short);
    const ask = (more_fields: object) =>
      client.call('POST', '/v1/responses', { model: 'acme/short', input: 'Hi', ...more_fields });
    const [live, ...others] = await Promise.all([
      ask({ stream: true }),
      ask({ background: true, stream: true }),
      ask({ background: true }),
    ]);
    for (const answer of others)
      expect(await ended(client, idIn(answer))).toMatchObject({
        status: 'failed',
        error: { code: 'server_error' },
        output: [{ type: 'message', status: 'incomplete', content: [{ type: 'output_text', text: words }] }],
        usage: { output_tokens: expect.any(Number) },
      });
    const [cost, ...costs] = await Promise.all([live, ...others].map((answer) => costOf(client, idIn(answer))));
    expect(Number(cost)).toBeGreaterThan(0);
    expect(costs).toEqual([cost, cost]);
    for (const answer of others)
      expect(await entriesOf(idIn(answer))).toEqual([
        { type: 'settle', revenue: BigInt(String(cost).replace('.', '')) },
      ]);
    const events = others[0]?.text.trim().split('\n\n') ?? [];
    expect(events.join('')).toContain(JSON.stringify(words));
    expect(events.at(-1)).toMatch(/^event: response\.failed\n/);
    expect(events.at(-1)).toContain(JSON.stringify(words));
    expect(events.join('')).not.toContain('response.completed');
    expect(await heldOf(client)).toBe('0.000000');
    await setTimes(long);
  });
});

describe('a response that no worker begins', () => {
  test.each([
    ['within an hour is made late', 3_300_000, 'completed', settled, 1, ''],
    [
      'for more than an hour fails at no cost, and no upstream is asked',
      3_600_001,
      'failed',
      released,
      0,
      'No worker began this response in time.',
    ],
  ] as const)('%s', async (_, passed_ms, status, entries, request_count, words) => {
    await withoutWorker(async (own_clock) => {
      stage.upstream.script('gpt-x', { stream: completionsStream(['Hello'], [10, 5]) });
      const id = await create(stage.client, { model: 'acme/oai' });
      own_clock.pass(passed_ms);
      await startWorker(stage.test.app);
      const body = await ended(stage.client, id);
      expect(body.status).toBe(status);
      expect(body.error?.message ?? '').toContain(words);
      expect(await entriesOf(id)).toEqual(entries);
      expect(stage.upstream.requests).toHaveLength(request_count);
    });
  });
});

describe('an input of 20 MB', () => {
  const input = 'words '.repeat(20_000_000 / 6);
  const rows = () =>
    stage.test.app.db.query('select 1 from background_responses where account_id = $1', [big.account_id]);
  let big: Client;

  beforeAll(async () => {
    big = await stage.test.client({ credit: '1000' });
  });

  test('is refused by name where less may be stored, and nothing is held or kept', async () => {
    const refused = await big.call('POST', '/v1/responses', { model: 'acme/short', input, background: true });
    expect([refused.status, refused.json.error.param]).toEqual([400, 'input']);
    expect(refused.json.error.message).toContain('at most 8 MB');
    expect(await heldOf(big)).toBe('0.000000');
    expect(await rows()).toEqual([]);
  });

  test('is taken where as much may be stored: the upstream gets all of it, and its memory is given back', async () => {
    await stage.test.configure(yamlOf(stage.upstream, `${more}responses: { response_mb_max: 24 }\n`, providers));
    stage.upstream.script('gpt-x', { stream: completionsStream(['Read.'], [10, 5]) });
    const id = await create(big, { model: 'acme/oai', input });
    expect(await ended(big, id)).toMatchObject({ error: null, status: 'completed' });
    const messages = stage.upstream.requests.at(-1)?.body['messages'];
    expect(JSON.stringify(messages).length).toBe(JSON.stringify([{ role: 'user', content: input }]).length);
    expect(await entriesOf(id)).toEqual(settled);
    await expect.poll(() => stage.test.app.limits.body_memory.inUse(big.account_id)).toBe(0);
    await stage.test.configure(yamlOf(stage.upstream, more, providers));
  });
});

describe('preferences for providers', () => {
  const scriptBoth = () => {
    stage.upstream.script('first', { stream: completionsStream(['Hello'], [10, 5]) });
    stage.upstream.script('second', { stream: messagesStream(['Hello']) });
  };
  const askedSince = (from: number) => stage.upstream.requests.slice(from).map(({ body }) => body['model']);

  test.each<[provider: object | undefined, asked: string]>([
    [undefined, 'first'],
    [{ order: ['ant'] }, 'second'],
    [{ only: ['ant'] }, 'second'],
    [{ ignore: ['oai'] }, 'second'],
    [{ order: ['oai'], allow_fallbacks: false }, 'first'],
  ])('%j are those of the call when a worker makes it', async (provider, rules) => {
    scriptBoth();
    const client = await stage.test.client();
    const from = stage.upstream.requests.length;
    const id = await create(client, { model: 'acme/two', ...(provider && { provider }) });
    expect((await ended(client, id)).status).toBe('completed');
    expect(askedSince(from)).toEqual([rules]);
    expect(await entriesOf(id)).toEqual(settled);
  });

  test('that leave one route have no other where that one is away, and the response costs nothing', async () => {
    scriptBoth();
    stage.upstream.script('second', unavailable);
    const client = await stage.test.client();
    const from = stage.upstream.requests.length;
    const id = await create(client, { model: 'acme/two', provider: { only: ['ant'] } });
    expect((await ended(client, id)).status).toBe('failed');
    expect(new Set(askedSince(from))).toEqual(new Set(['second']));
    expect(await entriesOf(id)).toEqual(released);
  });

  test('that the operator no longer offers when a worker comes end the response by name, at no cost', async () => {
    await withoutWorker(async () => {
      const id = await create(stage.client, { model: 'acme/two', provider: { only: ['ant'] } });
      const closed = `${shared_storage}routing: { by_caller: false }\n`;
      await stage.test.configure(yamlOf(stage.upstream, closed));
      await startWorker(stage.test.app);
      const { status, error } = await ended(stage.client, id);
      expect([status, error?.message]).toEqual(['failed', expect.stringMatching(/^provider is not offered here/)]);
      expect(await entriesOf(id)).toEqual(released);
      expect(stage.upstream.requests).toEqual([]);
    });
  });

  test('that are wrong are refused when it is created', async () => {
    const body = { model: 'acme/two', input: 'Hi', background: true, provider: { only: ['nobody'] } };
    const refused = await stage.client.call('POST', '/v1/responses', body);
    expect([refused.status, refused.json.error.param]).toEqual([400, 'provider.only[0]']);
  });
});
