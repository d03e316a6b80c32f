import { expect, it } from 'vitest';
import { pairsOf, readActivitySearch } from '../../web/src/pages/activity/search.ts';
import { readValue } from '../../web/src/ui/address-value.ts';

const read = (search: Record<string, unknown>): unknown => JSON.parse(JSON.stringify(readActivitySearch(search)));

it.each(['1.0', '1e3', '-0', '12345678901234567890', '007', 'ada', '+1'])(
  'the text %s of an address stays a text',
  (text) => {
    expect(() => readValue(text)).toThrow(SyntaxError);
  },
);

it.each([
  ['2026', 2026],
  ['-1.5', -1.5],
  ['"1.0"', '1.0'],
  ['true', true],
])('the text %s of an address is a value', (text, value) => {
  expect(readValue(text)).toBe(value);
});

it('the filters of an address are texts, also where they look like numbers, and what cannot be a filter is left out', () => {
  expect(
    read({ tag: 2026, user: true, error: 'timeout', 'metadata.team': 'red', 'metadata.n': 7, http_status: 429 }),
  ).toEqual({
    tag: '2026',
    user: 'true',
    error: 'timeout',
    'metadata.team': 'red',
    'metadata.n': '7',
    http_status: '429',
  });
  const none = {
    tag: '',
    user: null,
    error: ['a'],
    'metadata.': 'x',
    'metadata.a]b': 'x',
    'metadata.o': {},
    http_status: 'x',
  };
  expect(read(none)).toEqual({});
});

it('a pair has the name that the caller wrote', () => {
  expect(pairsOf({ 'metadata.a.b&c': 'x', tag: 'y', metadata: 'z' })).toEqual([
    { name: 'metadata.a.b&c', key: 'a.b&c', value: 'x' },
  ]);
});
