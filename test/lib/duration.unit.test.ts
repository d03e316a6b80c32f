import { expect, it } from 'vitest';
import { parseDuration } from '../../src/lib/duration.ts';

it.each([
  ['250ms', 250],
  ['10s', 10_000],
  ['1m', 60_000],
  ['1.5m', 90_000],
  ['2h', 7_200_000],
  ['7d', 604_800_000],
  ['0s', 0],
  ['1.005s', 1005],
  ['0.5ms', 1],
  ['36500d', 3_153_600_000_000],
])('the duration %s is %d ms', (text, duration_ms) => {
  expect(parseDuration(text)).toBe(duration_ms);
});

it.each([
  '',
  '10',
  's',
  '-1s',
  '+1s',
  '1 s',
  '1S',
  '1e3s',
  '.5s',
  '1.s',
  '1.2345s',
  '1w',
  '1h30m',
  ' 1s',
  '1s\n',
  '1constructor',
  '36501d',
  '999999999d',
])('the text %j is not a duration', (text) => {
  expect(parseDuration(text)).toBeUndefined();
});
