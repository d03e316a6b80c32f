import fc from 'fast-check';
import { expect, it } from 'vitest';
import { markMatches, readWildcard, WildcardError } from '../../src/lib/wildcards.ts';

function matched(pattern: string, text: string): string {
  const marks = new Uint8Array(text.length);
  markMatches(readWildcard(pattern), text, marks, 1);
  return Array.from(text, (character, at) => (marks[at] === 1 ? 'x' : character)).join('');
}

it.each([
  ['EMP-####', 'for emp-1234, EMP-99999 and EMP-12', 'for xxxxxxxx, xxxxxxxx9 and EMP-12'],
  ['https://*', 'see https://example.com/a?b=c now', 'see xxxxxxxxxxxxxxxxxxxxxxxxx now'],
  ['ID ???', 'ID żółw, ID a-b', 'xxxxxxw, ID a-b'],
  ['a\\*b\\#', 'a*b# axb1', 'xxxx axb1'],
  ['secret*end', 'secret1end secretend', 'xxxxxxxxxx secretend'],
  ['aba', 'ababa aba', 'xxxxx xxx'],
  ['Straße', 'STRASSE straße', 'STRASSE xxxxxx'],
])('the pattern %j finds in %j what it says', (pattern, text, expected) => {
  expect(matched(pattern, text)).toBe(expected);
});

it.each([
  ['ab', 'at least 3 characters'],
  ['***   *', 'at least 3 characters'],
  ['abc\\', 'ends with a "\\"'],
  ['x'.repeat(31), 'at most 30 characters'],
])('%j is no pattern, and the message says why', (text, message) => {
  expect(() => readWildcard(text)).toThrow(WildcardError);
  expect(() => readWildcard(text)).toThrow(message);
});

it('a pattern finds exactly what a regular expression of the same meaning does', () => {
  const meanings: Record<string, string> = {
    '#': '[0-9]',
    '?': '[A-Za-z0-9]',
    '*': String.raw`\S+`,
    ' ': String.raw`\s`,
  };
  const words = fc.array(fc.constantFrom('a', 'b', '1', '-', '#', '?', '*', ' '), { minLength: 3, maxLength: 8 });
  const texts = fc.array(fc.constantFrom('a', 'B', '1', '2', '-', ' '), { maxLength: 14 });
  fc.assert(
    fc.property(words, texts, (pattern_words, characters) => {
      const [pattern, text] = [pattern_words.join(''), characters.join('')];
      fc.pre(pattern_words.filter((word) => word !== '*' && word !== ' ').length >= 3);
      const places = pattern_words.filter((word, at) => word !== '*' || pattern_words[at - 1] !== '*'); // `**` is `*`
      const expression = new RegExp(`^${places.map((word) => meanings[word] ?? word).join('')}$`, 'i');
      const expected = Array.from(text, () => false);
      for (let from = 0; from < text.length; from += 1)
        for (let to = from + 1; to <= text.length; to += 1)
          if (expression.test(text.slice(from, to))) expected.fill(true, from, to);
      const marks = new Uint8Array(text.length);
      markMatches(readWildcard(pattern), text, marks, 1);
      expect(Array.from(marks, (mark) => mark === 1)).toEqual(expected);
    }),
    { numRuns: 500 },
  );
});
