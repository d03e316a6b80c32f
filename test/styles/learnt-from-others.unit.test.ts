import { expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { readAsk, upstreamBody } from './by-name.ts';

/** Requests that another service's tests made us look at: what an upstream of messages style would have refused. */

const target = { style: 'messages', model: 'm', max_tokens: 100, quirks: {} } as const;
const text = { type: 'string' };
const number = { type: 'number' };

function schemaOf(parameters: JsonObject): unknown {
  const body = {
    model: 'm',
    messages: [{ role: 'user', content: 'Hi' }],
    tools: [{ type: 'function', function: { name: 'find', parameters } }],
  };
  return upstreamBody(readAsk('completions', body), target).body;
}

it.each<[what: string, parameters: JsonObject, expected: JsonObject]>([
  [
    'one of two objects',
    {
      type: 'object',
      description: 'Find it.',
      properties: { all: { type: 'boolean' } },
      required: ['all'],
      oneOf: [
        { type: 'object', properties: { id: text, at: text }, required: ['id', 'at'] },
        { type: 'object', properties: { name: text, at: text }, required: ['name', 'at'] },
      ],
    },
    { properties: { id: text, at: text, name: text, all: { type: 'boolean' } }, required: ['all', 'at'] },
  ],
  [
    'all of two objects',
    {
      allOf: [
        { properties: { id: text }, required: ['id'] },
        { properties: { at: text }, required: ['at'] },
      ],
    },
    { properties: { id: text, at: text }, required: ['id', 'at'] },
  ],
  [
    'two forms of one member',
    { anyOf: [{ properties: { id: text } }, { properties: { id: number } }] },
    { properties: { id: { anyOf: [text, number] } } },
  ],
  [
    'only what is required',
    { type: 'object', properties: { id: text, name: text }, anyOf: [{ required: ['id'] }, { required: ['name'] }] },
    { properties: { id: text, name: text } },
  ],
])('a tool whose parameters are a union, %s, has none at its top', (_, parameters, expected) => {
  const sent = schemaOf(parameters);
  const description = expect.stringContaining(`: [{`);
  expect(sent).toMatchObject({ tools: [{ input_schema: { ...expected, type: 'object', description } }] });
  const top = Object.keys(JSON.parse(JSON.stringify(sent)).tools[0].input_schema);
  expect(top.filter((key) => ['oneOf', 'anyOf', 'allOf'].includes(key))).toEqual([]);
  expect(top.includes('required')).toBe('required' in expected);
});

it('a member of a union named __proto__ stays a member', () => {
  const parameters = JSON.parse('{"oneOf":[{"properties":{"__proto__":{"type":"string"}}}]}');
  expect(JSON.stringify(schemaOf(parameters))).toContain('"properties":{"__proto__":{"type":"string"}}');
});

const call = (call_id: string) => ({ type: 'function_call', call_id, name: 'run', arguments: '{}' });
const result = (call_id: string) => ({ type: 'function_call_output', call_id, output: `of ${call_id}` });
const says = (content: string) => ({ role: 'user', content });

it.each([
  ['one call', [says('Go'), call('a'), says('Wait'), result('a')]],
  ['two calls', [says('Go'), call('a'), call('b'), result('b'), says('Wait'), result('a')]],
  ['two messages', [says('Go'), call('a'), says('Wait'), { role: 'developer', content: 'Rule' }, result('a')]],
])('what a person says while a tool runs stands behind its result: %s', (_, input) => {
  const { body } = upstreamBody(readAsk('responses', { model: 'm', input }), target);
  const calls = input.filter((item) => 'call_id' in item && 'name' in item);
  expect(body['messages']).toMatchObject([
    { role: 'user' },
    { role: 'assistant', content: calls.map(() => ({ type: 'tool_use' })) },
    { role: 'user', content: [...calls.map(() => ({ type: 'tool_result' })), { type: 'text', text: 'Wait' }] },
  ]);
});

it('a call without any result is refused where it stands', () => {
  const input = [says('Go'), call('a'), says('Wait')];
  expect(
    () =>
      readAsk('responses', { model: 'm', input }) && upstreamBody(readAsk('responses', { model: 'm', input }), target),
  ).toThrow(expect.objectContaining({ extras: expect.objectContaining({ param: 'input[1].call_id' }) }));
});

const cached = { cache_control: { type: 'ephemeral' } };

it('marks for caches in the input of a responses request reach an upstream that knows them', () => {
  const input = [
    { role: 'developer', content: 'Rule', ...cached },
    {
      role: 'user',
      content: [
        { type: 'input_text', text: 'Go', ...cached },
        { type: 'input_text', text: 'on' },
      ],
    },
    { ...call('a'), ...cached },
    { ...result('a'), ...cached },
    { role: 'user', content: 'And?', ...cached },
  ];
  const { body } = upstreamBody(readAsk('responses', { model: 'm', input }), target);
  const block = (words: string, mark = {}) => ({ type: 'text', text: words, ...mark });
  expect(body['system']).toEqual([block('Rule', cached)]);
  expect(body['messages']).toMatchObject([
    { role: 'user', content: [block('Go', cached), block('on')] },
    { role: 'assistant', content: [{ type: 'tool_use', ...cached }] },
    { role: 'user', content: [{ type: 'tool_result', ...cached }, block('And?', cached)] },
  ]);
});

it('a mark beside a message becomes a cache point of Converse, also behind a call of a tool', () => {
  const request = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }],
  };
  const messages = [
    { ...says('Go'), ...cached },
    { ...request, ...cached },
    { role: 'tool', tool_call_id: 'a', content: '7' },
  ];
  const { body } = upstreamBody(readAsk('completions', { model: 'm', messages }), { ...target, style: 'converse' });
  const point = { cachePoint: { type: 'default' } };
  expect(body['messages']).toMatchObject([
    { content: [{ text: 'Go' }, point] },
    { content: [{ toolUse: { toolUseId: 'a' } }, point] },
    { content: [{ toolResult: {} }] },
  ]);
});

it('a mark of no use is left alone: without content, of a thought, or no object', () => {
  const thought = { role: 'assistant', content: ' ', reasoning_content: 'Hm', ...cached };
  const messages = [{ ...says('Go'), cache_control: 'ephemeral' }, { ...says(''), ...cached }, thought, says('On')];
  const { body } = upstreamBody(readAsk('completions', { model: 'm', messages }), target);
  expect(JSON.stringify(body)).not.toContain('cache_control');
});
