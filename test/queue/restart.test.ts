import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import { startEmbedded } from '../../src/embedded-postgres/embedded.ts';
import { migrate } from '../../src/db/migrate.ts';
import { ask, removeFolder, clusterFolder } from '../helpers/embedded.ts';
import { countJobs, testEngine, until, watchStandstills } from './engine.ts';

it('the queue continues by itself when PostgreSQL is killed with -9 under load, and loses nothing', async () => {
  const folder = clusterFolder();
  const embedded = await startEmbedded({ data_dir: join(folder, 'data') });
  const db = openDatabase({ connection: embedded.connection });
  onTestFinished(async () => {
    await db.close();
    await embedded.stop();
    removeFolder(folder);
  });
  await migrate(db);
  await db.query('create table effects (number int primary key, runs int not null)');
  const opened_at_ms = performance.now();
  const engine = await testEngine(db, ['steady']);
  let last_run_at_ms = 0;
  engine.work('steady', {
    slots: 32,
    handler: async (job) => {
      await db.query('insert into effects values ($1, 1) on conflict (number) do update set runs = effects.runs + 1', [
        job.data['number'],
      ]);
      last_run_at_ms = performance.now();
      return 'done';
    },
  });

  const sent: number[] = [];
  let sending = true;
  const load = (async () => {
    for (let number = 0; sending; number++) {
      const id = await db.tx((tx) => engine.send(tx, 'steady', { number })).catch(() => undefined);
      if (id !== undefined) sent.push(number);
      engine.wake('steady');
      await sleep(2);
    }
  })();
  await until('a load is under way', 60_000, () => sent.length > 30);
  const sent_before = sent.length;
  const { pid, connection } = embedded;
  const answers = () =>
    ask(connection, 'select 1').then(
      () => true,
      () => false,
    );
  process.kill(pid, 'SIGKILL');
  // Or it is back already, and nobody looked while it was away.
  await until('the server is gone', 60_000, async () => !(await answers()) || embedded.pid !== pid);
  await until('the server is back', 60_000, answers);
  const back_at_ms = performance.now();
  await until('jobs run again', 60_000, () => last_run_at_ms > back_at_ms);
  const sent_by_then = sent.length;
  await until('the load goes on', 60_000, () => sent.length > sent_by_then + 30);
  sending = false;
  await load;
  expect(sent_before).toBeGreaterThan(30);
  expect(sent.length).toBeGreaterThan(sent_before);
  // A claim whose answer was lost with the server waits for its heartbeat of 10 s.
  await until('every job is done', 120_000, async () => (await countJobs(db, 'steady')) === 0);
  const done = await db.query<{ number: number }>('select number from effects');
  const numbers = new Set(done.map((row) => row.number));
  expect(sent.filter((number) => !numbers.has(number))).toEqual([]);
  expectFewLines(engine.lines, performance.now() - opened_at_ms);

  // And a stop without a database keeps its time limit.
  await engine.send(db, 'steady', { number: -1 });
  await embedded.stop();
  using standstills = watchStandstills();
  const stopped_at_ms = performance.now();
  await engine.stop({ timeout_ms: 3_000 });
  expect(performance.now() - stopped_at_ms).toBeLessThan(6_000 + standstills.longestMs());
});

/** Expects a line per kind in ten seconds, not one per failure. */
function expectFewLines(lines: readonly { message: string }[], lasted_ms: number): void {
  const kinds = new Set(lines.map(({ message }) => message)).size;
  expect(kinds).toBeLessThan(20);
  expect(lines.length).toBeLessThanOrEqual(kinds * (1 + Math.floor(lasted_ms / 10_000)));
}
