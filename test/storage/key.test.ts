import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { AssertionError } from '../../src/lib/assert.ts';
import { newId } from '../../src/lib/ids.ts';
import { storageKey, parseKey, thumbnailKey } from '../../src/storage/key.ts';
import { newKey } from './samples.ts';

describe('a storage key', () => {
  test('names account, task, position and extension, and is parsed again', () => {
    const parts = { account_id: newId('acct'), owner_id: newId('task'), index: 12, extension: 'mp4' } as const;
    expect(storageKey(parts)).toBe(`${parts.account_id}/${parts.owner_id}/12.mp4`);
    expect(parseKey(storageKey(parts))).toEqual(parts);
  });

  test('may name an uploaded file', () => {
    const parts = { account_id: newId('acct'), owner_id: newId('file'), index: 0, extension: 'png' } as const;
    expect(parseKey(storageKey(parts))).toEqual(parts);
    expect(() => storageKey({ ...parts, owner_id: newId('key') })).toThrow(AssertionError);
  });

  test('of a thumbnail is that of its file with the size behind the position', () => {
    const parts = { account_id: newId('acct'), owner_id: newId('task'), index: 3, extension: 'mp4' } as const;
    const key = thumbnailKey(parts, 64);
    expect(key).toBe(`${parts.account_id}/${parts.owner_id}/3-64.webp`);
    expect(parseKey(key)).toEqual({ ...parts, extension: 'webp', thumbnail: 64 });
    for (const wrong of ['3-65.webp', '3-064.webp', '3-64.png', '3-.webp', '3-64-64.webp']) {
      expect(parseKey(key.replace('3-64.webp', wrong)), wrong).toBeUndefined();
    }
  });

  test('is made of nothing else', () => {
    const parts = { account_id: newId('acct'), owner_id: newId('task'), index: 0, extension: 'png' } as const;
    for (const wrong of [
      { account_id: '..' },
      { account_id: parts.owner_id },
      { owner_id: '' },
      { owner_id: `${parts.owner_id}/..` },
      { index: -1 },
      { index: 1.5 },
      { index: 10_000 },
    ]) {
      expect(() => storageKey({ ...parts, ...wrong }), `${JSON.stringify(wrong)}`).toThrow(AssertionError);
    }
  });

  test('with one character changed, added or removed is another key or invalid', () => {
    const key = newKey();
    const change = fc.tuple(fc.nat(key.length - 1), fc.string({ maxLength: 2 }));
    const others = fc.sample(change, 2000).map(([at, text]) => key.slice(0, at) + text + key.slice(at + 1));
    const misread = others.filter((other) => {
      const parts = parseKey(other);
      return parts !== undefined && storageKey(parts) !== other;
    });
    expect(misread).toEqual([]);
  });

  test.each([
    '',
    '/',
    '.',
    '..',
    '../../etc/passwd',
    '/etc/passwd',
    '.incoming/x.part',
    `${newKey()}/`,
    `/${newKey()}`,
    `./${newKey()}`,
    newKey().replace('/', '//'),
    newKey().replace('/', '/../'),
    newKey().replaceAll('/', '\\'),
    newKey().toUpperCase(),
    newKey().replace('0.png', '00.png'),
    newKey().replace('0.png', '0.svg'),
    newKey().replace('0.png', '0.html'),
    newKey().replace('0.png', '0.constructor'),
    newKey().replace('0.png', '0.png\n'),
    newKey().replace('0.png', '0.png\0'),
    newKey().replace('acct_', 'acct%5F'),
  ])('is invalid as %j', (text) => {
    expect(parseKey(text)).toBeUndefined();
  });
});
