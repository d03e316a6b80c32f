import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it, type TestContext } from 'vitest';
import { clockSkew, openDatabaseClock } from '../../src/db/clock.ts';
import { openDatabase } from '../../src/db/database.ts';
import { testClock } from '../helpers/clock.ts';
import { testDatabase } from '../helpers/database.ts';
import { startMuteProxy } from '../helpers/mute-proxy.ts';
import { setClock } from '../helpers/wrong-clock.ts';

afterEach(() => setClock(0));

async function setStage({ onTestFinished }: Pick<TestContext, 'onTestFinished'>) {
  const database = await testDatabase({ state: 'empty' });
  const proxy = await startMuteProxy(database.url);
  const db = openDatabase({ connection: { connectionString: proxy.url } });
  const clock = await openDatabaseClock(db);
  onTestFinished(async () => {
    clock.close();
    await db.close();
    await proxy.stop();
    await database.drop();
  });
  /** By how much the clock is beside the time of the database, which is read between two looks at it. */
  const offBy_ms = async () => {
    const before_ms = clock.now();
    const [row] = await database.db.query<{ now: Date }>('select clock_timestamp() as now');
    const now_ms = row?.now.getTime() ?? Number.NaN;
    return Math.max(0, before_ms - now_ms, now_ms - clock.now());
  };
  return { clock, offBy_ms, proxy };
}

/** A busy machine is slow in the middle of a look at the time of the database, too; twenty minutes are more. */
const off_ms_max = 60_000;

it('a node has the time of the database, whatever the clock of its system says', async (context) => {
  setClock(20);
  const { offBy_ms } = await setStage(context);
  expect(await offBy_ms()).toBeLessThan(off_ms_max);
  for (const minutes of [-20, 0, 20]) {
    setClock(minutes);
    expect(await offBy_ms()).toBeLessThan(off_ms_max);
  }
});

/** A look at the time of the database, each 5 s, falls into it. */
const outage_ms = 5_500;

it('the time of a node goes on while the database is away', async (context) => {
  const { clock, offBy_ms, proxy } = await setStage(context);
  proxy.refuse(true);
  const before_ms = clock.now();
  await sleep(outage_ms);
  expect(clock.now() - before_ms).toBeGreaterThanOrEqual(outage_ms - 100);
  expect(await offBy_ms()).toBeLessThan(off_ms_max);
});

it('a clock that is right is not beside that of the database because its answer is late, and a wrong one is', async ({
  onTestFinished,
}) => {
  const { db, drop } = await testDatabase({ state: 'empty' });
  onTestFinished(drop);
  const clock = testClock();
  const query = async <T>(...question: Parameters<typeof db.query>) => {
    const rows = await db.query<T>(...question);
    clock.pass(600_000); // as if it had taken ten minutes
    return rows;
  };
  expect(await clockSkew({ query }, clock)).toBe(0);
  expect(await clockSkew(db, clock)).toBeGreaterThan(500_000); // it is ten minutes ahead by now
});
