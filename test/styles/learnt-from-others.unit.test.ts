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
