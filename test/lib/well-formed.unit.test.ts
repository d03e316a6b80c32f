import { expect, it } from 'vitest';
import { makeWellFormed } from '../../src/lib/well-formed.ts';
import { workedMs } from '../helpers/work.ts';

it('lone surrogates become replacement characters in every string and name, and nothing else changes', () => {
  const value = {
    a: ['x\ud800', { b: '\udc00y', ok: '😀' }, 1, null],
    'k\ud800': 'v\ud800',
    deep: { 'm\ud800': [true] },
  };
  expect(makeWellFormed(value)).toEqual({
    a: ['x\ufffd', { b: '\ufffdy', ok: '😀' }, 1, null],
    'k\ufffd': 'v\ufffd',
    deep: { 'm\ufffd': [true] },
  });
  expect(makeWellFormed('\ud800')).toBe('\ufffd');
  expect(makeWellFormed(null)).toBe(null);
});

it('millions of lone surrogates are written in the time of other text', () => {
  const text = (unit: string) => ({ text: unit.repeat(3_000_000) });
  const workOf = (value: object) => {
    const begun_ms = workedMs();
    JSON.stringify(makeWellFormed(value));
    return workedMs() - begun_ms;
  };
  const lone = Math.min(...Array.from({ length: 3 }, () => workOf(text('\ud800'))));
  expect(lone).toBeLessThan(75); // 130 when each was escaped
});
