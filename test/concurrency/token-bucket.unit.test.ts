import { describe, expect, it } from 'vitest';
import { TokenBucket, type RateClock } from '../../src/concurrency/token-bucket.ts';
import { never } from '../providers/upstreams.ts';

/** A time that jumps to the end of each sleep. */
function jumping(): RateClock & { jump(ms: number): void } {
  let now_ms = 0;
  return {
    now: () => now_ms,
    sleep: async (wait_ms) => void (now_ms += wait_ms),
    jump: (ms) => void (now_ms += ms),
  };
}

describe('a rate limit', () => {
  it.each([
    [60, 10],
    [3_000, 50],
    [20, 1],
    [6, 2],
  ])('of %i calls a minute, %i of them at once, holds in any minute', async (per_minute, burst) => {
    const rate_clock = jumping();
    const bucket = new TokenBucket({ per_minute, burst }, rate_clock);
    const at_ms: number[] = [];
    for (let tries = 0; at_ms.length < per_minute * 3; tries++) {
      const taken = await bucket.take(never).then(
        () => true,
        () => false,
      );
      if (taken) at_ms.push(rate_clock.now());
      else rate_clock.jump(100);
      if (tries % 97 === 96) rate_clock.jump(20_000); // now and then nobody calls, and a burst is saved up
    }
    const minutes_ms = at_ms.slice(per_minute).map((later_ms, index) => later_ms - (at_ms[index] ?? 0));
    expect(Math.min(...minutes_ms)).toBeGreaterThanOrEqual(60_000);
    expect(at_ms.filter((each_ms) => each_ms === 0)).toHaveLength(burst);
  });

  it('delays no call for longer than a second: it is refused as too early and takes no slot', async () => {
    const rate_clock = jumping();
    const bucket = new TokenBucket({ per_minute: 7, burst: 1 }, rate_clock);
    await bucket.take(never);
    for (let i = 0; i < 5; i++) await expect(bucket.take(never)).rejects.toThrow('for 10000 ms');
    rate_clock.jump(9_500);
    await bucket.take(never);
    expect(rate_clock.now()).toBe(10_000);
  });

  it('stops while the upstream requires it, also for calls that wait', async () => {
    const rate_clock = jumping();
    const bucket = new TokenBucket({ per_minute: 601, burst: 1 }, rate_clock);
    bucket.pause(30_000);
    await expect(bucket.take(never)).rejects.toThrow('for 30000 ms');
    bucket.pause(1_000); // a shorter word does not end a longer one
    rate_clock.jump(29_999);
    await bucket.take(never);
    expect(rate_clock.now()).toBe(30_000);
    const sleeping = Promise.withResolvers<void>();
    const slow = new TokenBucket({ per_minute: 61, burst: 1 }, { now: rate_clock.now, sleep: () => sleeping.promise });
    await slow.take(never);
    const waiting = slow.take(never);
    slow.pause(60_000);
    sleeping.resolve();
    await expect(waiting).rejects.toThrow('may not be asked');
  });
});
