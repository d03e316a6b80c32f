import { expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';

it('the system clock returns the time of the machine in milliseconds', () => {
  const before_ms = Date.now();
  const now_ms = systemClock.now();
  expect(now_ms).toBeGreaterThanOrEqual(before_ms);
  expect(now_ms).toBeLessThanOrEqual(Date.now());
});
