import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRange } from '../../src/storage/range.ts';

/** RFC 9110, 14.1.2, word by word: each byte of the file is asked whether it is named. */
function plainReading(first: number | undefined, last: number | undefined, size: number) {
  if (first === undefined && last === undefined) return undefined;
  if (first !== undefined && last !== undefined && last < first) return undefined;
  const named = Array.from({ length: size }, (_, i) => i).filter((i) =>
    first === undefined ? i >= size - (last ?? 0) : i >= first && (last === undefined || i <= last),
  );
  return named.length === 0 ? 'unsatisfiable' : { start: named[0], end: named.at(-1) };
}

const position = fc.option(fc.oneof(fc.nat(12), fc.nat(40), fc.constant(2 ** 53)), { nil: undefined });

describe('parseRange', () => {
  test('selects the same bytes as a plain reading of the standard', () => {
    fc.assert(
      fc.property(position, position, fc.nat(20), (first, last, size) => {
        expect(parseRange(`bytes=${first ?? ''}-${last ?? ''}`, size)).toEqual(plainReading(first, last, size));
      }),
      { numRuns: 2000 },
    );
    expect(fc.sample(position, 100).includes(undefined)).toBe(true);
  });

  test('never leaves the file, whatever the header says', () => {
    const header = fc.oneof(
      fc.string(),
      fc.string({ unit: fc.constantFrom(...'bytes=-, 0123456789') }),
      fc.string({ unit: fc.constantFrom(...'0123456789-,'), maxLength: 30 }).map((text) => `bytes=${text}`),
    );
    fc.assert(
      fc.property(header, fc.nat(100), (text, size) => {
        const range = parseRange(text, size);
        if (range === undefined || range === 'unsatisfiable') return;
        expect(range.start).toBeGreaterThanOrEqual(0);
        expect(range.end).toBeGreaterThanOrEqual(range.start);
        expect(range.end).toBeLessThan(size);
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    ['bytes=0-0', { start: 0, end: 0 }],
    ['bytes=0-', { start: 0, end: 99 }],
    ['bytes=99-', { start: 99, end: 99 }],
    ['bytes=-1', { start: 99, end: 99 }],
    ['bytes=-1000', { start: 0, end: 99 }],
    ['bytes=50-1000', { start: 50, end: 99 }],
    ['BYTES=1-2', { start: 1, end: 2 }],
    ['bytes=00-01', { start: 0, end: 1 }],
    [`bytes=0-${'9'.repeat(400)}`, { start: 0, end: 99 }],
    ['bytes=100-', 'unsatisfiable'],
    [`bytes=${'9'.repeat(400)}-`, 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=5-4', undefined],
    ['bytes=-', undefined],
    ['bytes=', undefined],
    ['bytes=0-1,5-6', undefined],
    ['bytes=a-b', undefined],
    ['bytes=0x1-2', undefined],
    ['bytes=1.0-2', undefined],
    ['bytes=--1', undefined],
    ['bytes= 0-1', undefined],
    ['items=0-1', undefined],
    ['0-1', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('reads %j of 100 bytes', (header, range) => {
    expect(parseRange(header, 100)).toEqual(range);
  });
});
