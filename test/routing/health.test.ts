import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Db } from '../../src/db/database.ts';
import { openRouteHealth, type RouteHealth } from '../../src/routing/health.ts';
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
    for (let i = 0; i < 5; i++) await by.failed(route, refused);
    elapse(1_001);
  }
  const retryAt = async () => {
    const rows = await database.db.query<{ retry_at: Date }>('select retry_at from route_health');
    return rows.map(({ retry_at }) => retry_at.toISOString());
  };

  it('opens a route after five failures in a row, for all nodes within a second', async () => {
    await there.admit(['a']);
    for (let i = 0; i < 4; i++) await here.failed('a', refused);
    await here.succeeded('a');
    for (let i = 0; i < 4; i++) await here.failed('a', refused);
    expect(await here.admit(['a'])).toEqual({ admitted: true });
    await here.failed('a', refused);
    const closed = { admitted: false, cause: 'upstream_error', retry_after_ms: 10_000 };
    expect(await here.admit(['a'])).toEqual(closed);
    expect(await there.admit(['a'])).toEqual({ admitted: true });
    elapse(1_001);
    expect(await there.admit(['a'])).toEqual(closed);
    expect(await there.admit(['a', 'b'])).toEqual({ admitted: true });
  });

  const slowFor = (account_id: string) => ({ cause: 'timeout', slow_for: account_id }) as const;

  it('time-outs of one account alone open no route that another one uses', async () => {
    await here.succeeded('a', 'light');
    for (let i = 0; i < 30; i++) {
      clock.pass(500);
      await here.failed('a', slowFor('heavy'));
    }
    expect(await here.admit(['a'])).toEqual({ admitted: true });
    for (let i = 0; i < 3; i++) await here.failed('a', refused);
    expect(await here.admit(['a'])).toEqual({ admitted: true });
    await here.failed('a', refused); // with one for all the time-outs: five
    expect(await here.admit(['a'])).toMatchObject({ admitted: false });
  });

  it('those of several accounts do, or of one that nobody else would suffer from', async () => {
    for (let i = 0; i < 4; i++) await here.failed('a', slowFor('one'));
    expect(await here.admit(['a'])).toEqual({ admitted: true });
    await here.failed('a', slowFor('another'));
    expect(await here.admit(['a'])).toMatchObject({ admitted: false, cause: 'timeout' });
    for (let i = 0; i < 5; i++) await here.failed('b', slowFor('alone'));
    expect(await here.admit(['b'])).toMatchObject({ admitted: false });
    await here.succeeded('c', 'long ago');
    clock.pass(600_001);
    for (let i = 0; i < 5; i++) await here.failed('c', slowFor('alone'));
    expect(await here.admit(['c'])).toMatchObject({ admitted: false });
  });

  it('nor do they make half of twenty tries', async () => {
    for (let i = 0; i < 30; i++) {
      await here.succeeded('a', 'light');
      for (let j = 0; j < 3; j++) await here.failed('a', slowFor('heavy'));
      clock.pass(100);
    }
    expect(await here.admit(['a'])).toEqual({ admitted: true });
  });

  it('opens a route when half of twenty tries in 30 seconds failed, and forgets older ones', async () => {
    const half = async () => {
      for (let i = 0; i < 10; i++) {
        await here.succeeded('a');
        clock.pass(100);
        await here.failed('a', refused);
      }
    };
    for (let i = 0; i < 4; i++) await here.failed('a', refused);
    await here.succeeded('a');
    clock.pass(30_001);
    await half();
    expect(await retryAt()).toHaveLength(1);
  });

  it('waits longer after each probe that fails, to five minutes', async () => {
    await open('a');
    for (const pause_s of [10, 20, 40, 80, 160, 300, 300]) {
      expect(await there.admit(['a'])).toMatchObject({ admitted: false, retry_after_ms: pause_s * 1000 });
      clock.pass(pause_s * 1000);
      elapse(1_001);
      expect(await here.admit(['a'])).toEqual({ admitted: true, probe: 'a' });
      await here.failed('a', refused);
      elapse(1_001);
    }
  });

  it('does not wait longer for what was under way when the route was opened', async () => {
    await open('a');
    for (let i = 0; i < 60; i++) await here.failed('a', refused);
    await there.admit(['a']);
    for (let i = 0; i < 60; i++) await there.failed('a', refused);
    clock.pass(10_000);
    elapse(1_001);
    expect(await there.admit(['a'])).toEqual({ admitted: true, probe: 'a' });
  });

  it.each([
    [45_000, 45_000],
    [86_400_000, 300_000],
    [Number.NaN, 10_000],
    [-5, 10_000],
  ])('a refusal that asks for %s ms opens the route at once for %s ms', async (asked_ms, pause_ms) => {
    const wanted = { ...refused, pause_ms: asked_ms };
    if (asked_ms > 0) await here.failed('b', wanted);
    else for (let i = 0; i < 5; i++) await here.failed('b', wanted);
    elapse(1_001);
    expect(await there.admit(['b'])).toMatchObject({ admitted: false, retry_after_ms: pause_ms });
  });

  it('lets one request through at a time when the pause is over, on all nodes together', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    const all = await Promise.all([...Array.from({ length: 5 }, () => here.admit(['a'])), there.admit(['a'])]);
    expect(all.filter(({ admitted }) => admitted)).toEqual([{ admitted: true, probe: 'a' }]);
    clock.pass(30_001); // the probe told nothing
    elapse(1_001);
    expect(await there.admit(['a'])).toEqual({ admitted: true, probe: 'a' });
    await there.succeeded('a');
    elapse(1_001);
    expect(await here.admit(['a'])).toEqual({ admitted: true });
  });

  it('a probe that was not made is given back', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    expect(await here.admit(['a'])).toEqual({ admitted: true, probe: 'a' });
    expect(await here.admit(['a'])).toMatchObject({ admitted: false });
    await here.giveBack('a');
    expect(await here.admit(['a'])).toEqual({ admitted: true, probe: 'a' });
  });

  it('a node whose failures are healed by another one counts anew', async () => {
    await open('a');
    clock.pass(10_000);
    elapse(1_001);
    await there.admit(['a']);
    await there.succeeded('a');
    elapse(1_001);
    await here.admit(['a']);
    await here.failed('a', refused);
    expect(await retryAt()).toEqual([]);
  });

  it('tries open routes last, and probes none behind a healthy one', async () => {
    await open('a');
    await open('c');
    expect(await here.order(['a', 'b', 'c'])).toEqual(['b', 'a', 'c']);
    expect(await here.order(['a', 'c'])).toEqual(['a', 'c']);
    clock.pass(10_000);
    elapse(1_001);
    expect(await here.order(['a', 'b', 'c'])).toEqual(['a', 'b', 'c']);
    expect(await here.order(['a', 'b', 'c'])).toEqual(['b', 'a', 'c']);
    expect(await here.admit(['c'])).toEqual({ admitted: true, probe: 'c' });
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
      return [['a'], ['a', 'b'], ['a', 'c'], ['b']].map((routes) => standingOf(routes));
    };
    expect(await standing()).toEqual(['available', 'available', 'available', 'available']);
    await open('a');
    expect(await standing()).toEqual(['unavailable', 'degraded', 'degraded', 'available']);
    await open('c');
    expect(await standing()).toEqual(['unavailable', 'degraded', 'unavailable', 'available']);
    clock.pass(10_000);
    expect(await standing()).toEqual(['degraded', 'degraded', 'degraded', 'available']);
    expect(await there.admit(['a'])).toEqual({ admitted: true, probe: 'a' });
    expect(await standing()).toEqual(['unavailable', 'degraded', 'degraded', 'available']);
    await there.succeeded('a');
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
    await health.admit(['a']);
    away = true;
    await open('a', health);
    away = false;
    expect(await health.admit(['a'])).toEqual({ admitted: true });
    await health.failed('a', refused);
    expect(await health.admit(['a'])).toMatchObject({ admitted: false });
  });
});
