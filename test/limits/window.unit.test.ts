import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { memoryWindows, type LocalWindows, type WindowAnswer, window_ms } from '../../src/limits/window.ts';

/** The sentence of the specification, written down as slowly as possible. */
function oracle() {
  const accepted: number[] = [];
  return (limit: number, now_ms: number): boolean => {
    const ok = accepted.filter((time) => now_ms - time <= window_ms).length < limit;
    if (ok) accepted.push(now_ms);
    return ok;
  };
}

function take(windows: LocalWindows, limit: number, now_ms: number, key = 'key_a'): WindowAnswer {
  return windows.take('generate', key, limit, now_ms);
}

describe('a rate limit in memory', () => {
  test('accepts exactly what the reference accepts, whatever the pace and the limit', () => {
    const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.integer({ min: 0, max: 70_000 })), {
      maxLength: 300,
    });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 20 }), (waits_ms, limit) => {
        const windows = memoryWindows();
        const expected = oracle();
        let now_ms = 0;
        for (const wait_ms of waits_ms) {
          now_ms += wait_ms;
          expect(take(windows, limit, now_ms).ok).toBe(expected(limit, now_ms));
        }
      }),
      { numRuns: 300 },
    );
  });

  test('accepts a refused request after retry_after_ms, and not one millisecond earlier', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1 }), (waits_ms) => {
        const windows = memoryWindows();
        let now_ms = 0;
        for (const wait_ms of waits_ms) {
          now_ms += wait_ms;
          const taken = take(windows, 5, now_ms);
          if (taken.ok) continue;
          expect(taken.retry_after_ms).toBeGreaterThan(0);
          expect(take(windows, 5, now_ms + taken.retry_after_ms - 1).ok).toBe(false);
          now_ms += taken.retry_after_ms;
          expect(take(windows, 5, now_ms).ok).toBe(true);
        }
      }),
    );
  });

  test('accepts 60 at once, then nothing until the minute is over, then 60 again', () => {
    const windows = memoryWindows();
    const at = (now_ms: number) =>
      Array.from({ length: 100 }, () => take(windows, 60, now_ms).ok).filter(Boolean).length;
    expect([at(0), at(30_000), at(60_000), at(60_001)]).toEqual([60, 0, 0, 60]);
  });

  test('does not count refused requests, so that a busy client gets its slots back on time', () => {
    const windows = memoryWindows();
    for (let i = 0; i < 60; i++) take(windows, 60, 0);
    for (let now_ms = 1; now_ms < 60_000; now_ms += 100) expect(take(windows, 60, now_ms).ok).toBe(false);
    expect(take(windows, 60, 60_001).ok).toBe(true);
  });

  test('reports what is left and when the next slot is free', () => {
    const windows = memoryWindows();
    expect(take(windows, 2, 1_000)).toEqual({ ok: true, limit: 2, remaining: 1, reset_ms: 60_001, retry_after_ms: 0 });
    expect(take(windows, 2, 11_000)).toMatchObject({ ok: true, remaining: 0, reset_ms: 50_001 });
    expect(take(windows, 2, 21_000)).toMatchObject({
      ok: false,
      remaining: 0,
      reset_ms: 40_001,
      retry_after_ms: 40_001,
    });
  });

  test('shares no slots between keys or windows', () => {
    const windows = memoryWindows();
    expect(take(windows, 1, 0, 'key_a').ok).toBe(true);
    expect(take(windows, 1, 0, 'key_b').ok).toBe(true);
    expect(windows.take('chat', 'key_a', 1, 0)).toMatchObject({ ok: true });
    expect(take(windows, 1, 0, 'key_a').ok).toBe(false);
  });

  test('applies a limit that a reload lowers at once, and opens slots at once for a raised one', () => {
    const windows = memoryWindows();
    for (let i = 0; i < 10; i++) take(windows, 10, i);
    expect(take(windows, 5, 100)).toMatchObject({ ok: false, remaining: 0, retry_after_ms: 5 + 60_001 - 100 });
    expect(take(windows, 12, 100)).toMatchObject({ ok: true, remaining: 1 });
  });

  test('of zero refuses everything and says to wait', () => {
    expect(take(memoryWindows(), 0, 5)).toMatchObject({ ok: false, remaining: 0, retry_after_ms: 60_001 });
  });

  test('frees nothing when the clock steps back', () => {
    const windows = memoryWindows();
    take(windows, 1, 100_000);
    expect(take(windows, 1, 20_000)).toMatchObject({ ok: false, reset_ms: 60_001, retry_after_ms: 60_001 });
    expect(take(windows, 1, 160_000).ok).toBe(false);
    expect(take(windows, 1, 160_001).ok).toBe(true);
  });

  test('drops idle keys, however long others go on', () => {
    const windows = memoryWindows();
    take(windows, 60, 0, 'key_alive');
    for (let i = 0; i < 1_000; i++) take(windows, 60, 0, `key_${i}`);
    expect(windows.size()).toBe(1_001);
    take(windows, 60, 30_000, 'key_alive');
    for (let i = 0; i < 250; i++) take(windows, 60, 60_002, 'key_alive');
    expect(windows.size()).toBe(1);
  });

  test('never drops a key that keeps calling, however old its first call is', () => {
    const windows = memoryWindows();
    let accepted = 0;
    for (let now_ms = 0; now_ms <= 300_000; now_ms += 1_000) {
      take(windows, 60, now_ms, `key_${now_ms}`);
      if (take(windows, 10, now_ms).ok) accepted += 1;
    }
    expect(accepted).toBe(50); // ten per minute and a millisecond, tried each second of five minutes
  });
});
