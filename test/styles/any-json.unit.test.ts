import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { renderAnswer } from '../../src/styles/answer.ts';
import { inputSize, readAsk } from '../../src/styles/ask.ts';
import type { Style } from '../../src/styles/conversation.ts';
import { readQuirks } from '../../src/styles/quirks.ts';
import { upstreamBody } from '../../src/styles/upstream.ts';
import { answers, requests } from './samples.ts';

const styles: readonly Style[] = ['completions', 'messages'];
const anyStyle = fc.constantFrom(...styles);
const anyQuirks = fc
  .record(
    {
      max_tokens_field: fc.constantFrom('max_tokens', 'max_completion_tokens'),
      stream_options: fc.boolean(),
      developer_role: fc.boolean(),
      reasoning_field: fc.constantFrom('reasoning_content', 'reasoning'),
      document_parts: fc.boolean(),
      reasoning_effort: fc.boolean(),
      tool_id_length_max: fc.integer({ min: 24, max: 64 }),
      thinking: fc.constantFrom('adaptive', 'budget', 'always', 'none'),
      system_turns: fc.boolean(),
      forced_tools: fc.boolean(),
      sampling: fc.boolean(),
      structured_output: fc.constantFrom('native', 'tool', 'prompt'),
    },
    { requiredKeys: [] },
  )
  .map((options) => readQuirks(options).quirks);

/** Words that mean something here, so that arbitrary JSON comes near to what is read. */
const word = fc.constantFrom(
  ...['text', 'user', 'assistant', 'system', 'tool', 'function', 'image', 'document', 'base64', 'url', 'auto', 'none'],
  ...[
    'tool_use',
    'tool_result',
    'thinking',
    'enabled',
    'json_schema',
    'object',
    'data:,x',
    'data:image/png;base64,AA==',
  ],
  ...[
    '',
    ' ',
    '{',
    '{"a":1}',
    '__proto__',
    'constructor',
    '\0',
    '\ud800',
    'x'.repeat(100),
    'https://example.com/a.png',
  ],
);
const key = fc.constantFrom(
  ...['type', 'role', 'content', 'text', 'id', 'name', 'source', 'data', 'url', 'input', 'schema', '$ref', '$defs'],
  ...['properties', 'function', 'arguments', 'tool_calls', 'tool_call_id', 'tool_use_id', '__proto__', 'constructor'],
);
const { json } = fc.letrec<{ json: Json }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    word,
    fc.string({ unit: 'binary', maxLength: 6 }),
    fc.constantFrom(null, true, false, 0, -1, 0.5, 3, 1e308, 2 ** 63, -0),
    fc.array(tie('json'), { maxLength: 4 }),
    fc.dictionary(key, tie('json'), { maxKeys: 4 }),
  ),
}));

/** `value` with another value at a place that `choices` lead to: an item or a member replaced, removed or added. */
function mutated(value: Json, choices: readonly number[], other: Json, depth = 0): Json {
  const [choice = 0, ...rest] = choices;
  if (typeof value !== 'object' || value === null || depth > choices.length + 5 || choices.length === 0) return other;
  if (Array.isArray(value)) {
    const at = choice % (value.length + 1);
    if (at === value.length) return [...value, other];
    return value.map((each, index) => (index === at ? mutated(each, rest, other, depth + 1) : each));
  }
  const keys = Object.keys(value);
  const at = keys[choice % (keys.length + 1)];
  if (at === undefined) return { ...value, [String(choice)]: other };
  if (choice % 7 === 6) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== at));
  return { ...value, [at]: mutated(value[at] ?? null, rest, other, depth + 1) };
}

const mutations = fc.array(fc.tuple(fc.array(fc.nat(40), { minLength: 1, maxLength: 7 }), json), { maxLength: 3 });

/** What comes out is a body that can be sent, or a 400 that names what it is about. */
function expectBodyOrMistake(
  style: Style,
  upstream: Style,
  body: Json,
  quirks: ReturnType<typeof readQuirks>['quirks'],
) {
  const before = JSON.stringify(body);
  try {
    const ask = readAsk(style, body);
    const size = inputSize(ask);
    for (const count of Object.values(size)) expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
    const made = upstreamBody(ask, { style: upstream, model: 'up', max_tokens: 2000, quirks });
    expect(made.body['model']).toBe('up');
    expect(JSON.stringify(made.body)).not.toBe('');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).toBe(400);
    expect(error.message).not.toBe('');
  }
  expect(JSON.stringify(body)).toBe(before);
}

describe('no JSON makes more than a 400', () => {
  it('arbitrary bodies', () => {
    const body = fc.oneof(
      json,
      fc.dictionary(fc.constantFrom('model', 'messages', 'tools', 'system', 'stream', 'n', 'max_tokens'), json),
    );
    fc.assert(fc.property(anyStyle, anyStyle, body, anyQuirks, expectBodyOrMistake), { numRuns: 1000 });
  });

  it.each(styles)('bodies of %s style with changes anywhere', (style) => {
    fc.assert(
      fc.property(
        fc.constantFrom(...requests[style]),
        anyStyle,
        mutations,
        anyQuirks,
        (request, upstream, changes, quirks) => {
          const body = changes.reduce<Json>((value, [choices, other]) => mutated(value, choices, other), request);
          expectBodyOrMistake(style, upstream, body, quirks);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it.each(['{"a":'.repeat(100_000) + '1' + '}'.repeat(100_000), '['.repeat(100_000)])(
    'arguments nested deeply',
    (text) => {
      const call = { id: 'a', type: 'function', function: { name: 'f', arguments: text } };
      const messages = [
        { role: 'user', content: 'x' },
        { role: 'assistant', tool_calls: [call] },
        { role: 'tool', tool_call_id: 'a', content: '' },
      ];
      expectBodyOrMistake('completions', 'messages', { model: 'm', messages }, {});
    },
  );
});

describe('no bytes of an upstream do more than throw', () => {
  const asks = {
    completions: readAsk('completions', { model: 'm', messages: [{ role: 'user', content: 'x' }] }),
    messages: readAsk('messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }),
  };
  const render = (style: Style, upstream: Style, bytes: Buffer): void => {
    const options = { model: 'public', request_id: 'req_1', created: 5, json_tool: 'json_output' };
    let rendered;
    try {
      rendered = renderAnswer(asks[style], upstream, bytes, options);
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(RangeError);
      return;
    }
    const body: unknown = JSON.parse(rendered.bytes.toString());
    expect(body).toMatchObject({ model: 'public' });
    for (const count of Object.values({ ...rendered.usage, ...rendered.delivered })) {
      expect(Number.isSafeInteger(count) && count >= 0).toBe(true);
    }
  };

  it.each(styles)('answers of %s style with changes anywhere', (upstream) => {
    fc.assert(
      fc.property(anyStyle, fc.constantFrom(...answers[upstream]), mutations, (style, answer, changes) => {
        const body = changes.reduce<Json>((value, [choices, other]) => mutated(value, choices, other), answer);
        render(style, upstream, Buffer.from(JSON.stringify(body)));
      }),
      { numRuns: 1000 },
    );
  });

  it.each(['', '<html>502</html>', 'null', '[]', '{}', '{"error":"connection lost"}', '\ufeff{"choices":[]}'])(
    '%j',
    (text) => {
      for (const style of styles) {
        for (const upstream of styles) {
          const bytes = Buffer.from(text);
          expect(() => renderAnswer(asks[style], upstream, bytes, { model: 'm', request_id: 'r', created: 1 })).toThrow(
            Error,
          );
        }
      }
    },
  );
});
