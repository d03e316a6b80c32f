import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { ThrottledLog } from '../../src/queue/throttled-log.ts';
import type { Claim, Handler, Settlement } from '../../src/queue/job.ts';
import { Slots } from '../../src/queue/slots.ts';

function claim(id: string, heartbeat_s = 10): Claim {
  return { id, retry_count: 0, heartbeat_s, data: {} };
}

type Fetch = (count: number) => Promise<Claim[]>;

/** Slots over a queue in memory; `settled` is what the database would have been told. */
function slotsOver(fetch: Fetch, slots: number, handler: Handler) {
  const settled: [string, Settlement['fate']][] = [];
  const problems: string[] = [];
  const note = (_details: object, message: string) => void problems.push(message);
  const over = new Slots({
    queue: 'q',
    slots,
    handler,
    fetch: (_queue, count) => fetch(count),
    settle: async (_queue, { id }, { fate }) => void settled.push([id, fate]),
    throttled_log: new ThrottledLog({ warn: note, error: note }),
  });
  return { slots: over, settled, problems };
}

/** Hands out `waiting` a millisecond later, and notes how many were asked for. */
function fetchFrom(waiting: Claim[], counts: number[] = []): Fetch {
  return async (count) => {
    counts.push(count);
    await sleep(1);
    return waiting.splice(0, count);
  };
}

const done: Handler = async () => 'done';

describe('the slots of a queue', () => {
  it('request as many jobs as are free, again while there may be more, and then no more', async () => {
    const counts: number[] = [];
    const { slots, settled } = slotsOver(fetchFrom([claim('a'), claim('b'), claim('c')], counts), 2, done);
    slots.wake();
    await expect.poll(() => settled.map(([id]) => id)).toEqual(['a', 'b', 'c']);
    await slots.idle();
    await sleep(20);
    expect(counts[0]).toBe(2);
    expect(counts.length).toBeLessThanOrEqual(3);
  });

  it('do not lose a wake that comes during a fetch', async () => {
    const waiting: Claim[] = [];
    const { slots, settled } = slotsOver(fetchFrom(waiting), 2, done);
    slots.wake();
    waiting.push(claim('late'));
    slots.wake();
    await expect.poll(() => settled).toEqual([['late', 'done']]);
  });

  it('drop a job when the database was silent for a heartbeat, and report nothing of its outcome', async () => {
    const aborted: unknown[] = [];
    const looked = Promise.withResolvers<void>();
    const { slots, settled, problems } = slotsOver(
      fetchFrom([claim('silent', 20), claim('fresh', 60)]),
      2,
      async (job) => {
        if (job.id === 'fresh') await looked.promise;
        else await once(job.signal, 'abort').then(() => aborted.push(job.id));
        return 'done';
      },
    );
    slots.wake();
    await expect.poll(() => slots.held().length).toBe(2);
    slots.loseSilent();
    expect(slots.held().length).toBe(2);
    const now_ms = performance.now();
    onTestFinished(() => void vi.restoreAllMocks());
    vi.spyOn(performance, 'now').mockReturnValue(now_ms + 30_000);
    slots.loseSilent();
    looked.resolve();
    await slots.idle();
    expect(aborted).toEqual(['silent']);
    expect(settled).toEqual([['fresh', 'done']]);
    expect(problems).toEqual(['engine: a job of q was lost']);
  });

  it('log a fetch that fails, and fetch again at the next wake', async () => {
    const healthy = fetchFrom([claim('a')]);
    let broken = true;
    const fetch: Fetch = async (count) => {
      if (broken) throw new Error('no database');
      return healthy(count);
    };
    const { slots, settled, problems } = slotsOver(fetch, 1, done);
    slots.wake();
    await expect.poll(() => problems).toEqual(['engine: jobs of q cannot be fetched']);
    broken = false;
    slots.wake();
    await expect.poll(() => settled[0]).toEqual(['a', 'done']);
    slots.close();
  });
});
