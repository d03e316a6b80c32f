import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { LongInteger } from '../../src/lib/long-integers.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { longDigits } from '../helpers/chat-upstream.ts';
import { response, responsesStream } from './responses-streams.ts';
import { completion, generated, message, setStage, type Stage } from './setup.ts';
import { chunk, done, event, messageStart } from './streams.ts';

/** Ids of 64 bits go from tool to tool through the model: one digit less, and it is somebody else's. */
const id = '9007199254740993123';
const bound = '18446744073709551615';
const long = new LongInteger(id);
const parameters = { type: 'object', properties: { order: { type: 'integer', maximum: new LongInteger(bound) } } };
const args = JSON.stringify({ order: long });

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({
    more: `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: always } }]
`,
  });
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

/** A conversation in which a tool was called with such a number, and has such a number in its schema. */
const callers = {
  completions: {
    path: '/v1/chat/completions',
    body: {
      messages: [
        { role: 'user', content: 'Where is it?' },
        {
          role: 'assistant',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: args } }],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'sent' },
      ],
      tools: [{ type: 'function', function: { name: 'look', parameters } }],
    },
  },
  messages: {
    path: '/v1/messages',
    body: {
      max_tokens: 100,
      messages: [
        { role: 'user', content: 'Where is it?' },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'c1', name: 'look', input: { order: long } }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'sent' }] },
      ],
      tools: [{ name: 'look', input_schema: parameters }],
    },
  },
  responses: {
    path: '/v1/responses',
    body: {
      input: [
        { role: 'user', content: 'Where is it?' },
        { type: 'function_call', call_id: 'c1', name: 'look', arguments: args },
        { type: 'function_call_output', call_id: 'c1', output: 'sent' },
      ],
      tools: [{ type: 'function', name: 'look', parameters }],
    },
  },
};

const use = { type: 'tool_use', id: 'toolu_1', name: 'look' };
const function_call = { id: 'call_1', type: 'function', function: { name: 'look', arguments: args } };
const called = completion('');
const [choice] = called.choices;
const item = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'look',
  arguments: args,
  status: 'completed',
};
const from_gemini = generated([{ functionCall: { name: 'look', args: { order: long } } }]);

/** The same call by each kind of upstream, whole and as a stream. */
const upstreams = {
  'acme/oai': {
    model: 'gpt-x',
    whole: { ...called, choices: [{ ...choice, message: { role: 'assistant', tool_calls: [function_call] } }] },
    stream: [
      chunk({ role: 'assistant', tool_calls: [{ index: 0, ...function_call }] }),
      chunk({}, {}, 'tool_calls'),
      done,
    ],
  },
  'acme/ant': {
    model: 'claude-x',
    whole: { ...message(''), content: [{ ...use, input: { order: long } }], stop_reason: 'tool_use' },
    stream: [
      messageStart(),
      event({ type: 'content_block_start', index: 0, content_block: { ...use, input: {} } }),
      event({ type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: args } }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
      event({ type: 'message_stop' }),
    ],
  },
  'acme/gem': {
    model: 'gemini-x',
    whole: from_gemini,
    stream: [`data: ${JSON.stringify(from_gemini)}\n\n`],
  },
  'acme/native': {
    model: 'native-x',
    whole: response([item]),
    stream: [
      ...responsesStream([]).slice(0, 2),
      event({ type: 'response.output_item.added', output_index: 0, item: { ...item, arguments: '' } }),
      event({ type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta: args }),
      event({ type: 'response.output_item.done', output_index: 0, item }),
      event({ type: 'response.completed', response: response([item]) }),
    ],
  },
};

type Caller = keyof typeof callers;
type Model = keyof typeof upstreams;
const cells = (Object.keys(callers) as Caller[]).flatMap((caller) =>
  (Object.keys(upstreams) as Model[]).flatMap((model) => [false, true].map((stream) => ({ caller, model, stream }))),
);

test.each(cells)(
  'an integer keeps every digit both ways from $caller to $model, stream $stream',
  async ({ caller, model, stream }) => {
    const { path, body } = callers[caller];
    const upstream = upstreams[model];
    stage.upstream.script(upstream.model, stream ? { stream: upstream.stream } : { json: upstream.whole });
    const answer = await stage.client.call('POST', path, { model, stream, ...body });
    expect(answer.status).toBe(200);
    expect(new Set(stage.upstream.requests.at(-1)?.digits)).toEqual(new Set([id, bound]));
    const long_numbers = longDigits(answer.text).filter((digits) => digits !== bound); // the responses style tells the tools again
    expect(new Set(long_numbers)).toEqual(new Set([id]));
  },
);

test('a seed of 64 bits reaches an upstream of the same style unchanged, and a limit out of range is refused', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const messages = [{ role: 'user', content: 'Hello' }];
  const call = (more: object) =>
    stage.client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages, ...more });
  expect((await call({ seed: new LongInteger('-9223372036854775808') })).status).toBe(200);
  expect(stage.upstream.requests.at(-1)?.digits).toEqual(['9223372036854775808']);
  const refused = await call({ max_tokens: new LongInteger(bound) });
  expect(refused.status).toBe(400);
  expect(JSON.parse(refused.text).error).toMatchObject({
    param: 'max_tokens',
    message: expect.stringContaining('whole number'),
  });
  expect(JSON.parse((await call({ messages: long })).text).error).toMatchObject({
    param: 'messages',
    message: 'messages must be an array (got number).',
  });
});

test('integers that would be rounded are refused with their position', async () => {
  const refused = await stage.client.call('POST', '/v1/generate', {
    model: 'sandbox/image',
    input: { prompt: 'x', seed: long, extra: ['a', { b: 1 }] },
  });
  expect(refused.status).toBe(422);
  expect(JSON.parse(refused.text).error).toMatchObject({
    param: 'input.seed',
    message: `input.seed must be within ±9007199254740991, or a text: ${id} would be rounded.`,
  });
  const deep = await stage.client.call('POST', '/v1/estimate', {
    model: 'sandbox/image',
    input: { a: [1, { b: long }] },
  });
  expect(JSON.parse(deep.text).error.param).toBe('input.a[1].b');
  const fine = { model: 'sandbox/image', input: { prompt: id, seed: Number.MAX_SAFE_INTEGER } };
  expect(JSON.parse((await stage.client.call('POST', '/v1/estimate', fine)).text).error?.message ?? '').not.toContain(
    '±',
  );
});

test('a body that is only an integer is refused, whether or not long integers are accepted', async () => {
  const many = Array.from({ length: 20_001 }, () => long);
  for (const path of ['/v1/chat/completions', '/v1/messages/count_tokens', '/v1/estimate']) {
    const answer = await stage.client.call('POST', path, { model: 'acme/oai', messages: many });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('holds more than 20000 whole numbers beyond 9007199254740991');
  }
});
