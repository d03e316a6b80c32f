import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import type { Engine, Job } from '../../src/queue/queue.ts';
import { FairQueue } from '../../src/tasks/fair-queue.ts';
import { Semaphore } from '../../src/concurrency/semaphore.ts';
import { testEngine, until } from '../queue/engine.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

/** The order in which accounts with more tasks than places get theirs. */

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

type Work = (task_id: string, job: Job) => Promise<void>;

const slotsOf = (bound: number) => new Semaphore({ name: 'slots', bound, key_bound: 'fair' });

/** Works on a queue as worker.ts does; `account` has half of the slots, and each job takes as long as `work`. */
async function inTurns(queue: string, slots: number, work: Work) {
  const engine = await testEngine(database.db, [queue]);
  const begun: string[] = [];
  const fair_queue = new FairQueue(engine, queue, slotsOf(slots), async (job) => {
    const task_id = String(job.data['task_id']);
    begun.push(task_id);
    await work(task_id, job);
    return 'done';
  });
  engine.work(queue, { slots, handler: (job) => fair_queue.take(job) });
  const stop = async () => {
    fair_queue.stop();
    await engine.stop({ grace_ms: 0 });
  };
  return { engine, begun, stop };
}

async function send(engine: Engine, queue: string, account_id: string, task_id: string): Promise<void> {
  await engine.send(database.db, queue, { account_id, task_id }, { key: task_id });
  engine.wake(queue);
}

async function sendMany(queue: string, account_id: string, count: number): Promise<void> {
  await database.db.query(
    `select count(engine_send($1, jsonb_build_object('account_id', $2::text, 'task_id', $2 || i), null, $2 || i))
       from generate_series(0, $3::int - 1) i`,
    [queue, account_id, count],
  );
}

async function untilAborted({ signal }: Job): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort');
}

it('tasks of a busy account start in the order of their creation', async () => {
  const { engine, begun, stop } = await inTurns('order', 8, () => sleep(100));
  const names = Array.from({ length: 24 }, (_, n) => `a${n}`);
  for (const name of names) {
    await send(engine, 'order', 'a', name);
    await sleep(5); // the last come when places fall free
  }
  await until('all have begun', 60_000, () => begun.length === names.length); // 0.8 s: 24 of 100 ms in four places
  await stop();
  expect(begun).toEqual(names);
});

/** In which those who find no place have been put back, and have looked again. */
const backlog_ms = 2_000;

it('a backlog of one account delays no task of another account', async () => {
  const { engine, begun, stop } = await inTurns('backlog', 64, (task_id, job) =>
    task_id === 'b' ? Promise.resolve() : untilAborted(job),
  );
  await sendMany('backlog', 'a', 3_000);
  engine.wake('backlog');
  await until('a has its places', 30_000, () => begun.length === 32);
  await sleep(backlog_ms);
  await send(engine, 'backlog', 'b', 'b');
  await until('b has begun', 30_000, () => begun.includes('b')); // 20 ms; never, when all looked again after 1 to 10 s
  expect(begun).toHaveLength(33);
  await stop();
});

/** For so long a task waits for a slot before it is put back. */
const slot_timeout_ms = 250;

/** For so long a job that was put back may not have been written down yet. */
const unwritten_ms = 1_000;

it('a free slot goes to the next task within moments, also when the first in the queue is gone', async () => {
  const places: (() => void)[] = [];
  const { engine, begun, stop } = await inTurns('gone', 4, () => new Promise((free) => places.push(free)));
  for (const name of ['a0', 'a1', 'a2', 'a3', 'a4']) {
    await send(engine, 'gone', 'a', name);
    await sleep(25); // of one millisecond there is no order
  }
  const countDeferred = async () => {
    const rows = await database.db.query<{ count: bigint }>(
      `select count(*) from pgboss.job where name = 'gone' and start_after > pgboss.job_now()`,
    );
    return Number(rows[0]?.count);
  };
  await until('three stand in line', 30_000, async () => (await countDeferred()) === 3);
  // By themselves they look again after the test.
  await database.db.query(
    `update pgboss.job set start_after = start_after + interval '1 hour' where name = 'gone' and start_after > pgboss.job_now()`,
  );
  await sleep(unwritten_ms);
  await database.db.query(`delete from pgboss.job where name = 'gone' and singleton_key = 'a2'`);
  places[0]?.();
  await until('the second has begun', 60_000, () => begun.length === 3); // 130 ms
  places[1]?.();
  await until('the third has begun', 60_000, () => begun.length === 4); // 70 ms
  expect(begun).toEqual(['a0', 'a1', 'a3', 'a4']);
  for (const free of places) free();
  await stop();
});

it('a slot is reserved for the task that is called, also while its job is deferred, and no task is called after the stop', async () => {
  const promoted: string[][] = [];
  const promote = async (_queue: string, keys: readonly string[]) => {
    promoted.push([...keys]);
    return new Set(promoted.length === 1 ? [] : keys); // at first it is not there: not written down yet
  };
  const places: (() => void)[] = [];
  const fair_queue = new FairQueue({ promote }, 'q', slotsOf(4), async () => {
    await new Promise<void>((free) => places.push(free));
    return 'done';
  });
  const take = (task_id: string) => {
    const data = { account_id: 'a', task_id };
    return fair_queue.take({ id: task_id, queue: 'q', data, attempt: 0, signal: AbortSignal.timeout(60_000) });
  };
  // The slot is kept for a second: a time that passes only when this test says so.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const running = [take('a0'), take('a1')];
  const deferred = { defer_ms: expect.any(Number) };
  const waiting = Promise.all([take('a2'), take('a3')]);
  vi.advanceTimersByTime(slot_timeout_ms);
  expect(await waiting).toEqual([deferred, deferred]);
  places[0]?.();
  await expect.poll(() => promoted).toEqual([['a2'], ['a2']]);
  expect(await Promise.all([take('a4'), take('a3')])).toEqual([deferred, deferred]); // at once, and no place
  running.push(take('a2'));
  expect(places).toHaveLength(3);
  places[1]?.();
  fair_queue.stop();
  for (const free of places) free();
  expect(await Promise.all(running)).toEqual(['done', 'done', 'done']);
  await sleep(100);
  expect(promoted).toHaveLength(2);
});
