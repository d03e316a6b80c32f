import { expect, it } from 'vitest';
import { fragmentAt, pointerKeys, valueAt } from '../../src/lib/json-pointer.ts';

it.each([
  ['', []],
  ['/', ['']],
  ['/a/0/b', ['a', '0', 'b']],
  ['/a~1b/c~0d', ['a/b', 'c~d']],
  ['/~01', ['~1']], // ~1 first, or this would become a slash
  ['/a//b', ['a', '', 'b']],
])('the keys of the JSON pointer %j are read', (pointer, keys) => {
  expect(pointerKeys(pointer)).toEqual(keys);
});

it('a JSON pointer finds own members only', () => {
  const root: unknown = JSON.parse('{"a": [{"b": 1}], "__proto__": {"c": 2}}');
  expect(valueAt(root, [])).toBe(root);
  expect(valueAt(root, ['a', '0', 'b'])).toBe(1);
  expect(valueAt(root, ['__proto__', 'c'])).toBe(2);
  for (const keys of [['constructor'], ['a', 'map'], ['a', '1'], ['a', '0', 'b', 'c'], ['x', 'y']]) {
    expect(valueAt(root, keys)).toBeUndefined();
  }
});

it('references of JSON Schema are read', () => {
  const root = { $defs: { 'a b': { type: 'string' }, 'c/d': 1, '50%': 2 } };
  expect(fragmentAt(root, '#')).toBe(root);
  expect(fragmentAt(root, '#/$defs/a%20b/type')).toBe('string');
  expect(fragmentAt(root, '#/$defs/c~1d')).toBe(1);
  expect(fragmentAt(root, '#/$defs/50%25')).toBe(2);
  for (const other of ['#/$defs/50%', '#name', 'other.json#/$defs', '#/$defs/x'])
    expect(fragmentAt(root, other)).toBeUndefined();
});
