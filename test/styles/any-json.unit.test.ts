import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../src/catalog/model.ts';
import { ApiError } from '../../src/errors.ts';
import { inputSize } from '../../src/styles/input-size.ts';
import { readQuirks, type Quirks } from '../../src/styles/quirks.ts';
import { examples } from './converse/corpus.ts';
import { answers, gemini_answers, requests, responses_answers, responses_requests } from './samples.ts';
import { readAsk, renderAnswer, upstreamBody, type CallerStyle, type Style } from './by-name.ts';

const styles: readonly Style[] = ['completions', 'messages'];
const upstreams = [...styles, 'responses', 'gemini', 'converse'] as const;
const converse_answers = examples.filter(({ finish }) => finish).map(({ answer }) => answer);
const all_answers = {
  ...answers,
  responses: responses_answers,
  gemini: gemini_answers,
  converse: converse_answers,
};
const anyStyle = fc.constantFrom(...styles);
const anyUpstream = fc.constantFrom(...upstreams);
const anyQuirks = fc
  .record(
    {
      max_tokens_field: fc.constantFrom('max_tokens', 'max_completion_tokens'),
      stream_options: fc.boolean(),
      developer_role: fc.boolean(),
      reasoning_field: fc.constantFrom('reasoning_content', 'reasoning', 'none'),
      document_parts: fc.boolean(),
      reasoning_effort: fc.boolean(),
      tool_id_length_max: fc.integer({ min: 24, max: 64 }),
      thinking: fc.constantFrom('adaptive', 'budget', 'always', 'none'),
      system_turns: fc.boolean(),
      forced_tools: fc.boolean(),
      sampling: fc.boolean(),
      structured_output: fc.constantFrom('native', 'tool', 'prompt'),
      format_with_tools: fc.boolean(),
      result_media: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  .map((options) => readQuirks(options).quirks);

/** Words that mean something here, so that arbitrary JSON comes near to what is read. */
const word = fc.constantFrom(
  'text',
  'user',
  'assistant',
  'system',
  'tool',
  'function',
  'image',
  'document',
  'base64',
  'url',
  'auto',
  'none',
  'tool_use',
  'tool_result',
  'thinking',
  'enabled',
  'json_schema',
  'object',
  'data:,x',
  'data:image/png;base64,AA==',
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
);
const key = fc.constantFrom(
  'type',
  'role',
  'content',
  'text',
  'id',
  'name',
  'source',
  'data',
  'url',
  'input',
  'schema',
  '$ref',
  '$defs',
  'properties',
  'function',
  'arguments',
  'tool_calls',
  'tool_call_id',
  'tool_use_id',
  '__proto__',
  'constructor',
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

/** Expects a body that can be sent, or a 400 that names its field. The caller's object stays as it is. */
function expectBodyOrMistake(style: CallerStyle, upstream: Upstream, body: Json, quirks: Quirks): void {
  const before = JSON.stringify(body);
  const { body: created, sizes, mistake } = outcome(style, upstream, body, quirks);
  const is_made =
    created && (created['model'] === 'up' || Array.isArray(created[upstream === 'gemini' ? 'contents' : 'messages']));
  expect(is_made ?? mistake?.status).toBe(created ? true : 400);
  expect(JSON.stringify(created) ?? mistake?.message).not.toBe('');
  expect(sizes.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
  expect(JSON.stringify(body)).toBe(before);
}

type Upstream = (typeof upstreams)[number];

type Outcome = { body?: JsonObject; sizes: number[]; mistake?: ApiError };

function outcome(style: CallerStyle, upstream: Upstream, body: Json, quirks: Quirks): Outcome {
  const sizes: number[] = [];
  try {
    const ask = readAsk(style, body);
    sizes.push(...Object.values(inputSize(ask)));
    return { body: upstreamBody(ask, { style: upstream, model: 'up', max_tokens: 2000, quirks }).body, sizes };
  } catch (error) {
    if (error instanceof ApiError) return { sizes, mistake: error };
    throw error;
  }
}

describe('a request gets nothing worse than a 400', () => {
  it('with arbitrary bodies', () => {
    const body = fc.oneof(
      json,
      fc.dictionary(fc.constantFrom('model', 'messages', 'tools', 'system', 'stream', 'n', 'max_tokens'), json),
    );
    fc.assert(fc.property(anyStyle, anyUpstream, body, anyQuirks, expectBodyOrMistake), { numRuns: 1000 });
  });

  it('with bodies of the responses style that are changed anywhere', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...responses_requests),
        anyUpstream,
        mutations,
        anyQuirks,
        (request, upstream, changes, quirks) => {
          const body = changes.reduce<Json>((value, [choices, other]) => mutated(value, choices, other), request);
          expectBodyOrMistake('responses', upstream, body, quirks);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it.each(styles)('with bodies of %s style that are changed anywhere', (style) => {
    fc.assert(
      fc.property(
        fc.constantFrom(...requests[style]),
        anyUpstream,
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
    'with deeply nested arguments',
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

describe('bytes of an upstream do nothing worse than throw', () => {
  const asks = {
    completions: readAsk('completions', { model: 'm', messages: [{ role: 'user', content: 'x' }] }),
    messages: readAsk('messages', { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] }),
  };
  const rendered = (
    style: Style,
    upstream: Upstream,
    bytes: Buffer,
  ): { body?: unknown; counts: number[]; error?: unknown } => {
    const options = {
      model: 'public',
      request_id: 'req_1',
      created: 5,
      input_tokens_estimated: 3,
      json_tool: 'json_output',
    };
    try {
      const { bytes: answer, usage, delivered } = renderAnswer(asks[style], upstream, bytes, options);
      const { tool_calls = {}, ...tokens } = { ...usage };
      return {
        body: JSON.parse(answer.toString()),
        counts: Object.values({ ...tokens, ...tool_calls, ...delivered }),
      };
    } catch (error) {
      return { counts: [], error };
    }
  };

  it.each(upstreams)('as responses of %s style that are changed anywhere', (upstream) => {
    fc.assert(
      fc.property(anyStyle, fc.constantFrom(...all_answers[upstream]), mutations, (style, sample, changes) => {
        const body = changes.reduce<Json>((value, [choices, other]) => mutated(value, choices, other), sample);
        const { body: answer, counts, error } = rendered(style, upstream, Buffer.from(JSON.stringify(body)));
        const thrown = error instanceof ApiError ? new Error('told with status 200') : error;
        expect(thrown ?? answer).toMatchObject(error === undefined ? { model: 'public' } : { name: 'Error' });
        expect(counts.every((count) => Number.isSafeInteger(count) && count >= 0)).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  it.each(['', '<html>502</html>', 'null', '[]', '{}', '{"error":"connection lost"}', '\ufeff{"choices":[]}'])(
    'as %j',
    (text) => {
      for (const style of styles) {
        for (const upstream of upstreams) {
          const bytes = Buffer.from(text);
          expect(() =>
            renderAnswer(asks[style], upstream, bytes, {
              model: 'm',
              request_id: 'r',
              created: 1,
              input_tokens_estimated: 3,
            }),
          ).toThrow(Error);
        }
      }
    },
  );
});
