import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import type { CallerStyle } from '../styles/by-name.ts';
import { testComparisons } from './compared.ts';
import { requests_unlike_litellm, streams_unlike_litellm } from './litellm-differences.ts';
import { meaningOfStream, translateStream } from './meaning.ts';
import { requestsIn } from './samples.ts';

/**
 * Streams that another gateway once translated wrongly, by the cases of its tests (BerriAI/litellm, tests of the
 * `/v1/messages` adapters, read on 28 November 2026), in our own words: each is what went wrong there.
 */

type Fact = {
  fact: string;
  sent: JsonObject[];
  means: Record<string, unknown>;
  /** Pieces of a block that a caller of messages style gets, in order, if the case is about them. */
  pieces?: string[];
};

const chunk = (delta: JsonObject, finish_reason: string | null = null, more: JsonObject = {}): JsonObject => ({
  id: 'c1',
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
  ...more,
});
const call = (args: JsonObject, id?: string): JsonObject =>
  chunk({ tool_calls: [{ index: 0, ...(id !== undefined && { id, type: 'function' }), function: args }] });
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const usage_chunk: JsonObject = { id: 'c1', object: 'chat.completion.chunk', model: 'm', choices: [], usage };
const weather = { name: 'get_weather', arguments: '' };
const used = { 'usage.input_tokens': 10, 'usage.output_tokens': 5 };

const of_completions: Fact[] = [
  {
    fact: 'arguments that come with the name of a tool are not lost',
    sent: [
      chunk({ content: 'Hello' }),
      call({ ...weather, arguments: '{"a":1}' }, 'c'),
      chunk({}, 'tool_calls'),
      usage_chunk,
    ],
    means: { text: 'Hello', 'calls.0': 'c get_weather {"a":1}', finish: 'tool_calls' },
    pieces: ['text_delta', 'input_json_delta'],
  },
  {
    fact: 'empty arguments that come with the name are no piece of their own',
    sent: [call(weather, 'c'), call({ arguments: '{"a":1}' }), chunk({}, 'tool_calls'), usage_chunk],
    means: { 'calls.0': 'c get_weather {"a":1}', finish: 'tool_calls' },
    pieces: ['input_json_delta'],
  },
  {
    fact: 'a whole answer in the chunk that ends it is not lost, nor is its usage',
    sent: [chunk({ role: 'assistant', content: 'Two.' }, 'stop', { usage })],
    means: { text: 'Two.', finish: 'stop' },
    pieces: ['text_delta'],
  },
  {
    fact: 'a thought, a text and the end in one chunk are a thought, then a text',
    sent: [chunk({ reasoning_content: 'Hm.', content: 'Hi' }, 'stop'), usage_chunk],
    means: { thinking: 'Hm.', text: 'Hi', finish: 'stop' },
    pieces: ['thinking_delta', 'text_delta'],
  },
  {
    fact: 'the end of a thought that comes with the begin of the text stays in the thought',
    sent: [
      chunk({ reasoning_content: 'Hm.' }),
      chunk({ reasoning_content: '\n', content: 'Hi' }),
      chunk({}, 'stop'),
      usage_chunk,
    ],
    means: { thinking: 'Hm.\n', text: 'Hi', finish: 'stop' },
    pieces: ['thinking_delta', 'thinking_delta', 'text_delta'],
  },
  {
    fact: 'an empty piece within a thought does not begin a text',
    sent: [
      chunk({ reasoning_content: 'Hm' }),
      chunk({ reasoning_content: '', content: '' }),
      chunk({ reasoning_content: '.' }),
      chunk({ content: 'Hi' }),
      chunk({}, 'stop'),
      usage_chunk,
    ],
    means: { thinking: 'Hm.', text: 'Hi', finish: 'stop' },
    pieces: ['thinking_delta', 'thinking_delta', 'text_delta'],
  },
  {
    fact: 'chunks without choices are no end, wherever they come',
    sent: [
      { id: 'c1', object: 'chat.completion.chunk', model: 'm', choices: [] },
      chunk({ content: 'A' }),
      { id: 'c1', object: 'chat.completion.chunk', model: 'm', choices: [] },
      chunk({ content: 'B' }),
      chunk({}, 'stop'),
      usage_chunk,
    ],
    means: { text: 'AB', finish: 'stop' },
    pieces: ['text_delta', 'text_delta'],
  },
  {
    fact: 'the first words after a call are not lost',
    sent: [
      chunk({ content: 'Wait.' }),
      call({ ...weather, arguments: '{"a":' }, 'c'),
      call({ arguments: '1}' }),
      chunk({ content: ' Nice.' }),
      chunk({ content: ' Bye.' }),
      chunk({}, 'stop'),
      usage_chunk,
    ],
    means: { text: 'Wait. Nice. Bye.', 'calls.0': 'c get_weather {"a":1}' },
  },
  {
    fact: 'an empty text after a call is no piece',
    sent: [
      call({ ...weather, arguments: '{}' }, 'c'),
      chunk({ content: '' }),
      chunk({ content: 'Hi' }),
      chunk({}, 'stop'),
      usage_chunk,
    ],
    means: { text: 'Hi', 'calls.0': 'c get_weather {}' },
    pieces: ['input_json_delta', 'text_delta'],
  },
  {
    fact: 'a refusal is one, with its words',
    sent: [chunk({ refusal: 'I cannot.' }), chunk({}, 'stop'), usage_chunk],
    means: { finish: 'refusal' },
  },
  {
    fact: 'a refusal in the chunk that ends the answer is one, too',
    sent: [chunk({ refusal: 'I cannot.' }, 'stop'), usage_chunk],
    means: { finish: 'refusal' },
  },
  {
    fact: 'a refusal that was cut at the limit was cut at the limit',
    sent: [chunk({ refusal: 'I can' }), chunk({}, 'length'), usage_chunk],
    means: { finish: 'length' },
  },
];

const done = (response: JsonObject = {}): JsonObject => ({
  type: 'response.completed',
  response: { status: 'completed', output: [], usage: { input_tokens: 10, output_tokens: 5 }, ...response },
});
const created = { type: 'response.created', response: { id: 'r' } };
const added = (item: JsonObject): JsonObject => ({ type: 'response.output_item.added', item });
const piece = (item_id: string, delta: string): JsonObject => ({
  type: 'response.function_call_arguments.delta',
  item_id,
  delta,
});

const of_responses: Fact[] = [
  {
    fact: 'arguments find their call by the id of its item',
    sent: [
      created,
      added({ id: 'fc_1', type: 'function_call', call_id: 'a', name: 'one' }),
      added({ id: 'fc_2', type: 'function_call', call_id: 'b', name: 'two' }),
      piece('fc_1', '{"x"'),
      piece('fc_2', '{"y":2}'),
      piece('fc_1', ':1}'),
      done(),
    ],
    means: { 'calls.0': 'a one {"x":1}', 'calls.1': 'b two {"y":2}', finish: 'tool_calls' },
  },
  {
    fact: 'a call ends the answer with a call, though the status says only that it is complete',
    sent: [
      created,
      added({ id: 'fc_1', type: 'function_call', call_id: 'a', name: 'one' }),
      piece('fc_1', '{}'),
      done(),
    ],
    means: { 'calls.0': 'a one {}', finish: 'tool_calls' },
  },
  {
    fact: 'an answer that is incomplete without a reason was cut at the limit',
    sent: [created, { type: 'response.output_text.delta', item_id: 'm', delta: 'Hi' }, done({ status: 'incomplete' })],
    means: { text: 'Hi', finish: 'length' },
  },
  {
    fact: 'events without a type, and items that are missing, are no content',
    sent: [
      created,
      { not_type: 'x' },
      { type: 'response.output_item.added' },
      { type: 'response.output_item.done' },
      done(),
    ],
    means: { finish: 'stop' },
  },
  {
    fact: 'what was read from a cache is in the usage',
    sent: [
      created,
      { type: 'response.output_text.delta', item_id: 'm', delta: 'Hi' },
      done({ usage: { input_tokens: 123, output_tokens: 5, input_tokens_details: { cached_tokens: 113 } } }),
    ],
    means: { text: 'Hi', 'usage.cached_input_tokens': 113, finish: 'stop' },
  },
];

const onWire = (events: readonly JsonObject[], upstream: CallerStyle) =>
  [
    ...events.map((event) => `data: ${JSON.stringify(event)}\n\n`),
    upstream === 'completions' ? 'data: [DONE]\n\n' : '',
  ].join('');

function meaningFor(upstream: CallerStyle, { sent }: Fact): Record<string, unknown> {
  const stream = translateStream(upstream, 'messages', onWire(sent, upstream));
  return Object.fromEntries([...meaningOfStream('messages', stream)].map(([path, value]) => [path, JSON.parse(value)]));
}

function piecesFor(upstream: CallerStyle, { sent }: Fact): string[] {
  const stream = translateStream(upstream, 'messages', onWire(sent, upstream));
  const blocks = new Map<number, string>();
  const pieces: string[] = [];
  for (const [, data = ''] of stream.matchAll(/^data: (.*)$/gm)) {
    const { type, index, content_block, delta } = JSON.parse(data);
    if (type === 'content_block_start') blocks.set(index, content_block.type);
    if (type !== 'content_block_delta') continue;
    pieces.push(delta.type);
    const block = { text_delta: 'text', thinking_delta: 'thinking', input_json_delta: 'tool_use' }[String(delta.type)];
    expect(blocks.get(index)).toBe(block);
  }
  return pieces;
}

it.each(of_completions)('chat completions for a caller of messages style: $fact', (fact) => {
  expect(meaningFor('completions', fact)).toMatchObject({ ...used, ...fact.means, end: true });
  expect(piecesFor('completions', fact)).toEqual(fact.pieces ?? piecesFor('completions', fact));
});

it.each(of_responses)('the responses style for a caller of messages style: $fact', (fact) => {
  expect(meaningFor('responses', fact)).toMatchObject({ ...used, ...fact.means, end: true });
});

it.each(streams_unlike_litellm)('differs from that gateway: $what', ({ sent, gets }) => {
  const events = sent.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  expect(translateStream('completions', 'messages', events)).toMatch(gets);
});

testComparisons(
  'a request means what LiteLLM makes of it, but where a reason is stated',
  requestsIn('litellm'),
  requests_unlike_litellm,
);
