import { describe, expect, it, onTestFinished } from 'vitest';
import { reading, readsLimit } from '../../src/db/reads.ts';
import { completion, hello, setStage } from '../chat/setup.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { testDatabase } from '../helpers/database.ts';

describe('120 reports of one account at once', () => {
  it('keep no chat, no task, no balance and no list of another account waiting while none of them moves', async () => {
    const { test, client, upstream, stop } = await setStage();
    onTestFinished(stop);
    upstream.script('gpt-x', { json: completion('Hi') });
    const reader = await test.client();
    let took_ms = 0;
    const reports: Promise<{ status: number }>[] = [];
    await test.app.db.tx(async (tx) => {
      const begun_ms = performance.now();
      await tx.query('lock table usage_sums in access exclusive mode');
      for (let i = 0; i < 120; i++) reports.push(reader.call('GET', '/v1/usage?group_by=hour,model,key'));
      await expect.poll(() => test.app.limits.reads.waiting(reader.account_id)).toBeGreaterThan(100);
      const chat = { model: 'acme/oai', messages: hello };
      const image = { model: 'sandbox/image', input: { prompt: 'a' } };
      const answers = await Promise.all([
        client.call('POST', '/v1/chat/completions', chat),
        client.call('POST', '/v1/generate', image),
        client.call('GET', '/v1/balance'),
        client.call('GET', '/v1/tasks?status=failed'),
        client.call('GET', '/v1/balance/transactions'),
        // One that reads much can still work.
        reader.call('POST', '/v1/chat/completions', chat),
      ]);
      expect(answers.map(({ status }) => status)).toEqual([200, 202, 200, 200, 200, 200]);
      took_ms = performance.now() - begun_ms;
    });
    const statuses = (await Promise.all(reports)).map(({ status }) => status);
    // Every 4 s that a busy machine takes for the calls above, some are ended by their limit of a lock.
    const in_vain = 10 * (1 + Math.floor(took_ms / 4_000));
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(120 - in_vain);
    await expectExactBooks(test.app);
  });
});

describe('a list or a report', () => {
  async function setPlace() {
    const database = await testDatabase({ state: 'empty' });
    onTestFinished(() => database.drop());
    const limits = readsLimit();
    const of = (key: string, gone = new AbortController().signal) =>
      reading({ db: database.db, limits }, { key, gone });
    return { database, limits, of };
  }

  it('that takes too long is ended with 504 and a sentence, and its turn goes to the next', async () => {
    const { database, limits, of } = await setPlace();
    const slow = of('acct_1').query('select pg_sleep(30)');
    const failure = slow.catch((error: unknown) => error);
    const cancel = `select pg_cancel_backend(pid) as done from pg_stat_activity where query = 'select pg_sleep(30)'`;
    let is_over = false;
    void failure.then(() => (is_over = true));
    // A cancel that comes before the statement runs is lost, and sent again.
    await expect.poll(() => database.db.query(cancel).then(() => is_over)).toBe(true);
    expect(await failure).toMatchObject({ status: 504, message: expect.stringContaining('took too long') });
    expect(limits.reads.state).toMatchObject({ in_use: 0, waiting: 0 });
    expect(await of('acct_1').tx((tx) => tx.query('select 1 as n'))).toEqual([{ n: 1 }]);
  });

  it('waits for others of its account, never for those of another, and leaves with its caller', async () => {
    const { database, limits, of } = await setPlace();
    await database.db.query('create table t (n int)');
    await database.db.tx(async (tx) => {
      await tx.query('lock table t');
      const caller = new AbortController();
      const waiting = Array.from({ length: 6 }, () => of('acct_1', caller.signal).query('select * from t'));
      const outcomes = Promise.allSettled(waiting);
      expect(await of('acct_2').query('select 2 as n')).toEqual([{ n: 2 }]);
      expect(limits.reads.state).toMatchObject({ in_use: 2, waiting: 4 });
      caller.abort();
      await expect(waiting[5]).rejects.toMatchObject({ status: 429 });
      expect(limits.reads.waiting('acct_1')).toBe(0);
      await tx.query('rollback; begin');
      expect((await outcomes).filter(({ status }) => status === 'fulfilled')).toHaveLength(2);
    });
  });
});
