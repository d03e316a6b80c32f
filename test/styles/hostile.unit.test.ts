import { expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/catalog/model.ts';
import { geminiSchema } from '../../src/styles/gemini/schema.ts';
import { checkShape } from '../../src/lib/json-shape.ts';
import { inputOf } from '../../src/styles/calls.ts';
import { withMembers } from '../../src/styles/model-name.ts';
import { objectOf } from '../../src/styles/stream.ts';
import { nativeSchema, withoutUnions } from '../../src/styles/messages/schema.ts';
import { isStrict } from '../../src/styles/structured.ts';
import { quirksOf } from '../../src/styles/quirks.ts';
import { workedMs } from '../helpers/work.ts';
import { readAsk, upstreamBody, type CallerStyle, type UpstreamStyle } from './by-name.ts';

/** Bodies within the limits that took time by the square of their size, on a loop that all callers share. */

const list = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));
const members = (count: number, make: (index: number) => Json) =>
  Object.fromEntries(list(count, (i) => [`n${i}`, make(i)]));

/** Upper bound for the checks that once took 10 s or more: they take less than half a second. */
const patience_ms = 4_000;

function timed<T>(work: () => T): { result: T; took_ms: number } {
  const started = workedMs();
  const result = work();
  return { result, took_ms: workedMs() - started };
}

const hi = { role: 'user', content: 'hi' };
const called = (id: string, name: string) => ({ id, type: 'function', function: { name, arguments: '{}' } });
const chosen = (name: string) => ({ type: 'function', function: { name } });

const bodies: [what: string, style: CallerStyle, target: UpstreamStyle, body: JsonObject][] = [
  [
    'calls of the same id',
    'messages',
    'completions',
    {
      max_tokens: 9,
      messages: list(12_000, () => [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] },
      ]).flat(),
    },
  ],
  [
    'results by names in reverse',
    'completions',
    'messages',
    {
      messages: [
        { role: 'assistant', tool_calls: list(50_000, (i) => called(`c${i}`, `f${i}`)) },
        ...list(50_000, (i) => ({ role: 'function', name: `f${49_999 - i}`, content: 'r' })),
      ],
    },
  ],
  [
    'tools, all allowed',
    'completions',
    'messages',
    {
      messages: [hi],
      tools: list(50_000, (i) => chosen(`t${i}`)),
      tool_choice: { type: 'allowed_tools', allowed_tools: { tools: list(50_000, (i) => chosen(`t${i}`)) } },
    },
  ],
  [
    'turns of the system in a row',
    'completions',
    'messages',
    { messages: [hi, ...list(60_000, () => ({ role: 'system', content: 's' }))] },
  ],
];

it.each(bodies)('%s take time in proportion to their number', (_, style, target, body) => {
  const ask = readAsk(style, { model: 'm', ...body });
  const quirks = quirksOf({ system_turns: true });
  const { took_ms } = timed(() => upstreamBody(ask, { style: target, model: 'u', max_tokens: 9, quirks }));
  expect(took_ms).toBeLessThan(patience_ms);
});

it('repeated ids of calls continue with the next free number', () => {
  const turn = (id: string) => [
    { role: 'assistant', content: [{ type: 'tool_use', id, name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id }] },
  ];
  const ask = readAsk('messages', { model: 'm', max_tokens: 9, messages: ['a', 'a_3', 'a', 'a', 'a_3'].flatMap(turn) });
  const { body } = upstreamBody(ask, { style: 'completions', model: 'u', max_tokens: 9, quirks: {} });
  const ids = [...JSON.stringify(body).matchAll(/"tool_call_id":"(\w+)"/g)].map(([, id]) => id);
  expect(ids).toEqual(['a', 'a_3', 'a_2', 'a_4', 'a_3_2']);
});

it('results that only name the function belong to its calls in their order', () => {
  const result = (name: string) => ({ role: 'function', name, content: name });
  const calls = [called('1', 'f'), called('2', 'g'), called('3', 'f'), called('4', 'f')];
  const answered = { role: 'tool', tool_call_id: '3', content: 'f' };
  const messages = [{ role: 'assistant', tool_calls: calls }, result('f'), answered, result('g'), result('f')];
  const ask = readAsk('completions', { model: 'm', messages });
  const { body } = upstreamBody(ask, { style: 'messages', model: 'u', max_tokens: 9, quirks: {} });
  const ids = [...JSON.stringify(body).matchAll(/"tool_use_id":"(\w+)"/g)].map(([, id]) => id);
  expect(ids).toEqual(['1', '3', '2', '4']);
});

it('parts of allOf become one schema, in which the first value wins and the others go into the description', () => {
  const text = { type: 'string' };
  const number = { type: 'number' };
  const fields = {
    title: 'whole',
    required: ['a'],
    allOf: [
      { title: 'part', minimum: 1, properties: { a: text }, required: ['b', 'a'] },
      { minimum: 2, allOf: [{ maximum: 3 }], properties: { a: number, b: number } },
    ],
  };
  expect(geminiSchema(fields)).toEqual({
    title: 'whole',
    minimum: 1,
    maximum: 3,
    properties: { a: { ...text, description: '{type: "number"}' }, b: number },
    required: ['a', 'b'],
    description: '{title: "part", minimum: 2}',
  });
});

it('branches of a union at the top of a tool take time in proportion to their number', () => {
  const names = list(20_000, (i) => `n${i}`);
  const anyOf = list(20_000, (i) => ({ properties: { a: { const: i } }, required: i === 0 ? names : [`n${i}`] }));
  const { took_ms, result } = timed(() => withoutUnions({ type: 'object', anyOf }));
  expect(took_ms).toBeLessThan(patience_ms);
  expect(result['properties']).toEqual({ a: { anyOf: list(20_000, (i) => ({ const: i })) } });
  expect(result['required']).toBeUndefined();
});

it('descriptions of allOf that are no texts are left out, whatever they are', () => {
  const hostile: JsonObject = { toString: null, valueOf: null };
  expect(geminiSchema({ description: 'A name', allOf: [{ description: hostile }, { description: null }] })).toEqual({
    description: 'A name',
  });
});

it('parts of allOf take time in proportion to their number', () => {
  const allOf = list(8_000, (i) => ({ properties: { [`p${i}`]: {} }, required: [`p${i}`], [`x${i}`]: 1 }));
  expect(timed(() => geminiSchema({ allOf })).took_ms).toBeLessThan(patience_ms);
});

it('an allOf without parts changes nothing', () => {
  expect(geminiSchema({ type: 'string', allOf: [] })).toEqual({ type: 'string' });
});

it('parts within parts of allOf are merged once', () => {
  let schema: JsonObject = members(50_000, (i) => i); // a quarter of what took 5 s beside other tests
  for (let depth = 0; depth < 50; depth++) schema = { allOf: [schema] };
  expect(timed(() => geminiSchema(schema)).took_ms).toBeLessThan(patience_ms);
});

it('blocks whose types are as long as a body are of unknown type', () => {
  const block = { type: `${'_'.repeat(1_000)}_tool_result`, content: 'x' };
  const ask = readAsk('messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: [block] }] });
  const target = { style: 'completions', model: 'u', max_tokens: 9, quirks: {} } as const;
  expect(() => upstreamBody(ask, target)).toThrow('A block of this type');
});

it('required names are found in constant time', () => {
  const properties = members(100_000, () => ({}));
  const schema = { type: 'object', additionalProperties: false, properties, required: Object.keys(properties) };
  const { result, took_ms } = timed(() => isStrict(schema));
  expect(result).toBe(true);
  expect(took_ms).toBeLessThan(patience_ms);
});

it('chains of references may be as long as a body', () => {
  const chain = (end: Json) => ({
    $ref: '#/$defs/n0',
    $defs: members(50_000, (i) => (i === 49_999 ? end : { $ref: `#/$defs/n${i + 1}` })),
  });
  expect(nativeSchema(chain({}))).toBeDefined();
  expect(nativeSchema(chain({ $ref: '#/$defs/n7' }))).toBeUndefined();
});

it('references that branch at each step are followed once', () => {
  const two = (i: number) => [{ $ref: `#/$defs/n${i + 1}` }, { $ref: `#/$defs/n${i + 1}` }];
  const schema = { $ref: '#/$defs/n0', $defs: members(100, (i) => (i === 99 ? {} : { anyOf: two(i) })) };
  expect(nativeSchema(schema)).toBeDefined();
});

it('the head of a data URL is searched only at its beginning', () => {
  const url = `data:image/png${';a=b'.repeat(8_000_000)},x`;
  const messages = [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }];
  const ask = readAsk('completions', { model: 'm', messages });
  const target = { style: 'messages', model: 'u', max_tokens: 9, quirks: {} } as const;
  expect(() => upstreamBody(ask, target)).toThrow('must be an http(s) URL or a data URL');
});

const long = {
  empty_lists: `{"a":[${'[],'.repeat(400_000)}1]}`,
  text: `{"a":"${'a, [b], '.repeat(400_000)}"}`,
};

it.each<[CallerStyle, (text: string, id: string) => JsonObject[], string, string]>([
  [
    'completions',
    (text, id) => [
      { role: 'assistant', tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: text } }] },
      { role: 'tool', tool_call_id: id, content: 'r' },
    ],
    'messages',
    'messages[2].tool_calls[0].function.arguments',
  ],
  [
    'responses',
    (text, id) => [
      { type: 'function_call', call_id: id, name: 'f', arguments: text },
      { type: 'function_call_output', call_id: id, output: 'r' },
    ],
    'input',
    'input[2].arguments',
  ],
])('the arguments of all calls together have at most as many values as a body: %s', (style, turn, holder, place) => {
  const send = (text: string) => {
    const ask = readAsk(style, { model: 'm', [holder]: ['1', '2', '3'].flatMap((id) => turn(text, id)) });
    return upstreamBody(ask, { style: 'messages', model: 'u', max_tokens: 9, quirks: {} });
  };
  expect(() => send(long.empty_lists)).toThrow(`${place} holds more than 1000000 values`);
  expect(JSON.stringify(send(long.text)).length).toBeGreaterThan(9_000_000);
});

it('members in the arguments of calls are as many as in a body at most, before they are parsed', () => {
  const text = `{${list(90_000, (i) => `"k${i}":0`).join(',')}}`;
  const send = (style: CallerStyle, body: JsonObject) => () =>
    upstreamBody(readAsk(style, { model: 'm', ...body }), { style: 'messages', model: 'u', max_tokens: 9, quirks: {} });
  const turns = [
    hi,
    { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: text } }] },
  ];
  expect(send('completions', { messages: turns })).toThrow(
    'messages[1].tool_calls[0].function.arguments holds an object with more than 10000 members',
  );
  const items = [hi, { type: 'function_call', call_id: 'a', name: 'f', arguments: text }];
  expect(send('responses', { input: items })).toThrow(
    'input[1].arguments holds an object with more than 10000 members',
  );
});

it('arguments of an upstream that take long to read stay a text', () => {
  const text = `{${list(90_000, (i) => `"k${i}":0`).join(',')}}`;
  expect(inputOf(text)).toEqual({ _raw: text });
  expect(inputOf('{"a":1}')).toEqual({ a: 1 });
});

it('events and answers of an upstream that take long to read are none', () => {
  const wide = `{"choices":[],"x":{${list(90_000, (i) => `"k${i}":0`).join(',')}}}`;
  expect(() => objectOf(wide)).toThrow('holds an object with more than 10000 members');
  expect(objectOf('{"choices":[]}')).toEqual({ choices: [] });
});

it('a model is named in bytes with millions of escaped quotes in the time of one look', () => {
  const bytes = Buffer.from(`{"a":"${'\\"'.repeat(4_000_000)}","model":"m"}`);
  const named = withMembers(bytes, { model: 'n' });
  expect(named.subarray(-14).toString()).toBe('","model":"n"}');
  const { took_ms } = timed(() => withMembers(bytes, { model: 'n' }));
  expect(took_ms).toBeLessThan(75); // 110 when each quote was searched for
});

it('what is no JSON is looked at no further than a parser would', () => {
  const text = `{"a":${'a'.repeat(64_000_000)}`;
  const took_ms = Math.min(...list(3, () => timed(() => checkShape(text)).took_ms));
  expect(took_ms).toBeLessThan(150); // 340 when all of it was looked at
});
