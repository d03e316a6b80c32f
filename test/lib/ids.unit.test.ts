import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { firstIdSince, isId, newId, randomBase62, toBase62 } from '../../src/lib/ids.ts';

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** The 128 bits behind an id. */
function bitsOf(id: string): bigint {
  let bits = 0n;
  for (const character of id.slice(id.indexOf('_') + 1)) bits = bits * 32n + BigInt(alphabet.indexOf(character));
  return bits;
}

describe('newId', () => {
  it('is a prefix and 26 characters', () => {
    expect(newId('task')).toMatch(/^task_[0-7][0-9a-hjkmnp-tv-z]{25}$/);
    expect(isId('task', newId('task'))).toBe(true);
  });

  it('is a UUID of version 7 with the time in its first 48 bits', () => {
    const now_ms = Date.now() + 1000;
    const bits = bitsOf(newId('task', now_ms));
    expect(bits < 2n ** 128n).toBe(true);
    expect(bits >> 80n).toBe(BigInt(now_ms));
    expect((bits >> 76n) & 15n).toBe(7n);
    expect((bits >> 62n) & 3n).toBe(2n);
  });

  it('sorts by creation, also within a millisecond', () => {
    const now_ms = Date.now() + 2000;
    const ids = Array.from({ length: 20_000 }, (_, index) => newId('task', now_ms + Math.floor(index / 6000)));
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it('sorts by creation even when the clock goes back', () => {
    const now_ms = Date.now() + 60_000;
    const ids = [now_ms, now_ms - 5000, now_ms - 1, now_ms, now_ms + 1].map((ms) => newId('req', ms));
    expect(ids.toSorted()).toEqual(ids);
  });

  it('has the time of a clock that is set right after it was far ahead', () => {
    newId('task', Date.now() + 86_400_000);
    const now_ms = Date.now();
    expect(bitsOf(newId('task', now_ms)) >> 80n).toBe(BigInt(now_ms));
  });

  it('sorts by creation, also where ids of other kinds come from another clock', () => {
    const now_ms = Date.now();
    const ids = Array.from({ length: 100 }, () => {
      newId('task', now_ms + 3_600_000);
      return newId('key', now_ms);
    });
    expect(ids.toSorted()).toEqual(ids);
  });

  it('cannot be guessed from the previous one', () => {
    const tails = Array.from({ length: 1000 }, () => bitsOf(newId('key')) & (2n ** 62n - 1n));
    expect(new Set(tails).size).toBe(tails.length);
  });
});

describe('isId', () => {
  const id = newId('task');

  it.each([
    ['another prefix', 'key', id],
    ['too short', 'task', id.slice(0, -1)],
    ['too long', 'task', `${id}0`],
    ['a new line', 'task', `${id.slice(0, -1)}\n`],
    ['upper case', 'task', id.slice(0, -1) + 'A'],
    ['a letter that is not in the alphabet', 'task', id.slice(0, -1) + 'u'],
    ['more than 128 bits', 'task', `task_8${id.slice(6)}`],
    ['no underscore', 'task', id.replace('_', '-')],
    ['nothing', 'task', ''],
  ] as const)('refuses %s', (_name, prefix, text) => {
    expect(isId(prefix, text)).toBe(false);
  });
});

describe('randomBase62', () => {
  it('has the requested length and only letters and digits', () => {
    for (const length of [0, 1, 30, 200]) expect(randomBase62(length)).toMatch(new RegExp(`^[0-9A-Za-z]{${length}}$`));
  });

  it('uses every character about equally often', () => {
    const counts = new Map<string, number>();
    for (const character of randomBase62(62_000)) counts.set(character, (counts.get(character) ?? 0) + 1);
    expect(counts.size).toBe(62);
    // 1,000 expected, standard deviation 31: outside of ±250 once in 10^13 runs; modulo bias would give 1,211.
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(250);
  });
});

describe('toBase62', () => {
  const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

  it.each([
    [0, '000000'],
    [61, '00000z'],
    [62, '000010'],
    [2 ** 32 - 1, '4gfFC3'],
  ])('writes %d as %s', (value, text) => {
    expect(toBase62(value, 6)).toBe(text);
  });

  it('can be read back', () => {
    fc.assert(
      fc.property(fc.maxSafeNat(), (value) => {
        const read = [...toBase62(value, 9)].reduce((sum, digit) => sum * 62n + BigInt(digits.indexOf(digit)), 0n);
        expect(read).toBe(BigInt(value));
      }),
    );
  });
});

describe('firstIdSince', () => {
  it('sorts before the ids of its moment and later ones, and after earlier ones', () => {
    const at_ms = Date.now() + 60_000;
    const [before, then] = [newId('task', at_ms - 1), newId('task', at_ms)];
    const first = firstIdSince('task', at_ms);
    expect([then, first, before].toSorted()).toEqual([before, first, then]);
    expect(isId('task', first)).toBe(true);
  });
});
