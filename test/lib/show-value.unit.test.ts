import fc from 'fast-check';
import { expect, it } from 'vitest';
import { jsonType, showValue } from '../../src/lib/show-value.ts';

it.each([
  ['text', '"text"'],
  ['say "hi"\\', '"say \\"hi\\"\\\\"'],
  ['zażółć 😀', '"zażółć 😀"'],
  ['\0\u0007\n\r\t\u007f\u0085', '"\\u0000\\u0007\\n\\r\\t\\u007f\\u0085"'],
  ['\u200b\u2028\u202e\ufeff', '"\\u200b\\u2028\\u202e\\ufeff"'],
  ['\ud800', '"\\ud800"'],
  ['a'.repeat(58), `"${'a'.repeat(58)}"`],
  ['a'.repeat(59), `"${'a'.repeat(57)}…"`],
  [-0.5, '-0.5'],
  [1e308, '1e+308'],
  [true, 'true'],
  [null, 'null'],
  [undefined, 'undefined'],
  [{ a: ['b', 1] }, '{"a":["b",1]}'],
])('the value %j is shown printably', (value, shown) => {
  expect(showValue(value)).toBe(shown);
});

it('a shown value has at most 60 characters, all printable', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 150 }),
        fc.json().map((text): unknown => JSON.parse(text)),
      ),
      (value) => {
        const shown = showValue(value);
        expect(shown.length).toBeLessThanOrEqual(60);
        expect(shown).not.toMatch(/[\p{Cc}\p{Cs}]/u);
      },
    ),
  );
});

it.each([
  [null, 'null'],
  [[], 'array'],
  [{}, 'object'],
  ['', 'string'],
  [0, 'number'],
  [false, 'boolean'],
])('jsonType(%j) is %s', (value, type) => {
  expect(jsonType(value)).toBe(type);
});
