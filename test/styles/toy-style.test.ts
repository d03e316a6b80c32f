import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { completion, hello, message, setStage, type Stage } from '../chat/setup.ts';
import { completionsStream, messagesStream } from '../chat/streams.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { toy_adapter } from './toy/adapter.ts';
import { toy } from './toy/codec.ts';

/** A service that was given one more style, by its codec in the list of styles and an adapter that speaks it. */
let stage: Stage;

beforeAll(async () => {
  const more = `  - id: acme/toy
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: toy, upstream_model: toy-x }]
`;
  const providers = '  toy: { adapter: toy, base_url: "URL", allow_private: true }\n';
  stage = await setStage({ styles: [toy], adapters: { toy: toy_adapter }, more, providers });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** 10 tokens of input at 2.00 and 5 of output at 10.00 a million. */
const cost = '0.000070';
const lines = [{ who: 'user', text: 'Hello' }];
const toy_answer = { id: 'up-1', model: 'toy-x', text: 'Good day.', why: 'done', usage: { in: 10, out: 5 } };
const toy_stream = [
  'data: {"id":"up-1","model":"toy-x","text":"Good "}\n\n',
  'data: {"id":"up-1","model":"toy-x","text":"day."}\n\n',
  'data: {"why":"done","usage":{"in":10,"out":5}}\n\n',
];

type Event = Record<string, unknown>;

/** The events of a stream, and what its call cost. */
async function streamed(path: string, body: object): Promise<{ events: Event[]; text: string; cost: string }> {
  const { status, text, headers } = await stage.client.call('POST', path, body);
  expect(status).toBe(200);
  expect(headers.get('content-type')).toContain('text/event-stream');
  const events = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data) as Event);
  return { events, text, cost: await costOf(headers.get('x-request-id') ?? '') };
}

async function costOf(id: string): Promise<string> {
  const record = () => stage.client.call('GET', `/v1/chat/${id}`);
  await expect.poll(async () => (await record()).status).toBe(200);
  return (await record()).json.cost.exact;
}

const lastRequest = () => stage.upstream.requests.at(-1);

test('a caller of a style that was added gets whole answers of an upstream of messages style, at their price', async () => {
  stage.upstream.script('claude-x', { json: message('Good day.') });
  const { status, text, headers } = await stage.client.call('POST', '/v1/toy', { model: 'acme/ant', lines });
  expect([status, JSON.parse(text)]).toEqual([
    200,
    {
      id: `toy-${headers.get('x-request-id')}`,
      model: 'acme/ant',
      text: 'Good day.',
      why: 'done',
      usage: { in: 10, out: 5 },
    },
  ]);
  expect(headers.get('x-cost-amount')).toBe(cost);
  expect(lastRequest()).toMatchObject({
    path: '/v1/messages',
    body: { messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }] },
  });
});

test('and their streams', async () => {
  stage.upstream.script('claude-x', { stream: messagesStream(['Good ', 'day.']) });
  const answer = await streamed('/v1/toy', { model: 'acme/ant', lines, drip: true });
  expect(answer.events.map(({ text = '' }) => text).join('')).toBe('Good day.');
  expect(answer.events.at(-1)).toEqual({ why: 'done', usage: { in: 10, out: 5 } });
  expect(answer.cost).toBe(cost);
});

test('a caller of completions style gets whole answers of an upstream of the style that was added', async () => {
  stage.upstream.script('toy-x', { json: toy_answer });
  const body = { model: 'acme/toy', messages: [{ role: 'system', content: 'Be brief.' }, ...hello] };
  const { status, text, headers } = await stage.client.call('POST', '/v1/chat/completions', body);
  expect(status).toBe(200);
  expect(JSON.parse(text)).toMatchObject({
    model: 'acme/toy',
    choices: [{ message: { content: 'Good day.' }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 10, completion_tokens: 5 },
  });
  expect(headers.get('x-cost-amount')).toBe(cost);
  expect(lastRequest()).toMatchObject({
    path: '/toy',
    body: {
      model: 'toy-x',
      lines: [
        { who: 'rule', text: 'Be brief.' },
        { who: 'user', text: 'Hello' },
      ],
    },
  });
});

test('and its streams', async () => {
  stage.upstream.script('toy-x', { stream: toy_stream });
  const body = { model: 'acme/toy', messages: hello, stream: true, stream_options: { include_usage: true } };
  const { events, text, cost: charged } = await streamed('/v1/chat/completions', body);
  expect(text).toContain('data: [DONE]');
  expect(JSON.stringify(events)).toContain('"content":"Good "');
  expect(events.at(-1)).toMatchObject({ usage: { prompt_tokens: 10, completion_tokens: 5 } });
  expect(charged).toBe(cost);
});

test('between a caller and an upstream of the style that was added, answers keep their bytes but for the name and the id', async () => {
  stage.upstream.script('toy-x', { json: toy_answer }, { stream: toy_stream });
  const whole = await stage.client.call('POST', '/v1/toy', { model: 'acme/toy', lines, unheard_of: 1 });
  const id = `toy-${whole.headers.get('x-request-id')}`;
  expect(whole.text).toBe(JSON.stringify({ ...toy_answer, id, model: 'acme/toy' }));
  expect(whole.headers.get('x-ignored-fields')).toBe('unheard_of');
  expect(lastRequest()?.body).toEqual({ model: 'toy-x', lines, most: 1000 });
  const answer = await streamed('/v1/toy', { model: 'acme/toy', lines, drip: true });
  expect(answer.text.replaceAll(/"toy-req_\w+"/g, '"up-1"').replaceAll('acme/toy', 'toy-x')).toBe(toy_stream.join(''));
  expect(answer.cost).toBe(cost);
});

test('a mistake in a request of the style that was added is named in its own format', async () => {
  const { status, json } = await stage.client.call('POST', '/v1/toy', { model: 'acme/ant', lines: 'Hello' });
  expect([status, json.error]).toEqual([400, expect.objectContaining({ param: 'lines', code: null })]);
  const wrong = { model: 'acme/ant', lines: [{ who: 'nobody', text: 'Hello' }] };
  expect((await stage.client.call('POST', '/v1/toy', wrong)).json.error.param).toBe('lines[0].who');
});

test('the other styles are what they were', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') }, { stream: completionsStream(['Hi']) });
  const body = { model: 'acme/oai', messages: hello };
  expect((await stage.client.call('POST', '/v1/chat/completions', body)).status).toBe(200);
  expect((await streamed('/v1/chat/completions', { ...body, stream: true })).text).toContain('data: [DONE]');
});
