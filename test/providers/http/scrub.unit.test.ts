import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withoutWords } from '../../../src/lib/without-words.ts';
import { scrub } from '../../../src/providers/http/scrub.ts';
import { workedMs } from '../../helpers/work.ts';

describe('scrub', () => {
  it.each([
    ['Incorrect API key provided: sk-proj-AbC123dEf456.', 'sk-proj-AbC123dEf456'],
    ['Authorization: Bearer abc.def.ghi failed', 'abc.def.ghi'],
    ['see https://platform.example.com/account/billing?x=1.', 'platform.example.com'],
    ['Organization org-a1b2c3d4e5f6 has no access', 'a1b2c3d4e5f6'],
    ['request id req_011CTabcdefgh', '011CTabcdefgh'],
    ['user 123e4567-e89b-12d3-a456-426614174000 is blocked', '426614174000'],
    ['write to billing@example.com', 'billing@example.com'],
    ['token A1b2C3d4E5f6G7h8I9j0K1l2M3n4 expired', 'A1b2C3d4E5f6G7h8I9j0K1l2M3n4'],
  ])('hides the secret in: %s', (message, hidden) => {
    expect(scrub(message, [])).not.toContain(hidden);
  });

  it.each([
    'messages.3.content.0.image.source.base64: invalid base64 data',
    'max_tokens: 200000 > 64000, which is the maximum allowed number of output tokens',
    "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
    'tool_use ids were found without tool_result blocks immediately after: toolu_a',
    'prompt is too long: 250000 tokens > 200000 maximum',
  ])('leaves a message about the request unchanged: %s', (message) => {
    expect(scrub(message, [])).toBe(message);
  });

  it('never lets a secret through, wherever it is', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 8, maxLength: 40 }), fc.string(), fc.string(), (secret, before, after) => {
        const clean = scrub(before + secret + after, [secret]);
        return !clean.includes(secret) || `${before}[key]${after}`.replaceAll(/[\p{Cc}\s]+/gu, ' ').includes(secret);
      }),
    );
  });

  it('cuts no key in half', () => {
    const filler = `https://x.example/${'y'.repeat(2_300)} `;
    for (let gap = 0; gap < 90; gap++)
      expect(scrub(`${filler}${'. '.repeat(gap)}sk-AbCdEfGh1234`, [])).not.toContain('AbC');
  });

  it('makes one short line of its text', () => {
    expect(scrub(`a\n\tb\u0000c`, [])).toBe('a b c');
    expect(scrub('word '.repeat(1_000), []).length).toBeLessThanOrEqual(601);
  });

  it('takes no longer for hostile messages', () => {
    const started = workedMs();
    for (const text of [
      'a'.repeat(60_000),
      'sk-'.repeat(20_000),
      'a@'.repeat(30_000),
      '1a'.repeat(30_000),
      '-_'.repeat(30_000),
      'a.'.repeat(30_000),
    ])
      scrub(text, []);
    expect(workedMs() - started).toBeLessThan(2_000);
  });
});

it.each([
  ['rate_limited: answered 429: your prompt "secret words" is', 'rate_limited: answered 429'],
  ['refused: answered 400', 'refused: answered 400'],
  ['unavailable: ECONNREFUSED', 'unavailable'],
  ['no answer in time (idle)', 'no answer in time (idle)'],
  ['overloaded_error: you said so', 'overloaded_error'],
])('the log shows of %j only %j', (reason, logged) => {
  expect(withoutWords(reason)).toBe(logged);
});
