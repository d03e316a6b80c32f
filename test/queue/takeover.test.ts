import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, type TestContext } from 'vitest';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { countJobs, testEngine, until, watchStandstills } from './engine.ts';

type Begun = { data: Record<string, unknown>; attempt: number };

const script = fileURLToPath(new URL('worker-process.ts', import.meta.url));

function startWorker(url: string, queue: string, slots: number, onBegun: (begun: Begun) => void): ChildProcess {
  const child = fork(script, [url, queue, String(slots), '10'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  child.on('message', (message) => {
    if (message !== 'ready') onBegun(message as Begun);
  });
  return child;
}

/** A database of its own, because both tests run at once, and children that do not outlive the test. */
async function prepare({
  onTestFinished,
}: TestContext): Promise<{ database: TestDatabase; children: Set<ChildProcess> }> {
  const database = await testDatabase();
  const children = new Set<ChildProcess>();
  onTestFinished(async () => {
    for (const child of children) child.kill('SIGKILL');
    await database.drop();
  });
  return { database, children };
}

describe.concurrent('a worker', () => {
  it('that is killed with -9 loses its jobs to another within 15 s, with 10,000 jobs in the table', async (context) => {
    const { database, children } = await prepare(context);
    using standstills = watchStandstills(database.db);
    const engine = await testEngine(database.db, ['taken', 'crowd']);
    await database.db.query(
      `select engine_send('crowd', jsonb_build_object('number', i), now() + interval '1 hour') from generate_series(1, 10000) i`,
    );
    const taken_ms: number[] = [];
    const attempts = new Set<number>();
    let killed_at_ms = 0;
    engine.work('crowd', { slots: 16, handler: async () => 'done' });
    await database.db.query(`select engine_send('taken', '{}'::jsonb) from generate_series(1, 20)`);
    let begun = 0;
    const child = startWorker(database.url, 'taken', 20, () => (begun += 1));
    children.add(child);
    await until('the worker has all 20 jobs', 120_000, () => begun === 20);
    engine.work('taken', {
      slots: 32,
      handler: async (job) => {
        attempts.add(job.attempt);
        taken_ms.push(performance.now() - killed_at_ms);
        return 'done';
      },
    });
    killed_at_ms = performance.now();
    const [heard] = await database.db.query<{ silent_ms: number }>(
      `select (extract(epoch from clock_timestamp() - min(heartbeat_on)) * 1000)::float8 as silent_ms
         from pgboss.job where name = 'taken' and state = 'active'`,
    );
    child.kill('SIGKILL');
    await until('all are done', 120_000, async () => (await countJobs(database.db, 'taken')) === 0);
    expect(taken_ms).toHaveLength(20);
    expect(Math.max(...taken_ms)).toBeLessThan(20_000 + standstills.longestMs());
    // Not stolen from a worker that might live: it has been silent for the ten seconds of its heartbeat.
    expect(Math.min(...taken_ms) + (heard?.silent_ms ?? 0)).toBeGreaterThan(9_000);
    expect([...attempts]).toEqual([1]);
    await engine.stop();
    expect(engine.lines).toEqual([]);
  });

  /** A job lasts longer than its heartbeat, which is longer than a machine stands still between two of them, 3 s apart. */
  const heartbeat_s = 16;
  const long_job_ms = 20_000;

  it('that is alive keeps a long job', async (context) => {
    const { database } = await prepare(context);
    const queues = [{ name: 'long', heartbeat_s }];
    const engines = [await testEngine(database.db, [], { queues }), await testEngine(database.db, [], { queues })];
    let begun = 0;
    for (const engine of engines) {
      engine.work('long', {
        slots: 4,
        handler: async (job) => {
          begun += 1;
          await sleep(long_job_ms, undefined, { signal: job.signal });
          return 'done';
        },
      });
    }
    await engines[0]?.send(database.db, 'long', {});
    await until('it is done', 120_000, async () => (await countJobs(database.db, 'long')) === 0);
    expect(begun).toBe(1);
    await Promise.all(engines.map((engine) => engine.stop()));
    expect(engines.flatMap((engine) => engine.lines)).toEqual([]);
  });

  it('that is killed ten times over the same job is followed by an eleventh, which knows it and ends it', async (context) => {
    const { database, children } = await prepare(context);
    const engine = await testEngine(database.db, ['deadly'], { supervision: { supervise_s: 1, monitor_s: 1 } });
    const attempts: number[] = [];
    const startAnother = () => {
      const child = startWorker(database.url, 'deadly', 1, ({ attempt }) => {
        attempts.push(attempt);
        if (attempt >= 10) return;
        child.kill('SIGKILL');
        startAnother();
      });
      children.add(child);
    };
    startAnother();
    startAnother(); // a spare one, ready when the first has died
    const id = await engine.send(database.db, 'deadly', {});
    // Real deaths and the real supervisor, but a heartbeat of 1 s where pg-boss allows no less than 10:
    // ten times ten seconds would be too long for a test. The live worker touches every 3 s, so it
    // would lose its claim too; it never holds one for that long.
    await database.db.query('update pgboss.job set heartbeat_seconds = 1 where id = $1', [id]);
    engine.wake('deadly');
    await until('the job is done', 250_000, async () => (await countJobs(database.db, 'deadly')) === 0);
    // What a worker says may come after the word of the next one; and an eleventh that is slow has a twelfth behind it.
    const in_turn = attempts.toSorted((one, other) => one - other);
    expect(in_turn.slice(0, 11)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    await engine.stop();
  });
});
