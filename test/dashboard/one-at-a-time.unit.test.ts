import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { oneAtATime } from '../../web/src/pages/activity/one-at-a-time.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Work that takes so long, and when each of it began. */
function makeWork(takes_ms: number, fails = false) {
  const began: number[] = [];
  const start = Date.now();
  const work = async () => {
    began.push(Date.now() - start);
    await new Promise((resolve) => setTimeout(resolve, takes_ms));
    if (fails) throw new Error('the service is away');
  };
  return { began, work };
}

it('a list is read at once, and once more after a pause for all changes of that time', async () => {
  const { began, work } = makeWork(50);
  const refresh = oneAtATime(work, () => 800);
  refresh();
  expect(began).toEqual([0]);
  for (let i = 0; i < 20; i += 1) refresh();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(began).toEqual([0, 800]);
  refresh();
  expect(began).toEqual([0, 800, 5_000]);
});

it('what changes all the time is read once in each pause, and never twice at the same time', async () => {
  const [quick, slow] = [makeWork(50), makeWork(2_000, true)];
  const refreshes = [quick, slow].map(({ work }) => oneAtATime(work, () => 800));
  for (let ms = 0; ms < 8_000; ms += 100) {
    for (const refresh of refreshes) refresh();
    await vi.advanceTimersByTimeAsync(100);
  }
  expect(quick.began).toEqual([0, 800, 1_600, 2_400, 3_200, 4_000, 4_800, 5_600, 6_400, 7_200, 8_000]);
  expect(slow.began).toEqual([0, 2_000, 4_000, 6_000, 8_000]);
});
