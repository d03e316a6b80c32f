import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Job } from '../../src/queue/queue.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { countJobs, deferEarlier, signal, testEngine, until, watchStandstills } from './engine.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(() => database.drop());

async function sendMany(queue: string, count: number): Promise<void> {
  await database.db.query(
    `select engine_send($1, jsonb_build_object('number', i)) from generate_series(1, $2::int) i`,
    [queue, count],
  );
}

describe.concurrent('a worker', () => {
  it('lets a healthy job pass 100 hanging ones of the same fetch', async () => {
    const engine = await testEngine(database.db, ['hanging']);
    await sendMany('hanging', 100);
    await engine.send(database.db, 'hanging', { healthy: true });
    const healthy = signal();
    let hanging = 0;
    engine.work('hanging', {
      slots: 101,
      handler: async (job) => {
        if (job.data['healthy']) {
          healthy.resolve();
          return 'done';
        }
        hanging += 1;
        await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
        throw job.signal.reason;
      },
    });
    await healthy.promise; // the others never end
    await until('the healthy job is gone', 60_000, async () => (await countJobs(database.db, 'hanging')) === 100);
    expect(hanging).toBe(100);
    await engine.stop({ grace_ms: 0 });
    expect(engine.lines).toEqual([]);
  });

  it('never runs a job twice at once, or again after it is done, on two nodes', async () => {
    const engines = [await testEngine(database.db, ['shared']), await testEngine(database.db, ['shared'])];
    const running = new Set<unknown>();
    const runs = new Map<unknown, number>();
    const per_node = [0, 0];
    const begun = [signal(), signal()];
    const both_have_begun = Promise.all(begun.map(({ promise }) => promise));
    for (const [node, engine] of engines.entries()) {
      engine.work('shared', {
        slots: 16,
        handler: async (job) => {
          const number = job.data['number'];
          expect(running.has(number)).toBe(false);
          running.add(number);
          begun[node]?.resolve();
          await both_have_begun; // or a quick one would leave nothing to the other
          await sleep(Math.random() * 20);
          running.delete(number);
          runs.set(number, (runs.get(number) ?? 0) + 1);
          per_node[node] = (per_node[node] ?? 0) + 1;
          return 'done';
        },
      });
    }
    await sendMany('shared', 1_000);
    engines[0]?.wake('shared');
    await until('all have run', 120_000, async () => (await countJobs(database.db, 'shared')) === 0);
    expect(runs.size).toBe(1_000);
    expect([...runs.values()].every((count) => count === 1)).toBe(true);
    expect(Math.min(...per_node)).toBeGreaterThanOrEqual(16); // a whole fetch; of the rest the quicker one has more
    await Promise.all(engines.map((engine) => engine.stop()));
    expect(engines.flatMap((engine) => engine.lines)).toEqual([]);
  });

  it('drains a queue by its index, whatever the statistics of the job table say', async () => {
    const other = await testDatabase(); // the statistics belong to the whole table
    const engine = await testEngine(other.db, ['known', 'drained']);
    await other.db.query(`select engine_send('known', '{}') from generate_series(1, 2000)`);
    await other.db.query('vacuum analyze pgboss.job_common');
    await other.db.query(`select engine_send('drained', '{}') from generate_series(1, 20000)`);
    let done = 0;
    engine.work('drained', {
      slots: 64,
      handler: async () => {
        done += 1;
        return 'done';
      },
    });
    // 1.5 s; a plan by joins, which those statistics suggest, takes 300 ms for each of 312 fetches: 94 s, or more on a busy machine.
    await until('it is empty', 80_000, async () => (await countJobs(other.db, 'drained')) === 0);
    expect(done).toBe(20_000);
    await engine.stop();
    await other.drop();
  });

  it('starts a job that another node sent at its wake, without a poll', async () => {
    const sender = await testEngine(database.db, ['woken']);
    const worker = await testEngine(database.db, ['woken']);
    let runs = 0;
    vi.useFakeTimers({ toFake: ['setInterval'] }); // this worker never polls
    worker.work('woken', {
      slots: 4,
      handler: async () => {
        runs += 1;
        return 'done';
      },
    });
    vi.useRealTimers();
    for (let round = 0; round < 20; round++) {
      await sender.send(database.db, 'woken', {});
      await until('it has run', 60_000, () => {
        sender.wake('woken'); // again: it may not listen yet
        return runs > round;
      });
    }
    expect(runs).toBe(20);
    await Promise.all([sender.stop(), worker.stop()]);
  });

  it('starts deferred jobs on time, never early and never more than 1 s late', async () => {
    using standstills = watchStandstills(database.db);
    const sender = await testEngine(database.db, ['timed']);
    const worker = await testEngine(database.db, ['timed']);
    const late_ms: number[] = [];
    worker.work('timed', {
      slots: 64,
      handler: async (job) => {
        late_ms.push(Date.now() - Number(job.data['due_at_ms']));
        return 'done';
      },
    });
    for (let number = 0; number < 60; number++) {
      const after_ms = Math.round(50 + Math.random() * 4_000);
      const node = number % 2 === 0 ? sender : worker; // the worker does not know the times of the sender's jobs
      const at = new Date(Date.now() + after_ms);
      await node.send(database.db, 'timed', { due_at_ms: at.getTime() }, number % 3 === 0 ? { at } : { after_ms });
    }
    await until('all have run', 60_000, () => late_ms.length === 60);
    expect(Math.min(...late_ms)).toBeGreaterThanOrEqual(-1); // Date.now() cuts the fraction off
    expect(Math.max(...late_ms)).toBeLessThanOrEqual(2_000 + standstills.longestMs()); // twice what is promised
    await Promise.all([sender.stop(), worker.stop()]);
  });

  it('runs a job again after the time that its handler returns, without counting an attempt', async () => {
    using standstills = watchStandstills(database.db);
    const engine = await testEngine(database.db, ['polled']);
    const runs: { at_ms: number; attempt: number; id: string }[] = [];
    engine.work('polled', {
      slots: 2,
      handler: async (job) => {
        runs.push({ at_ms: performance.now(), attempt: job.attempt, id: job.id });
        return runs.length < 6 ? { again_after_ms: 120 } : 'done';
      },
    });
    await engine.send(database.db, 'polled', {}, { key: 'task_1' });
    engine.wake('polled');
    await until('it is done', 60_000, async () => runs.length > 0 && (await countJobs(database.db, 'polled')) === 0);
    expect(runs.map((run) => run.attempt)).toEqual([0, 0, 0, 0, 0, 0]);
    const gaps_ms = runs.slice(1).map((run, index) => run.at_ms - (runs[index]?.at_ms ?? 0));
    expect(Math.min(...gaps_ms)).toBeGreaterThanOrEqual(120);
    expect(medianOf(gaps_ms)).toBeLessThan(400 + standstills.longestMs()); // the poll alone: up to 620
    await engine.stop();
  });

  it('defers a job unchanged: its failures count on, under an id of its own, until a node starts', async () => {
    const engine = await testEngine(database.db, ['put-back']);
    const runs: { attempt: number; id: string }[] = [];
    const begun = signal();
    const handler = async (job: Job) => {
      if (job.data['earlier']) {
        begun.resolve();
        return 'done' as const;
      }
      runs.push({ attempt: job.attempt, id: job.id });
      if (runs.length === 5) return 'done' as const;
      if (runs.length === 4) return { defer_ms: 600_000 };
      if (runs.length === 2) return { defer_ms: 10 };
      throw new Error('fails');
    };
    await deferEarlier(engine, database.db, 'put-back');
    engine.work('put-back', { slots: 1, handler });
    await begun.promise;
    await engine.send(database.db, 'put-back', {}, { key: 'k' });
    engine.wake('put-back');
    const deferJob = () =>
      database.db.query(
        `select output ->> 'message' as reason, id <> $1::uuid as renamed from pgboss.job
          where name = 'put-back' and start_after > now() + interval '1 minute'`,
        [runs[3]?.id],
      );
    await until('it is deferred', 60_000, async () => runs.length === 4 && (await deferJob()).length === 1);
    expect(await deferJob()).toEqual([{ reason: 'fails', renamed: true }]);
    await engine.stop();
    const next = await testEngine(database.db, ['put-back']);
    next.work('put-back', { slots: 1, handler });
    await until('it is done', 60_000, async () => (await countJobs(database.db, 'put-back')) === 0);
    expect(runs.map(({ attempt }) => attempt)).toEqual([0, 1, 1, 2, 2]);
    await next.stop();
  });

  it('takes the oldest job first, and deferred ones after all others unless they are promoted', async () => {
    const engine = await testEngine(database.db, ['aged']);
    const begun: unknown[] = [];
    const has_begun = signal();
    const free = signal();
    await deferEarlier(engine, database.db, 'aged');
    engine.work('aged', {
      slots: 1,
      handler: async ({ data: { name, earlier } }) => {
        if (earlier) {
          has_begun.resolve();
          return 'done';
        }
        const is_first = !begun.includes(name);
        begun.push(name);
        if (is_first && (name === 'old' || name === 'called')) return { defer_ms: 600_000 };
        if (name === 'long') await free.promise;
        return 'done';
      },
    });
    const send = async (name: string) => {
      await engine.send(database.db, 'aged', { name }, { key: name });
      engine.wake('aged');
    };
    await has_begun.promise;
    await send('old');
    await send('called');
    await until('both were begun', 60_000, () => begun.length === 2);
    await send('long');
    await until('the slot is taken', 60_000, () => begun.includes('long'));
    await send('new');
    await engine.promote('aged', ['called']);
    const due = `update pgboss.job set start_after = pgboss.job_now() where name = 'aged' and singleton_key = 'old'`;
    await database.db.query(due);
    free.resolve();
    await until('all are done', 60_000, async () => (await countJobs(database.db, 'aged')) === 0);
    expect(begun.filter((name) => name !== 'long')).toEqual(['old', 'called', 'called', 'new', 'old']);
    await engine.stop();
  });

  it('tries a job that threw again after 1 s, then 2 s, and counts', async () => {
    using standstills = watchStandstills(database.db);
    const engine = await testEngine(database.db, ['thrown']);
    const runs: { at_ms: number; attempt: number }[] = [];
    engine.work('thrown', {
      slots: 1,
      handler: async (job) => {
        runs.push({ at_ms: performance.now(), attempt: job.attempt });
        if (job.attempt < 2) throw new Error(`attempt ${job.attempt} failed`);
        return 'done';
      },
    });
    await engine.send(database.db, 'thrown', {});
    engine.wake('thrown');
    await until('it is done', 60_000, async () => runs.length > 2 && (await countJobs(database.db, 'thrown')) === 0);
    expect(runs.map((run) => run.attempt)).toEqual([0, 1, 2]);
    const [first_ms = 0, second_ms = 0] = runs.slice(1).map((run, index) => run.at_ms - (runs[index]?.at_ms ?? 0));
    expect(first_ms).toBeGreaterThanOrEqual(749);
    expect(first_ms).toBeLessThan(4_000 + standstills.longestMs());
    expect(second_ms).toBeGreaterThanOrEqual(1_499);
    expect(second_ms).toBeLessThan(6_000 + standstills.longestMs());
    const lines = engine.lines.map((line) => line.message);
    expect(new Set(lines)).toEqual(new Set(['engine: a job of thrown failed']));
    expect(lines.length).toBeLessThanOrEqual(first_ms < 8_000 ? 1 : 2); // the second within 10 s is left out
    await engine.stop();
  });

  it('aborts a lost job, ignores its outcome, and waits for it before the next run', async () => {
    const engine = await testEngine(database.db, ['lost']);
    const events: string[] = [];
    const isBack = async () => {
      const back = `select from pgboss.job where name = 'lost' and retry_count = 1`;
      return (await database.db.query(back)).length === 1;
    };
    engine.work('lost', {
      slots: 5,
      handler: async (job) => {
        events.push(`begin ${job.attempt}`);
        if (job.attempt === 0) {
          await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
          await until('the job is back in the queue', 60_000, isBack); // it is slow to end
        }
        events.push(`end ${job.attempt}`);
        return 'done';
      },
    });
    await engine.send(database.db, 'lost', {});
    engine.wake('lost');
    await until('it runs', 60_000, () => events.length === 1);
    // Said until it is found: the worker's own heartbeat may come before the look that finds it lost.
    const fall_silent = `update pgboss.job set heartbeat_on = now() - interval '1 minute'
      where name = 'lost' and state = 'active' and retry_count = 0`;
    await until('it is done', 60_000, async () => {
      await database.db.query(fall_silent);
      return (await countJobs(database.db, 'lost')) === 0;
    });
    expect(events).toEqual(['begin 0', 'end 0', 'begin 1', 'end 1']);
    expect(engine.lines.map((line) => line.message)).toEqual(['engine: a job of lost was lost']);
    await engine.stop();
  });
});

describe.concurrent('a stop of a worker', () => {
  it('lets jobs end, aborts the others, and returns unfinished ones to the queue at once', async () => {
    const first = await testEngine(database.db, ['stopped']);
    const begun = new Set<unknown>();
    first.work('stopped', {
      slots: 4,
      handler: async (job) => {
        begun.add(job.data['number']);
        if (job.data['number'] === 1) await sleep(100); // ends by itself
        if (job.data['number'] === 2) await untilAborted(job); // ends when told to
        if (job.data['number'] === 3) await new Promise(() => {}); // never ends
        return 'done';
      },
    });
    await sendMany('stopped', 3);
    first.wake('stopped');
    await until('all run', 60_000, () => begun.size === 3);
    using standstills = watchStandstills(database.db);
    const stopped_at_ms = performance.now();
    await first.stop({ timeout_ms: 6_000, grace_ms: 400 }); // a part of it is there to write down what is not done
    expect(performance.now() - stopped_at_ms).toBeLessThan(8_000 + standstills.longestMs());

    const second = await testEngine(database.db, ['stopped']);
    const taken: Job[] = [];
    second.work('stopped', {
      slots: 4,
      handler: async (job) => {
        taken.push(job);
        return 'done';
      },
    });
    await until('they are taken', 60_000, () => taken.length === 2);
    // Not after a heartbeat of 10 s: that would be another attempt.
    expect(taken.map((job) => [job.data['number'], job.attempt]).toSorted()).toEqual([
      [2, 0],
      [3, 0],
    ]);
    await second.stop();
    expect(await countJobs(database.db, 'stopped')).toBe(0);
    expect([...first.lines, ...second.lines]).toEqual([]);
  });

  it('is quick and final when nothing runs', async () => {
    const engine = await testEngine(database.db, ['quiet']);
    engine.work('quiet', { slots: 4, handler: async () => 'done' });
    using standstills = watchStandstills(database.db);
    const begun_at_ms = performance.now();
    await Promise.all([engine.stop(), engine.stop()]);
    expect(performance.now() - begun_at_ms).toBeLessThan(3_000 + standstills.longestMs());
    expect(() => engine.work('late', { slots: 1, handler: async () => 'done' })).toThrow('the engine has stopped');
  });
});

function medianOf(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

async function untilAborted(job: Job): Promise<void> {
  await new Promise((resolve) => job.signal.addEventListener('abort', resolve));
  throw job.signal.reason;
}

describe.concurrent('a scheduled job', () => {
  it('runs on one node at a time, at its interval, and continues after a failure', async () => {
    using standstills = watchStandstills(database.db);
    const engines = [await testEngine(database.db, []), await testEngine(database.db, [])];
    let running = 0;
    const begun_ms: number[] = [];
    for (const engine of engines) {
      await engine.schedule('tidy', 200, async () => {
        running += 1;
        expect(running).toBe(1);
        begun_ms.push(performance.now());
        await sleep(60);
        running -= 1;
        if (begun_ms.length === 3) throw new Error('the third time fails');
      });
    }
    await until('it ran eight times', 60_000, () => begun_ms.length >= 8);
    await Promise.all(engines.map((engine) => engine.stop()));
    const gaps_ms = begun_ms.slice(1).map((at_ms, index) => at_ms - (begun_ms[index] ?? 0));
    expect(Math.min(...gaps_ms)).toBeGreaterThanOrEqual(199);
    expect(medianOf(gaps_ms)).toBeLessThan(1_500 + standstills.longestMs());
    expect(engines.flatMap((engine) => engine.lines.map((line) => line.message))).toEqual([
      'engine: the scheduled job tidy failed',
    ]);
  });

  it('that was deferred by a longer interval than it has now is pulled forward', async () => {
    const first = await testEngine(database.db, []);
    let runs = 0;
    await first.schedule('monthly', 30 * 86_400_000, async () => {
      runs += 1;
    });
    await until('it ran', 60_000, () => runs === 1);
    await first.stop();
    const second = await testEngine(database.db, []);
    await second.schedule('monthly', 300, async () => {
      runs += 1;
    });
    await until('it ran again', 60_000, () => runs >= 2);
    await second.stop();
    expect(await countJobs(database.db, 'duty.monthly')).toBe(1);
  });
});
