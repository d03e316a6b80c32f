import OpenAI from 'openai-7';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { setStage, type Stage } from '../chat/setup.ts';
import { completionsStream, chunk, done, messagesStream, usageChunk } from '../chat/streams.ts';
import { responsesStream } from '../chat/responses-streams.ts';
import { expectExactBooks } from '../helpers/app.ts';

const native = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: true } }]
`;

let stage: Stage;
let client: OpenAI;

const clientOf = (apiKey: string, url = stage.test.url) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 });

beforeAll(async () => {
  stage = await setStage({ more: native });
  client = clientOf(stage.client.key);
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
});

const model = 'sandbox/chat';

async function untilEnded(id: string, on = client): Promise<OpenAI.Responses.Response> {
  let last: OpenAI.Responses.Response | undefined;
  await expect
    .poll(
      async () => {
        last = await on.responses.retrieve(id);
        return last.status;
      },
      { timeout: 120_000, interval: 50 },
    )
    .not.toMatch(/queued|in_progress/);
  if (!last) throw new Error('there is no answer');
  return last;
}

const untilDone = (id: string) =>
  expect
    .poll(() =>
      stage.test.app.db.query('select 1 from background_responses where id = $1 and done_at is not null', [id]),
    )
    .toHaveLength(1);

test('a response in the background is queued at once, polled, charged once, and continued by its id', async () => {
  const queued = await client.responses.create({ model, input: 'Hello', background: true });
  expect(queued).toMatchObject({ status: 'queued', background: true, store: true, output: [], model });
  const ended = await untilEnded(queued.id);
  expect(ended).toMatchObject({ id: queued.id, status: 'completed', background: true, created_at: queued.created_at });
  expect(ended.output_text).toContain('You said: “Hello”.');
  await untilDone(queued.id);
  const request_id = queued.id.replace('resp_', '');
  const { json } = await stage.client.call('GET', `/v1/chat/${request_id}`);
  const { usage } = ended;
  const cost = (usage?.input_tokens ?? 0) + 4 * (usage?.output_tokens ?? 0);
  expect(json.cost).toMatchObject({ exact: (cost / 1e6).toFixed(6) });
  const next = await client.responses.create({ model, input: 'And now?', previous_response_id: queued.id });
  expect(next.output_text).toContain('We are at turn 2 of yours.');
  const items = await client.responses.inputItems.list(queued.id);
  expect(items.data).toMatchObject([{ content: [{ text: 'Hello' }] }]);
  await client.responses.delete(queued.id);
  await expect(client.responses.retrieve(queued.id)).rejects.toMatchObject({ status: 404 });
});

test.each([
  ['acme/native', 'native-x', responsesStream(['Hello', ' there'])],
  ['acme/oai', 'gpt-x', completionsStream(['Hello', ' there'], [10, 5])],
  ['acme/ant', 'claude-x', messagesStream(['Hello', ' there'])],
] as const)(
  'a stream in the background from %s has its events in order, and is resumed at any of them',
  async (request, upstream_model, script) => {
    stage.upstream.script(upstream_model, { stream: [...script] });
    const stream = await client.responses.create({ model: request, input: 'Hi', background: true, stream: true });
    const events: OpenAI.Responses.ResponseStreamEvent[] = [];
    for await (const one of stream) events.push(one);
    expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, index) => index));
    const types = events.map(({ type }) => type);
    expect(types.slice(0, 3)).toEqual(['response.created', 'response.queued', 'response.in_progress']);
    expect(types.filter((type) => type === 'response.completed')).toHaveLength(1);
    const last = events.at(-1);
    if (last?.type !== 'response.completed') throw new Error(`the last event is ${last?.type}`);
    const text = events.map((one) => (one.type === 'response.output_text.delta' ? one.delta : '')).join('');
    expect(text).toBe('Hello there');
    expect(last.response).toMatchObject({ status: 'completed', background: true });
    for (const after of [0, 2, 5, events.length - 2]) {
      const rest: OpenAI.Responses.ResponseStreamEvent[] = [];
      const again = await client.responses.retrieve(last.response.id, { stream: true, starting_after: after });
      for await (const one of again) rest.push(one);
      expect(rest).toEqual(events.slice(after + 1));
    }
    expect(await client.responses.retrieve(last.response.id)).toMatchObject({ output: last.response.output });
  },
);

test('a reader that leaves changes nothing, and comes back on another node', async () => {
  const beside = await stage.test.beside();
  try {
    stage.upstream.script('gpt-x', {
      stream: [
        chunk({ content: 'Hi' }),
        1_500,
        chunk({ content: ' there' }),
        chunk({}, {}, 'stop'),
        usageChunk(10, 5),
        done,
      ],
    });
    const stream = await client.responses.create({ model: 'acme/oai', input: 'Hi', background: true, stream: true });
    let id = '';
    let seen = -1;
    for await (const one of stream) {
      if (one.type === 'response.created') id = one.response.id;
      seen = one.sequence_number;
      if (one.type === 'response.output_text.delta') break;
    }
    const rest: OpenAI.Responses.ResponseStreamEvent[] = [];
    const again = await clientOf(stage.client.key, beside.url).responses.retrieve(id, {
      stream: true,
      starting_after: seen,
    });
    for await (const one of again) rest.push(one);
    expect(rest[0]?.sequence_number).toBe(seen + 1);
    expect(rest.map((one) => (one.type === 'response.output_text.delta' ? one.delta : '')).join('')).toBe(' there');
    expect(rest.at(-1)?.type).toBe('response.completed');
  } finally {
    await beside.stop();
  }
});

test('one that is cancelled in the middle is charged for what has come, and one that has ended is not cancelled', async () => {
  stage.upstream.script('gpt-x', {
    stream: [
      chunk({ content: 'Hi there' }),
      ...Array.from({ length: 600 }, () => [200, chunk({ content: '.' })]).flat(), // nobody waits for its end
    ],
  });
  const { id } = await client.responses.create({ model: 'acme/oai', input: 'Hi', background: true });
  await expect.poll(async () => (await client.responses.retrieve(id)).status).toBe('in_progress');
  await expect.poll(() => stage.upstream.open()).toBe(1);
  const cancelled = await client.responses.cancel(id);
  expect(cancelled.status).toBe('cancelled');
  expect(cancelled.output).toMatchObject([{ type: 'message', status: 'incomplete' }]);
  expect((await client.responses.retrieve(id)).output_text).toMatch(/^Hi there/);
  await untilDone(id);
  expect(stage.upstream.open()).toBe(0);
  const { json } = await stage.client.call('GET', `/v1/chat/${id.replace('resp_', '')}`);
  expect(Number(json.cost.exact)).toBeGreaterThan(0);
  const { input_tokens = 0, output_tokens = 0 } = cancelled.usage ?? {};
  expect(json).toMatchObject({ usage: { input_tokens, output_tokens } });
  expect((await client.responses.cancel(id)).status).toBe('cancelled');
  const whole = await client.responses.create({ model, input: 'Hello', background: true });
  await untilEnded(whole.id);
  await expect(client.responses.cancel(whole.id)).rejects.toMatchObject({ status: 400 });
  const plain = await client.responses.create({ model, input: 'Hello' });
  await expect(client.responses.cancel(plain.id)).rejects.toMatchObject({ status: 400, param: 'id' });
});

test('one that fails says so, and costs nothing', async () => {
  stage.upstream.script('claude-x', { status: 500, json: { error: { message: 'down' } } });
  const { id } = await client.responses.create({ model: 'acme/ant', input: 'Hi', background: true });
  expect(await untilEnded(id)).toMatchObject({ status: 'failed', error: { code: 'server_error' }, output: [] });
  await untilDone(id);
  const { json } = await stage.client.call('GET', `/v1/chat/${id.replace('resp_', '')}`);
  expect(json.cost).toMatchObject({ exact: '0.000000' });
});

test('money, models and what is not stored are refused when it is created', async () => {
  const poor = clientOf((await stage.test.client({ credit: '0.000001' })).key);
  await expect(poor.responses.create({ model, input: 'Hello', background: true })).rejects.toMatchObject({
    status: 402,
  });
  const limited = clientOf((await stage.test.client({ limit: '0.000001' })).key);
  await expect(limited.responses.create({ model, input: 'Hello', background: true })).rejects.toMatchObject({
    status: 403,
  });
  await expect(
    client.responses.create({ model, input: 'Hello', background: true, store: false }),
  ).rejects.toMatchObject({ status: 400, param: 'store' });
  await expect(client.responses.create({ model: 'acme/none', input: 'x', background: true })).rejects.toMatchObject({
    status: 404,
  });
  const stranger = clientOf((await stage.test.client()).key);
  const { id } = await client.responses.create({ model, input: 'Hello', background: true });
  await expect(stranger.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
  await expect(stranger.responses.cancel(id)).rejects.toMatchObject({ status: 404 });
  await expect(stranger.responses.delete(id)).rejects.toMatchObject({ status: 404 });
  await expect(stranger.responses.retrieve(id, { stream: true })).rejects.toMatchObject({ status: 404 });
  await expect(client.responses.retrieve(id, { stream: true })).rejects.toMatchObject({ status: 400, param: 'stream' });
  await untilEnded(id);
});

test('it has the turn of its conversation from its creation to its end', async () => {
  const { promise: refused, resolve: isRefused } = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', {
    stream: [chunk({ content: 'Hi' }), refused, chunk({}, {}, 'stop'), usageChunk(10, 5), done],
  });
  const { id: conversation } = await client.conversations.create();
  const { id } = await client.responses.create({ model: 'acme/oai', input: 'one', background: true, conversation });
  await expect(client.responses.create({ model, input: 'two', conversation })).rejects.toMatchObject({
    code: 'conversation_locked',
  });
  isRefused();
  expect(await untilEnded(id)).toMatchObject({ status: 'completed', conversation: { id: conversation } });
  await untilDone(id);
  expect((await client.conversations.items.list(conversation)).data).toHaveLength(2);
  await client.responses.create({ model, input: 'two', conversation });
});
