import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { mayReason } from '../../src/styles/thinking.ts';

const plain: string[] = [];
const thinker = ['thinking'];

const reasons = (capabilities: string[], body: JsonObject, sent = body) =>
  mayReason(capabilities, {}, { requested: body, sent });

test.each<[string, string[], JsonObject, boolean]>([
  ['its catalogue says so', thinker, {}, true],
  ['nothing says so', plain, {}, false],
  ['the request asks for it', plain, { reasoning_effort: 'low' }, true],
  ['the request switches it off', thinker, { reasoning_effort: 'none' }, false],
  [
    'the request has it off in one dialect and on in another',
    plain,
    { reasoning_effort: 'none', thinking: { type: 'enabled' } },
    true,
  ],
  ['the request has it off in two dialects', thinker, { enable_thinking: false, reasoning: { effort: 'none' } }, false],
])('a model is taken to think, or not: %s', (_, capabilities, body, expected) => {
  expect(reasons(capabilities, body)).toBe(expected);
});

test('a wish to think that a translated body no longer shows counts', () => {
  expect(reasons(plain, { reasoning_effort: 'high' }, {})).toBe(true);
});
