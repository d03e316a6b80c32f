import { expect, it } from 'vitest';
import { memoryBackoff } from '../../src/limits/backoff.ts';

it('five tries are free, then each waits twice as long as the one before, up to 15 minutes', () => {
  const tries = memoryBackoff();
  let now_ms = 1_000_000;
  for (let free = 0; free < 5; free++) expect(tries.take('anna', now_ms)).toBe(0);
  const waits = [];
  for (let more = 0; more < 13; more++) {
    const wait_ms = tries.take('anna', now_ms);
    waits.push(wait_ms / 1000);
    expect(tries.take('anna', now_ms + wait_ms - 1)).toBe(1);
    now_ms += wait_ms;
    expect(tries.take('anna', now_ms)).toBe(0);
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
});

it('a refused try neither counts nor lengthens the wait', () => {
  const tries = memoryBackoff();
  for (let free = 0; free < 5; free++) tries.take('anna', 0);
  for (let again = 0; again < 50; again++) expect(tries.take('anna', 0)).toBe(1_000);
  expect(tries.take('anna', 1_000)).toBe(0);
});

it('a right try forgives, one that nobody looked at does not count, and names are apart', () => {
  const tries = memoryBackoff();
  for (let free = 0; free < 5; free++) tries.take('anna', 0);
  expect(tries.take('ben', 0)).toBe(0);
  tries.undo('anna');
  expect(tries.take('anna', 0)).toBe(0);
  expect(tries.take('anna', 0)).toBe(1_000);
  tries.forgive('anna');
  for (let free = 0; free < 5; free++) expect(tries.take('anna', 0)).toBe(0);
});

it('tries of more than an hour ago are forgotten, and so are the oldest of more than 20,000 names', () => {
  const tries = memoryBackoff();
  for (let free = 0; free < 5; free++) tries.take('anna', 0);
  expect(tries.take('anna', 10)).toBeGreaterThan(0);
  expect(tries.take('anna', 3_600_000)).toBe(0);
  for (let free = 0; free < 4; free++) expect(tries.take('anna', 3_600_000)).toBe(0);
  for (let name = 0; name < 19_999; name++) tries.take(`other ${name}`, 3_600_001);
  expect(tries.take('anna', 3_600_001)).toBeGreaterThan(0);
  tries.take('one more', 3_600_001);
  expect(tries.take('anna', 3_600_001)).toBe(0);
});
