import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { meaningOfStream, translateStream } from '../corpora/meaning.ts';

/** Streams of chat completions whose calls get their ids in a later chunk than their names. */

type Piece = { index?: number; id?: string; function?: JsonObject };

const chunk = (delta: JsonObject, finish_reason: string | null = null) => ({
  id: 'c1',
  choices: [{ index: 0, delta, finish_reason }],
});
const calls = (...tool_calls: Piece[]) => chunk({ tool_calls });
const named = (name: string, json = '', index = 0): Piece => ({ index, function: { name, arguments: json } });
const rest = (json: string, index = 0): Piece => ({ index, function: { arguments: json } });
const finish = chunk({}, 'tool_calls');
const long = JSON.stringify({ text: 'x'.repeat(300) });

const textOf = (chunks: readonly JsonObject[]) =>
  [...chunks.map((each) => JSON.stringify(each)), '[DONE]'].map((data) => `data: ${data}\n\n`).join('');

function callsIn(chunks: readonly JsonObject[]): unknown[] {
  const meaning = meaningOfStream('completions', textOf(chunks));
  return [...meaning].filter(([path]) => path.startsWith('calls.')).map(([, value]) => JSON.parse(value));
}

it.each<[what: string, chunks: JsonObject[], expected: string[]]>([
  ['alone', [calls(named('look')), calls({ index: 0, id: 'a' }), calls(rest('{}')), finish], ['a look {}']],
  ['with the first arguments', [calls(named('look')), calls({ ...rest('{}'), id: 'a' }), finish], ['a look {}']],
  [
    'after an empty one',
    [calls({ ...named('look'), id: '' }), calls({ ...rest('{}'), id: 'a' }), finish],
    ['a look {}'],
  ],
  [
    'between the arguments',
    [calls(named('look', '{"a"')), calls(rest(':')), calls({ ...rest('1}'), id: 'a' }), finish],
    ['a look {"a":1}'],
  ],
  [
    'for two calls at once',
    [
      calls(named('one', '{', 0), named('two', '{', 1)),
      calls({ ...rest('}', 0), id: 'a' }, { ...rest('}', 1), id: 'b' }),
      finish,
    ],
    ['a one {}', 'b two {}'],
  ],
  [
    'beside the name, which is repeated',
    [calls(named('look')), calls({ ...named('look', '{}'), id: 'a' }), finish],
    ['a look {}'],
  ],
  [
    'with the end',
    [
      calls(named('look', '{}')),
      { ...calls({ index: 0, id: 'a' }), ...chunk({ tool_calls: [{ index: 0, id: 'a' }] }, 'tool_calls') },
    ],
    ['a look {}'],
  ],
])('an id that comes %s is the id of its call', (_, chunks, expected) => {
  expect(callsIn(chunks)).toEqual(expected);
});

it.each<[what: string, chunks: JsonObject[], expected: string[]]>([
  ['never', [calls(named('look', '{"a"')), calls(rest(':1}')), finish], ['call_req_1_0 look {"a":1}']],
  ['never, in a stream without a finish reason', [calls(named('look', '{}'))], ['call_req_1_0 look {}']],
  ['after the end', [calls(named('look', '{}')), finish, calls({ index: 0, id: 'a' })], ['call_req_1_0 look {}']],
  [
    'after long arguments, which do not wait',
    [calls(named('look', long.slice(0, 200))), calls(rest(long.slice(200))), calls({ index: 0, id: 'a' }), finish],
    [`call_req_1_0 look ${long}`],
  ],
  [
    'for the second of two calls only',
    [calls(named('one', '{}', 0), named('two', '{}', 1)), calls({ index: 1, id: 'b' }), finish],
    ['call_req_1_0 one {}', 'b two {}'],
  ],
  [
    'never, as `function_call`',
    [chunk({ function_call: { name: 'look', arguments: '{' } }), chunk({ function_call: { arguments: '}' } }), finish],
    ['call_req_1_0 look {}'],
  ],
])('a call whose id comes %s has one that is made here, and its arguments once', (_, chunks, expected) => {
  expect(callsIn(chunks)).toEqual(expected);
});

it('a caller of messages style gets the late id, and the blocks in their order', () => {
  const chunks = [calls(named('one', '{"a":', 0), named('two', '{}', 1)), calls({ ...rest('1}', 0), id: 'a' }), finish];
  const text = translateStream('completions', 'messages', textOf(chunks));
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => JSON.parse(line.slice(6)) as JsonObject);
  const begun = events.filter(({ type }) => type === 'content_block_start').map((event) => event['content_block']);
  expect(begun).toMatchObject([
    { type: 'tool_use', id: 'a', name: 'one' },
    { type: 'tool_use', id: 'call_req_1_1', name: 'two' },
  ]);
  expect(events).toContainEqual(
    expect.objectContaining({ type: 'message_delta', delta: expect.objectContaining({ stop_reason: 'tool_use' }) }),
  );
});

it('a stream that breaks off while a call waits for its id has said nothing, so another route may answer', () => {
  const text = `data: ${JSON.stringify(calls(named('look', '{}')))}\n\n`;
  const meaning = meaningOfStream('completions', text);
  expect(meaning.get('error')).toBe('"The stream was cut off."');
  expect([...meaning.keys()].filter((path) => path.startsWith('calls.'))).toEqual([]);
});
