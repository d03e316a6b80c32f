import { expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { readBytes } from '../../../src/lib/read-bytes.ts';
import type { ChatCall } from '../../../src/providers/provider.ts';
import { openSandboxChat } from '../../../src/providers/sandbox/chat.ts';
import { instanceOf } from '../../../src/providers/sandbox/json-instance.ts';
import { workedMs } from '../../helpers/work.ts';
import { completions } from '../../../src/styles/completions/codec.ts';
import { prober } from '../../helpers/prober.ts';

const timeout_ms = { connect: 1_000, first_byte: 1_000, idle: 1_000, start: 1_000, total: 1_000 };
const call = { request_id: 'r', style: completions, model: 'chat', headers: {}, timeout_ms, options: {} } as const;

const list = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));

/** Upper bound for the checks that once took 10 s or more: they take less than half a second of this thread, however busy the machine is. */
const patience_ms = 2_000;

async function tookMs(content: string, more: JsonObject = {}): Promise<number> {
  const tools = [{ type: 'function', function: { name: 'f' } }];
  const body = { model: 'chat', max_tokens: 100, messages: [{ role: 'user', content }], tools, ...more };
  const chat_call: ChatCall = { ...call, body, stream: false };
  const started = workedMs();
  await openSandboxChat(prober).send(chat_call, new AbortController().signal);
  return workedMs() - started;
}

const schemas: [what: string, schema: Json][] = [
  ['many parts', { allOf: list(6_000, (i) => ({ [`k${i}`]: 1, properties: { [`p${i}`]: {} }, required: [`p${i}`] })) }],
  [
    'many references to a long schema',
    {
      type: 'object',
      $defs: { long: Object.fromEntries(list(20_000, (i) => [`k${i}`, 1])) },
      properties: Object.fromEntries(list(1_000, (i) => [`p${i}`, { $ref: '#/$defs/long' }])),
    },
  ],
  [
    'a long text again and again',
    { type: 'array', minItems: 64, items: { type: 'array', minItems: 64, items: { const: 'x'.repeat(1_000_000) } } },
  ],
];

/** Thirty-one members of 64 items, all with one pattern, in each of eight answers. */
function withPattern(pattern: string): JsonObject {
  const properties = Object.fromEntries(list(31, (i) => [`p${i}`, { $ref: '#/$defs/text' }]));
  const schema = { type: 'array', minItems: 64, items: { type: 'object', properties } };
  const $defs = { text: { type: 'string', pattern, minLength: 9_000 } };
  return { n: 8, response_format: { type: 'json_schema', json_schema: { name: 'j', schema: { ...schema, $defs } } } };
}

it.each([
  ['classes', `^${'[^a-zA-Z0-9]'.repeat(800)}$`],
  ['groups', `^${'(?:a|(b|c)+)*'.repeat(700)}$`],
  ['names', '(?<a'.repeat(2_400)],
  ['one long class', `^[^${'a-z'.repeat(3_300)}]$`],
  ['counts', `^${'a{9999}|'.repeat(1_200)}a*$`],
])('a pattern of %s in each of 1,984 values of 8 responses is read once', async (_, pattern) => {
  expect(await tookMs('x', withPattern(pattern))).toBeLessThan(patience_ms);
});

it('the texts of an instance share one limit', () => {
  const long = { type: 'string', minLength: 10_000 };
  const schema = { type: 'array', minItems: 64, items: { type: 'array', minItems: 30, items: long } };
  expect(JSON.stringify(instanceOf(schema)).length).toBeLessThan(300_000);
});

it('beginnings of directives without an end are scanned once', async () => {
  expect(await tookMs('[[tool f '.repeat(700_000))).toBeLessThan(patience_ms);
});

it('ends of directives far from their beginning are not searched', async () => {
  expect(await tookMs(`[[tool f {"a":"${'x'.repeat(25_000_000)}${']]'.repeat(300)}`)).toBeLessThan(patience_ms);
});

it('directives at the beginning and at the end of a long text are followed', async () => {
  const chat_call: ChatCall = {
    ...call,
    stream: false,
    body: { model: 'chat', messages: [{ role: 'user', content: `${'many words '.repeat(50_000)}[[tokens 3]]` }] },
  };
  const { body } = await openSandboxChat(prober).send(chat_call, new AbortController().signal);
  const bytes = await readBytes(body, 100_000);
  expect(JSON.parse(bytes.toString())).toMatchObject({ usage: { completion_tokens: 3 } });
});

it('stop sequences are refused beyond the number that can be searched for', async () => {
  await expect(tookMs('x', { stop: list(65, String) })).rejects.toThrow('at most 64');
  expect(await tookMs('x', { stop: list(64, String) })).toBeLessThan(patience_ms);
});

it.each(schemas)('an instance of %s takes little time', (_, schema) => {
  const started = workedMs();
  const size = JSON.stringify(instanceOf(schema)).length;
  expect(workedMs() - started).toBeLessThan(patience_ms);
  expect(size).toBeLessThan(2_000_000);
});
