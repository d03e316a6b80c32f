import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { meaningOfStream, translateAnswer, translateRequest } from '../corpora/meaning.ts';

/** Streams of servers that leave out pieces of an answer and send them whole at its end. */

const created = { type: 'response.created', response: { id: 'resp_1' } };
const completed = (output: JsonObject[] = []) => ({
  type: 'response.completed',
  response: { status: 'completed', output, usage: { input_tokens: 3, output_tokens: 2 } },
});
const done = (item: JsonObject, output_index?: number) => ({
  type: 'response.output_item.done',
  item,
  ...(output_index !== undefined && { output_index }),
});
const added = (item: JsonObject, output_index?: number) => ({
  type: 'response.output_item.added',
  item,
  ...(output_index !== undefined && { output_index }),
});
const message = (text: string) => ({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text }] });
const call = (call_id: string, json: string) => ({ type: 'function_call', call_id, name: 'look', arguments: json });
const no_call_id = { type: 'function_call', name: 'look', arguments: '{"a":1}' };
const textDelta = (delta: string, output_index: number) => ({
  type: 'response.output_text.delta',
  delta,
  output_index,
});
const argumentsDelta = (delta: string, output_index: number) => ({
  type: 'response.function_call_arguments.delta',
  delta,
  output_index,
});

function meaningOf(events: readonly JsonObject[]): Record<string, unknown> {
  const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const meaning = meaningOfStream('responses', text);
  return Object.fromEntries([...meaning].map(([path, value]) => [path, JSON.parse(value)]));
}

const usage = { 'usage.input_tokens': 3, 'usage.output_tokens': 2 };
const nothing = { text: '', thinking: '', signature: '', refusal: '', end: true, ...usage };
const thought = { type: 'reasoning', summary: [{ text: 'One.' }, { text: 'Two.' }], encrypted_content: 'c2ln' };

it.each<[what: string, events: JsonObject[], expected: Record<string, unknown>]>([
  ['a message that comes with its end only', [done(message('Hi'), 0)], { text: 'Hi', finish: 'stop' }],
  ['a message that comes in the last event only', [completed([message('Hi')])], { text: 'Hi', finish: 'stop' }],
  [
    'two messages, of which one came piece by piece',
    [textDelta('A', 0), done(message('A'), 0), done(message('B'), 1), completed([message('A'), message('B')])],
    { text: 'AB', finish: 'stop' },
  ],
  [
    'a message whose place is another in the last event',
    [textDelta('Hi', 1), completed([message('Hi')])],
    { text: 'Hi', finish: 'stop' },
  ],
  [
    'a message whose end has no place',
    [textDelta('Hi', 1), done(message('Hi')), completed([message('Hi')])],
    { text: 'Hi', finish: 'stop' },
  ],
  [
    'a message whose id changes between its events',
    [
      { type: 'response.output_text.delta', item_id: 'msg_1', delta: 'Hi' },
      done({ id: 'msg_2', ...message('Hi') }),
      completed([{ id: 'msg_3', ...message('Hi') }]),
    ],
    { text: 'Hi', finish: 'stop' },
  ],
  [
    'a thought that comes whole',
    [done(thought, 0)],
    { thinking: 'One.\n\nTwo.', signature: 'responses:c2ln', finish: 'stop' },
  ],
  [
    'a refusal that comes whole',
    [done({ type: 'message', content: [{ type: 'refusal', refusal: 'No.' }] }, 0)],
    { refusal: 'No.', finish: 'refusal' },
  ],
  [
    'a call that comes with its end only',
    [done(call('call_1', '{"a":1}'), 0)],
    { 'calls.0': 'call_1 look {"a":1}', finish: 'tool_calls' },
  ],
  [
    'calls that come in the last event only',
    [completed([call('call_1', '{"a":1}'), call('call_2', '')])],
    { 'calls.0': 'call_1 look {"a":1}', 'calls.1': 'call_2 look {}', finish: 'tool_calls' },
  ],
  [
    'a call whose name comes with its end only',
    [added({ type: 'function_call', call_id: 'call_1' }, 0), done(call('call_1', '{}'), 0)],
    { 'calls.0': 'call_1 look {}', finish: 'tool_calls' },
  ],
  [
    'a call that has the id of its item only',
    [
      added({ ...no_call_id, id: 'fc_1', arguments: '' }, 0),
      argumentsDelta('{"a":1}', 0),
      done({ ...no_call_id, id: 'fc_1' }, 0),
      completed([{ ...no_call_id, id: 'fc_1' }]),
    ],
    { 'calls.0': 'fc_1 look {"a":1}', finish: 'tool_calls' },
  ],
  [
    'a call whose call_id comes with its end',
    [added({ ...no_call_id, id: 'fc_1', arguments: '' }, 0), done({ ...call('call_1', '{"a":1}'), id: 'fc_1' })],
    { 'calls.0': 'fc_1 look {"a":1}', finish: 'tool_calls' },
  ],
  [
    'a call without an id',
    [
      added({ ...no_call_id, arguments: '' }, 0),
      argumentsDelta('{"a"', 0),
      done(no_call_id, 0),
      completed([no_call_id]),
    ],
    { 'calls.0': 'call_req_1_0 look {"a":1}', finish: 'tool_calls' },
  ],
  [
    'two calls without an id or a place',
    [added({ ...no_call_id, arguments: '' }), done(no_call_id), done({ ...no_call_id, arguments: '{}' })],
    { 'calls.0': 'call_req_1_0 look {"a":1}', 'calls.1': 'call_req_1_1 look {}', finish: 'tool_calls' },
  ],
  [
    'calls without an id that come in the last event only',
    [completed([no_call_id, { ...no_call_id, call_id: '', arguments: '' }])],
    { 'calls.0': 'call_req_1_0 look {"a":1}', 'calls.1': 'call_req_1_1 look {}', finish: 'tool_calls' },
  ],
  ['a call without a name, which is none', [done({ type: 'function_call', call_id: 'a' }, 0)], { finish: 'stop' }],
  [
    'arguments that stop half-way, and are whole in the last event',
    [
      added(call('call_1', ''), 0),
      added(call('call_2', ''), 1),
      argumentsDelta('{"a"', 0),
      argumentsDelta('{"b":2}', 1),
      completed([call('call_1', '{"a":1}'), call('call_2', '{"b":2}')]),
    ],
    { 'calls.0': 'call_1 look {"a":1}', 'calls.1': 'call_2 look {"b":2}', finish: 'tool_calls' },
  ],
  [
    'parts of a thought without numbers',
    [
      { type: 'response.reasoning_summary_part.added' },
      { type: 'response.reasoning_summary_text.delta', delta: 'One.' },
      { type: 'response.reasoning_summary_part.added' },
      { type: 'response.reasoning_summary_text.delta', delta: 'Two.' },
    ],
    { thinking: 'One.\n\nTwo.', finish: 'stop' },
  ],
])('%s is read once and whole', (_, events, expected) => {
  const end = events.at(-1)?.['type'] === 'response.completed' ? [] : [completed()];
  expect(meaningOf([created, ...events, ...end])).toEqual({ ...nothing, ...expected });
});

it.each<[what: string, item: JsonObject, id: string]>([
  ['the id of its item only', { ...no_call_id, id: 'fc_1' }, 'fc_1'],
  ['no id', no_call_id, 'call_req_1_1'],
  ['empty ids', { ...no_call_id, id: '', call_id: '' }, 'call_req_1_1'],
])('a call with %s has an id in a whole answer, and its result finds it in the next turn', (_, item, id) => {
  const whole = { status: 'completed', output: [message('I look.'), item, { type: 'function_call', arguments: '{}' }] };
  const answer = translateAnswer('responses', 'completions', whole);
  const calling = { role: 'assistant', tool_calls: [{ id, function: { name: 'look', arguments: '{"a":1}' } }] };
  expect(answer).toMatchObject({ choices: [{ message: calling, finish_reason: 'tool_calls' }] });
  const chat_message = JSON.parse(JSON.stringify(answer)).choices[0].message;
  const messages = [{ role: 'user', content: 'Hi' }, chat_message, { role: 'tool', tool_call_id: id, content: '7' }];
  const { input } = translateRequest('completions', 'responses', { model: 'm', messages });
  expect(input).toMatchObject([
    { role: 'user' },
    { role: 'assistant' },
    { type: 'function_call', call_id: id, name: 'look' },
    { type: 'function_call_output', call_id: id, output: '7' },
  ]);
});
