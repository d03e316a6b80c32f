// isolated: it moves the monotonic clock of its process
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import { dropUnusedCircuits, openRouteHealth, openRoutes, type RouteHealth } from '../../src/routing/health.ts';
import { elapse, stopElapsing, testClock } from '../helpers/clock.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

/** Two nodes on one database; a node's knowledge of the others is at most a second old. */
describe('the health of a route', () => {
  const clock = testClock();
  let database: TestDatabase;
  let here: RouteHealth;
  let there: RouteHealth;

  beforeAll(async () => {
    database = await testDatabase();
    stopElapsing(true); // what a node knows is a second old when the test says so
  });
  afterAll(async () => {
    stopElapsing(false);
    await database.drop();
  });
  beforeEach(async () => {
    await database.db.query('delete from route_health');
    clock.stop('2031-03-01T12:00:00Z');
    here = openRouteHealth(database.db, clock);
    there = openRouteHealth(database.db, clock);
  });

  const refused = { cause: 'upstream_error' } as const;
  async function open(route: string, by = here): Promise<void> {
    for (let i = 0; i < 5; i++) await by.noteFailure(route, 'one', refused);
    elapse(1_001);
  }
  const retryAt = async () => {
    const rows = await database.db.query<{ retry_at: Date }>('select retry_at from route_health');
    return rows.map(({ retry_at }) => retry_at.toISOString());
  };

  it('opens its circuit after five failures in a row, for all nodes within a second', async () => {
    await there.admit(['a'], 'one');
    for (let i = 0; i < 4; i++) await here.noteFailure('a', 'one', refused);
    await here.noteSuccess('a', 'one');
    for (let i = 0; i < 4; i++) await here.noteFailure('a', 'one', refused);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true });
    await here.noteFailure('a', 'one', refused);
    const closed = { admitted: false, cause: 'upstream_error', retry_after_ms: 10_000 };
    expect(await here.admit(['a'], 'one')).toEqual(closed);
    expect(await there.admit(['a'], 'one')).toEqual({ admitted: true });
    elapse(1_001);
    expect(await there.admit(['a'], 'one')).toEqual(closed);
    expect(await there.admit(['a', 'b'], 'one')).toEqual({ admitted: true });
  });

  const isAdmitted = async (account_id: string, by = here) => (await by.admit(['a'], account_id)).admitted;

  it("is closed for no other account by one account's failures, of any kind and number", async () => {
    for (let i = 0; i < 11; i++) await here.noteFailure('a', 'one', refused);
    await here.noteFailure('a', 'one', { ...refused, pause_ms: 60_000 });
    expect(await isAdmitted('one')).toBe(false);
    expect(await isAdmitted('two')).toBe(true);
    elapse(1_001);
    expect(await isAdmitted('one', there)).toBe(false);
    expect(await isAdmitted('two', there)).toBe(true);
  });

  it('opens its circuit for all when two accounts failed, and most of those that used it in the last minute', async () => {
    await here.noteSuccess('a', 'three');
    await here.noteSuccess('a', 'four');
    for (let i = 0; i < 6; i++) for (const account of ['one', 'two']) await here.noteFailure('a', account, refused);
    expect(await isAdmitted('five')).toBe(true); // two of four are not most of them
    clock.pass(60_001);
    for (const account of ['one', 'two']) await here.noteFailure('a', account, refused);
    expect(await isAdmitted('five')).toBe(false);
    elapse(1_001);
    expect(await isAdmitted('six', there)).toBe(false);
  });

  it('counts accounts that another node saw failing', async () => {
    for (let i = 0; i < 5; i++) await there.noteFailure('a', 'one', refused);
    await here.admit(['a'], 'two');
    for (let i = 0; i < 4; i++) await here.noteFailure('a', 'two', refused);
    expect(await isAdmitted('three')).toBe(true);
    await here.noteFailure('a', 'two', refused);
    expect(await isAdmitted('three')).toBe(false);
  });

  const closeForAll = async () => {
    for (let i = 0; i < 5; i++) for (const account of ['one', 'two']) await here.noteFailure('a', account, refused);
    elapse(1_001);
    expect(await isAdmitted('three')).toBe(false);
  };

  it('recovers for all others by a success of another account, not for those that failed', async () => {
    await closeForAll();
    await here.noteSuccess('a', 'three'); // was under way
    expect(await isAdmitted('three')).toBe(true);
    expect(await isAdmitted('four')).toBe(true);
    expect(await isAdmitted('one')).toBe(false);
  });

  it('lets an account that did not cause the pause probe first', async () => {
    await closeForAll();
    clock.pass(5_000);
    elapse(1_001);
    expect(await isAdmitted('one')).toBe(false);
    expect(await here.admit(['a'], 'three')).toEqual({ admitted: true, probe: 'a' });
    expect(await isAdmitted('four', there)).toBe(false); // one probe at a time, over all accounts
    await here.noteFailure('a', 'three', refused);
    expect(await here.admit(['a'], 'four')).toMatchObject({ admitted: false, retry_after_ms: 10_000 });
  });

  it('is not closed for others by a probe that one account alone has failed', async () => {
    await closeForAll();
    clock.pass(61_000);
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
    await here.noteFailure('a', 'one', refused);
    expect(await isAdmitted('one')).toBe(false);
    expect(await here.admit(['a'], 'three')).toEqual({ admitted: true });
  });

  it('is restored for everybody at once by an operator', async () => {
    await closeForAll();
    await here.closeCircuits('a');
    for (const account of ['one', 'two', 'three']) expect(await isAdmitted(account)).toBe(true);
    await here.noteFailure('a', 'one', refused);
    expect(await isAdmitted('one')).toBe(true);
  });

  it('drops circuits of accounts that are no longer used', async () => {
    await open('a');
    clock.pass(610_001);
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true });
    expect(await openRoutes(database.db, new Date(clock.now()))).toEqual([]);
    expect(await retryAt()).toHaveLength(1);
    expect(await dropUnusedCircuits(database.db, new Date(clock.now()))).toBe(1);
    expect(await retryAt()).toEqual([]);
  });

  it('opens its circuit when half of twenty attempts in 30 seconds failed, and forgets older ones', async () => {
    const half = async () => {
      for (let i = 0; i < 10; i++) {
        await here.noteSuccess('a', 'one');
        clock.pass(100);
        await here.noteFailure('a', 'one', refused);
      }
    };
    for (let i = 0; i < 4; i++) await here.noteFailure('a', 'one', refused);
    await here.noteSuccess('a', 'one');
    clock.pass(30_001);
    await half();
    expect(await retryAt()).toHaveLength(1);
  });

  it('has a longer pause after each failed probe, up to five minutes', async () => {
    await open('a');
    for (const pause_s of [10, 20, 40, 80, 160, 300, 300]) {
      expect(await there.admit(['a'], 'one')).toMatchObject({ admitted: false, retry_after_ms: pause_s * 1000 });
      clock.pass(pause_s * 1000);
      elapse(1_001);
      expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
      await here.noteFailure('a', 'one', refused);
      elapse(1_001);
    }
  });

  it('has no longer pause for calls that were in flight when its circuit opened', async () => {
    await open('a');
    for (let i = 0; i < 60; i++) await here.noteFailure('a', 'one', refused);
    await there.admit(['a'], 'one');
    for (let i = 0; i < 60; i++) await there.noteFailure('a', 'one', refused);
    clock.pass(10_000);
    elapse(1_001);
    expect(await there.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
  });

  it.each([
    [45_000, 45_000],
    [86_400_000, 300_000],
    [Number.NaN, 10_000],
    [-5, 10_000],
  ])('has its circuit opened by a refusal that asks for %s ms at once for %s ms', async (asked_ms, pause_ms) => {
    const failure = { ...refused, pause_ms: asked_ms };
    if (asked_ms > 0) await here.noteFailure('b', 'one', failure);
    else for (let i = 0; i < 5; i++) await here.noteFailure('b', 'one', failure);
    elapse(1_001);
    expect(await there.admit(['b'], 'one')).toMatchObject({ admitted: false, retry_after_ms: pause_ms });
  });

  it('admits one request at a time when the pause is over, on all nodes together', async () => {
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
    await there.noteSuccess('a', 'one');
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true });
  });

  it('has a probe released that was not made', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
    expect(await here.admit(['a'], 'one')).toMatchObject({ admitted: false });
    await here.releaseProbe('a', 'one');
    expect(await here.admit(['a'], 'one')).toEqual({ admitted: true, probe: 'a' });
  });

  it('is counted from zero on a node whose failures another one has healed', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    await there.admit(['a'], 'one');
    await there.noteSuccess('a', 'one');
    elapse(1_001);
    await here.admit(['a'], 'one');
    await here.noteFailure('a', 'one', refused);
    expect(await retryAt()).toEqual([]);
  });

  it('puts open routes last, and probes none while a healthy one is left', async () => {
    await open('a');
    await open('c');
    expect(await here.healthyFirst(['a', 'b', 'c'], 'one')).toEqual(['b', 'a', 'c']);
    expect(await here.healthyFirst(['a', 'c'], 'one')).toEqual(['a', 'c']);
    clock.pass(10_000);
    elapse(1_001);
    expect(await here.healthyFirst(['a', 'b', 'c'], 'one')).toEqual(['a', 'b', 'c']);
    expect(await here.healthyFirst(['a', 'b', 'c'], 'one')).toEqual(['b', 'a', 'c']);
    expect(await here.admit(['c'], 'one')).toEqual({ admitted: true, probe: 'c' });
  });

  it('is reported for models in one query a second without taking a probe', async () => {
    let queries = 0;
    const counted: Pick<Db, 'query'> = {
      query: (text, values) => ((queries += 1), database.db.query(text, values)),
    };
    const health = openRouteHealth(counted, clock);
    const standing = async () => {
      elapse(1_001);
      const standingOf = await health.readAvailability();
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
    await there.noteSuccess('a', 'one');
    const before = queries;
    expect(await standing()).toEqual(['available', 'available', 'degraded', 'available']);
    await Promise.all(Array.from({ length: 20 }, () => health.readAvailability()));
    expect(queries - before).toBe(1);
  });

  it('is still decided while the database is away', async () => {
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
    await health.noteFailure('a', 'one', refused);
    expect(await health.admit(['a'], 'one')).toMatchObject({ admitted: false });
  });
});
