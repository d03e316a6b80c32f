import fc from 'fast-check';
import { expect, it } from 'vitest';
import { PatternTexts } from '../../../src/providers/sandbox/pattern-text.ts';

const patternText = (pattern: string, length_min: number) => new PatternTexts().textOf(pattern, length_min);

it.each([
  '^[A-Z]{3}-\\d{4}$',
  '^(foo|bar)+$',
  '^\\+?[0-9 ()-]{7,}$',
  '^#[0-9a-fA-F]{6}$',
  '^[^@\\s]+@[^@\\s]+\\.[a-z]{2,}$',
  '^(?:[01]\\d|2[0-3]):[0-5]\\d$',
  '^(?<year>\\d{4})-(0[1-9]|1[0-2])$',
  '^\\p{L}+$',
  '^[\\w.-]+$',
  '^[^a-z]$',
  '^[^]$',
  'a.c',
  '^\\$\\d+(\\.\\d{2})?$',
  '^\\S+$',
  '^$',
  '^a{0,3}b*?$',
])('a text is generated that matches %s', (pattern) => {
  const text = patternText(pattern, 0);
  expect(text).toMatch(new RegExp(pattern, 'u'));
});

it('a text for a pattern has the required length', () => {
  const text = patternText('^[a-z]+$', 50) ?? '';
  expect(text).toMatch(/^[a-z]{50,}$/);
});

it.each(['(?=a)b', '[]', '\\1', 'a**', '(', '[', '(?<!a)b', '\\cA'])('the pattern %s is not supported', (pattern) => {
  expect(patternText(pattern, 0)).toBeUndefined();
});

it('generating a text never throws and never takes long', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab[]()^$|*+?{}1,-\\d.'), maxLength: 40 }), (pattern) => {
      const text = patternText(pattern, 3);
      expect(text === undefined || text.length <= 20_000).toBe(true);
    }),
    { numRuns: 500 },
  );
});

it('a pattern is parsed once, however often a text for it is requested', () => {
  const texts = new PatternTexts();
  for (let times = 0; times < 1_000; times++) expect(texts.textOf('^a{3}$', 0)).toBe('aaa');
  expect(texts.read_length).toBe('^a{3}$'.length);
});
