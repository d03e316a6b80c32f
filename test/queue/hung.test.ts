import { expect, it } from 'vitest';
import { openDatabase } from '../../src/db/database.ts';
import { testDatabase } from '../helpers/database.ts';
import { startMuteProxy } from '../helpers/mute-proxy.ts';
import { signal, testEngine, until } from './engine.ts';

const every_ms = 200;

it('a scheduled job that hangs is taken from its node and runs again, although that node reports itself alive', async ({
  onTestFinished,
}) => {
  const database = await testDatabase();
  const hung = await testEngine(database.db, []);
  const other = await testEngine(database.db, []);
  onTestFinished(async () => {
    await Promise.all([hung.stop(), other.stop()]);
    await database.drop();
  });
  const begun = signal();
  let runs = 0;
  let begins = 0;
  const hangAtFirst = () => {
    begun.resolve();
    return ++begins === 1 ? new Promise<void>(() => {}) : Promise.resolve(void (runs += 1));
  };
  await hung.schedule('upkeep', every_ms, hangAtFirst, { limit_ms: 1_000 });
  await begun.promise;
  await other.schedule('upkeep', every_ms, async () => void (runs += 1), { limit_ms: 1_000 });
  await until('it has run again', 60_000, () => runs > 2);
  const lost = { message: 'engine: a job of duty.upkeep was lost', reason: 'it was not over after 1 s' };
  const lines = hung.lines.map(({ message, details }) => ({ message, ...details }));
  expect(lines).toContainEqual(expect.objectContaining(lost));
});

it('a scheduled job whose connection goes silent fails and runs again, and so do heartbeats and fetches', async ({
  onTestFinished,
}) => {
  const database = await testDatabase();
  const proxy = await startMuteProxy(database.url);
  const db = openDatabase({ connection: { connectionString: proxy.url } });
  const engine = await testEngine(db, ['quick']);
  onTestFinished(async () => {
    await engine.stop();
    await db.close();
    await proxy.stop();
    await database.drop();
  });
  let runs = 0;
  let done = 0;
  await engine.schedule('upkeep', every_ms, async () => {
    await db.query('select 1');
    runs += 1;
  });
  engine.work('quick', { slots: 4, handler: async () => ((done += 1), 'done') });
  await until('the scheduled job has run', 60_000, () => runs > 2);
  await until('it has its connections, the one that listens among them', 60_000, () => proxy.open() > 3);
  expect(proxy.mute('all')).toBeGreaterThan(3);
  const runs_before = runs;
  await engine.send(database.db, 'quick', {});
  await until('the scheduled job runs again', 60_000, () => runs > runs_before + 2);
  await until('a job that was sent meanwhile is done', 60_000, () => done === 1);
});
