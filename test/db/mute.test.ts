import { describe, expect, it, type TestContext } from 'vitest';
import { isUnavailable, openDatabase } from '../../src/db/database.ts';
import { openListener, openNotifier } from '../../src/db/notify.ts';
import { testDatabase } from '../helpers/database.ts';
import { startMuteProxy } from '../helpers/mute-proxy.ts';

async function setPlace({ onTestFinished }: TestContext) {
  const database = await testDatabase({ state: 'empty' });
  const proxy = await startMuteProxy(database.url);
  const db = openDatabase({ connection: { connectionString: proxy.url } });
  onTestFinished(async () => {
    await db.close();
    await proxy.stop();
    await database.drop();
  });
  return { database, proxy, db };
}

async function failureOf(work: Promise<unknown>): Promise<{ error: unknown; took_ms: number }> {
  const begun_ms = performance.now();
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { error, took_ms: performance.now() - begun_ms };
}

describe.concurrent('a server that no longer responds', () => {
  it('is unavailable when a statement has had its time, and no idle connection is trusted any more', async (context) => {
    const { proxy, db } = await setPlace(context);
    await Promise.all(Array.from({ length: 6 }, () => db.query('select pg_sleep(0.1)', [], 'brief')));
    expect(proxy.mute('all')).toBe(6);
    const { error, took_ms } = await failureOf(db.query('select 1', [], 'brief'));
    expect(isUnavailable(error)).toBe(true);
    expect(took_ms).toBeLessThan(20_000);
    // Whoever trusted another of the idle connections would wait as long again, in vain.
    expect(await db.query('select 1 as n', [], 'brief')).toEqual([{ n: 1 }]);
    await context.expect.poll(() => proxy.open()).toBe(1); // nothing is left open
  });

  it('has its connection destroyed within a transaction, too, without a rollback', async (context) => {
    const { proxy, db } = await setPlace(context);
    const { error, took_ms } = await failureOf(
      db.tx(async (tx) => {
        await tx.query('select 1');
        proxy.mute('all');
        await tx.query('select 2');
      }, 'brief'),
    );
    expect(isUnavailable(error)).toBe(true);
    expect(took_ms).toBeLessThan(20_000);
    await context.expect.poll(() => proxy.open()).toBe(0);
    expect(await db.tx((tx) => tx.query('select 3 as n'))).toEqual([{ n: 3 }]);
  });

  it('ends statements that take too long, and waits for locks no longer than callers do', async (context) => {
    const { database, db } = await setPlace(context);
    const slow = await failureOf(db.query('select pg_sleep(30)', [], 'brief'));
    expect(slow.error).toMatchObject({ code: '57014' });
    expect(isUnavailable(slow.error)).toBe(true);
    await database.db.query('create table t (n int)');
    await database.db.tx(async (tx) => {
      await tx.query('lock table t');
      const locked = await failureOf(db.query('select * from t', [], 'brief'));
      expect(locked.error).toMatchObject({ code: '55P03' });
      expect(isUnavailable(locked.error)).toBe(true);
    });
  });

  it('is unavailable when it only reads, as a primary of yesterday does, and no idle connection is trusted any more', async (context) => {
    const { database, proxy, db } = await setPlace(context);
    await database.db.query('create table t (n int)');
    const demote = 'set default_transaction_read_only = on; select pg_sleep(0.1)';
    await Promise.all(Array.from({ length: 6 }, () => db.query(demote)));
    expect(proxy.open()).toBe(6);
    const { error } = await failureOf(db.query('insert into t values (1)'));
    expect(error).toMatchObject({ code: '25006' });
    expect(isUnavailable(error)).toBe(true);
    await db.query('insert into t values (2)');
    await context.expect.poll(() => proxy.open()).toBe(1);
  });

  it('is detected by a listener, which reconnects and reports the gap', async (context) => {
    const { database, proxy, db } = await setPlace(context);
    const listener = openListener(db);
    const notifier = openNotifier(database.db);
    context.onTestFinished(async () => {
      await Promise.all([listener.close(), notifier.close()]);
    });
    const heard: string[] = [];
    let gaps = 0;
    await listener.subscribe('news', { onPayload: (payload) => heard.push(payload), onGap: () => (gaps += 1) });
    notifier.notify('news', 'one');
    await context.expect.poll(() => heard).toEqual(['one']);
    proxy.mute('all');
    await context.expect.poll(() => gaps).not.toBe(0);
    notifier.notify('news', 'two');
    await context.expect.poll(() => heard).toEqual(['one', 'two']);
    expect(gaps).toBeGreaterThan(0);
  });
});
