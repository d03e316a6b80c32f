// isolated: it moves the monotonic clock of its process
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import { dropUnusedCircuits, openRouteHealth, openRoutes, type RouteHealth } from '../../src/routing/health.ts';
import { elapse, testClock } from '../helpers/clock.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

/** Two nodes on one database; a node's knowledge of the others is at most a second old. */
describe('route health', () => {
  const clock = testClock();
  let database: TestDatabase;
  let here: RouteHealth;
  let there: RouteHealth;

  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    await database.db.query('delete from route_health');
    clock.stop('2031-03-01T12:00:00Z');
    here = openRouteHealth(database.db, clock);
    there = openRouteHealth(database.db, clock);
  });

  const refused = { cause: 'upstream_error' } as const;
  async function open(route: string, by = here): Promise<void> {
    for (let i = 0; i < 5; i++) await by.failed(route, 'one', refused);
    elapse(1_001);
  }
  const retryAt = async () => {
    const rows = await database.db.query<{ retry_at: Date }>('select retry_at from route_health');
    return rows.map(({ retry_at }) => retry_at.toISOString());
  };

  it('opens a route after five failures in a row, for all nodes within a second', async () => {
    await there.admit(['a'], 'one');
    for (let i = 0; i < 4; i++) await here.failed('a', 'one', refused);
    await here.succeeded('a', 'one');
    for (let i = 0; i < 4; i++) await here.failed('a', 'one', refused);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true });
    await here.failed('a', 'one', refused);
    const closed = { admitted: false, cause: 'upstream_error', retry_after_ms: 10_000 };
    expect(await here.admit(['a'], 'one')).toEqual(closed);
    expect(await there.admit(['a'], 'one')).toEqual({ admitted: true });
    elapse(1_001);
    expect(await there.admit(['a'], 'one')).toEqual(closed);
    expect(await there.admit(['a', 'b'], 'one')).toEqual({ admitted: true });
  });

  const isAdmitted = async (account_id: string, by = here) => (await by.admit(['a'], account_id)).admitted;

  it("an account's failures, of any kind and number, close a route for nobody else", async () => {
    for (let i = 0; i < 11; i++) await here.failed('a', 'one', refused);
    await here.failed('a', 'one', { ...refused, pause_ms: 60_000 });
    expect(await isAdmitted('one')).toBe(false);
    expect(await isAdmitted('two')).toBe(true);
    elapse(1_001);
    expect(await isAdmitted('one', there)).toBe(false);
    expect(await isAdmitted('two', there)).toBe(true);
  });

  it('a route is closed for all when two accounts failed, and most of those that used it in the last minute', async () => {
    await here.succeeded('a', 'three');
    await here.succeeded('a', 'four');
    for (let i = 0; i < 6; i++) for (const account of ['one', 'two']) await here.failed('a', account, refused);
    expect(await isAdmitted('five')).toBe(true); // two of four are not most of them
    clock.pass(60_001);
    for (const account of ['one', 'two']) await here.failed('a', account, refused);
    expect(await isAdmitted('five')).toBe(false);
    elapse(1_001);
    expect(await isAdmitted('six', there)).toBe(false);
  });

  it('accounts that another node found failing count as well', async () => {
    for (let i = 0; i < 5; i++) await there.failed('a', 'one', refused);
    await here.admit(['a'], 'two');
    for (let i = 0; i < 4; i++) await here.failed('a', 'two', refused);
    expect(await isAdmitted('three')).toBe(true);
    await here.failed('a', 'two', refused);
    expect(await isAdmitted('three')).toBe(false);
  });

  const closeForAll = async () => {
    for (let i = 0; i < 5; i++) for (const account of ['one', 'two']) await here.failed('a', account, refused);
    elapse(1_001);
    expect(await isAdmitted('three')).toBe(false);
  };

  it('a success of another account opens it for all others, not for those that failed', async () => {
    await closeForAll();
    await here.succeeded('a', 'three'); // was under way
    expect(await isAdmitted('three')).toBe(true);
    expect(await isAdmitted('four')).toBe(true);
    expect(await isAdmitted('one')).toBe(false);
  });

  it('whoever did not bring the pause about may probe first', async () => {
    await closeForAll();
    clock.pass(5_000);
    elapse(1_001);
    expect(await isAdmitted('one')).toBe(false);
    expect(await here.admit(['a'], 'three')).toEqual({ admitted: true, probe: 'a' });
    expect(await isAdmitted('four', there)).toBe(false); // one probe at a time, over all accounts
    await here.failed('a', 'three', refused);
    expect(await here.admit(['a'], 'four')).toMatchObject({ admitted: false, retry_after_ms: 10_000 });
  });

  it('a probe that one account alone has failed does not keep the others out', async () => {
    await closeForAll();
    clock.pass(61_000);
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
    await here.failed('a', 'one', refused);
    expect(await isAdmitted('one')).toBe(false);
    expect(await here.admit(['a'], 'three')).toEqual({ admitted: true });
  });

  it('an operator opens a route for everybody at once', async () => {
    await closeForAll();
    await here.reset('a');
    for (const account of ['one', 'two', 'three']) expect(await isAdmitted(account)).toBe(true);
    await here.failed('a', 'one', refused);
    expect(await isAdmitted('one')).toBe(true);
  });

  it('circuits of accounts that nobody uses any more are dropped', async () => {
    await open('a');
    clock.pass(610_001);
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true });
    expect(await openRoutes(database.db, new Date(clock.now()))).toEqual([]);
    expect(await retryAt()).toHaveLength(1);
    expect(await dropUnusedCircuits(database.db, new Date(clock.now()))).toBe(1);
    expect(await retryAt()).toEqual([]);
  });

  it('opens a route when half of twenty tries in 30 seconds failed, and forgets older ones', async () => {
    const half = async () => {
      for (let i = 0; i < 10; i++) {
        await here.succeeded('a', 'one');
        clock.pass(100);
        await here.failed('a', 'one', refused);
      }
    };
    for (let i = 0; i < 4; i++) await here.failed('a', 'one', refused);
    await here.succeeded('a', 'one');
    clock.pass(30_001);
    await half();
    expect(await retryAt()).toHaveLength(1);
  });

  it('waits longer after each probe that fails, to five minutes', async () => {
    await open('a');
    for (const pause_s of [10, 20, 40, 80, 160, 300, 300]) {
      expect(await there.admit(['a'], 'one')).toMatchObject({ admitted: false, retry_after_ms: pause_s * 1000 });
      clock.pass(pause_s * 1000);
      elapse(1_001);
      expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
      await here.failed('a', 'one', refused);
      elapse(1_001);
    }
  });

  it('does not wait longer for what was under way when the route was opened', async () => {
    await open('a');
    for (let i = 0; i < 60; i++) await here.failed('a', 'one', refused);
    await there.admit(['a'], 'one');
    for (let i = 0; i < 60; i++) await there.failed('a', 'one', refused);
    clock.pass(10_000);
    elapse(1_001);
    expect(await there.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
  });

  it.each([
    [45_000, 45_000],
    [86_400_000, 300_000],
    [Number.NaN, 10_000],
    [-5, 10_000],
  ])('a refusal that asks for %s ms opens the route at once for %s ms', async (asked_ms, pause_ms) => {
    const wanted = { ...refused, pause_ms: asked_ms };
    if (asked_ms > 0) await here.failed('b', 'one', wanted);
    else for (let i = 0; i < 5; i++) await here.failed('b', 'one', wanted);
    elapse(1_001);
    expect(await there.admit(['b'], 'one')).toMatchObject({ admitted: false, retry_after_ms: pause_ms });
  });

  it('lets one request through at a time when the pause is over, on all nodes together', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    const all = await Promise.all([
      ...Array.from({ length: 5 }, () => here.admit(['a'], 'one')),
      there.admit(['a'], 'one'),
    ]);
    expect(all.filter(({ admitted }) => admitted)).toEqual([{ admitted: true, probe: 'a' }]);
    clock.pass(30_001); // the probe told nothing
    elapse(1_001);
    expect(await there.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
    await there.succeeded('a', 'one');
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true });
  });

  it('a probe that was not made is given back', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
    expect(await here.admit(['a'], 'one')).toMatchObject({ admitted: false });
    await here.releaseProbe('a', 'one');
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
  });

  it('a node whose failures are healed by another one counts anew', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    await there.admit(['a'], 'one');
    await there.succeeded('a', 'one');
    elapse(1_001);
    await here.admit(['a'], 'one');
    await here.failed('a', 'one', refused);
    expect(await retryAt()).toEqual([]);
  });

  it('tries open routes last, and probes none behind a healthy one', async () => {
    await open('a');
    await open('c');
    expect(await here.order(['a', 'b', 'c'], 'one')).toEqual(['b', 'a', 'c']);
    expect(await here.order(['a', 'c'], 'one')).toEqual(['a', 'c']);
    clock.pass(10_000);
    elapse(1_001);
    expect(await here.order(['a', 'b', 'c'], 'one')).toEqual(['a', 'b', 'c']);
    expect(await here.order(['a', 'b', 'c'], 'one')).toEqual(['b', 'a', 'c']);
    expect(await here.admit(['c'], 'one')).toEqual({ admitted: true, probe: 'c' });
  });

  it('tells how models stand, in one query a second, and takes no probe', async () => {
    let queries = 0;
    const counted: Pick<Db, 'query'> = {
      query: (text, values) => ((queries += 1), database.db.query(text, values)),
    };
    const health = openRouteHealth(counted, clock);
    const standing = async () => {
      elapse(1_001);
      const standingOf = await health.look();
      return [['a'], ['a', 'b'], ['a', 'c'], ['b']].map((routes) => standingOf(routes, 'one'));
    };
    expect(await standing()).toEqual(['available', 'available', 'available', 'available']);
    await open('a');
    expect(await standing()).toEqual(['unavailable', 'degraded', 'degraded', 'available']);
    await open('c');
    expect(await standing()).toEqual(['unavailable', 'degraded', 'unavailable', 'available']);
    clock.pass(10_000);
    expect(await standing()).toEqual(['degraded', 'degraded', 'degraded', 'available']);
    expect(await there.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
    expect(await standing()).toEqual(['unavailable', 'degraded', 'degraded', 'available']);
    await there.succeeded('a', 'one');
    const before = queries;
    expect(await standing()).toEqual(['available', 'available', 'degraded', 'available']);
    await Promise.all(Array.from({ length: 20 }, () => health.look()));
    expect(queries - before).toBe(1);
  });

  it('bears that the database is away', async () => {
    let away = false;
    const db: Pick<Db, 'query'> = {
      query: (text, values) =>
        away ? Promise.reject(new Error('Connection terminated')) : database.db.query(text, values),
    };
    const health = openRouteHealth(db, clock);
    await health.admit(['a'], 'one');
    away = true;
    await open('a', health);
    away = false;
    expect(await health.admit(['a'], 'one')).toEqual({ admitted: true });
    await health.failed('a', 'one', refused);
    expect(await health.admit(['a'], 'one')).toMatchObject({ admitted: false });
  });
});
