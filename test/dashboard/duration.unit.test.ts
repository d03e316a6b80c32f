import { expect, it } from 'vitest';
import { durationText } from '../../web/src/ui/duration.ts';

it.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [999.5, '1.0 s'],
  [3_249, '3.2 s'],
  [59_949, '59.9 s'],
  [59_950, '1 min 0 s'],
  [60_000, '1 min 0 s'],
  [119_499, '1 min 59 s'],
  [119_500, '2 min 0 s'],
  [125_000, '2 min 5 s'],
  [3_599_600, '60 min 0 s'],
])('%s ms is written as %s', (duration_ms, text) => {
  expect(durationText(duration_ms)).toBe(text);
});
