import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../src/app.ts';
import type { Db } from '../../src/db/database.ts';
import { newId } from '../../src/lib/ids.ts';
import { insertTask, makeInserter, type CreateAnswer, type NewTask } from '../../src/tasks/create-batch.ts';
import { finish } from '../../src/tasks/finish.ts';
import { until } from '../queue/engine.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';
import { faults, losesNext } from '../money/lossy.ts';

const yaml = `
version: 1
limits: { failed_per_24h: 2 }
`;

const clock = testClock();
const noon = '2031-05-10T12:00:00.000Z';

describe('a batch of tasks', () => {
  let service: TestApp;

  beforeAll(async () => {
    service = await startTestApp({ yaml, clock, worker: false });
  });
  afterAll(() => service.stop());
  beforeEach(() => clock.stop(noon));
  afterEach(() => expectExactBooks(service.app));

  function taskOf(client: Client, changes: Partial<NewTask> = {}): NewTask {
    return {
      account_id: client.account_id,
      key_id: client.key_id,
      id: newId('task'),
      model: 'sandbox/image',
      kind: 'image',
      input: '{"prompt":"x"}',
      metadata: '{}',
      webhook_url: null,
      traceparent: null,
      currency: 'USD',
      pricing: { currency: 'USD', rate: '1', rows: [] },
      held_units: { image: '1' },
      estimate: 10_000n,
      created_at: new Date(clock.now()),
      deadline_at: new Date(clock.now() + 3_600_000),
      ...changes,
    };
  }

  /** An app with a batcher of its own, and the names of the functions that it calls. */
  function watched(app: App): { app: App; calls: string[] } {
    const calls: string[] = [];
    const query = <T>(text: string, values?: readonly unknown[]) => {
      calls.push(/\binsert_tasks?\b/.exec(text)?.[0] ?? 'other');
      return app.db.query<T>(text, values);
    };
    return { app: withDb(app, { ...app.db, query }), calls };
  }

  function withDb(app: App, db: Db): App {
    return { ...app, db, inserter: makeInserter({ ...app, db }) };
  }

  function creates(app: App, tasks: NewTask[]): Promise<CreateAnswer[]> {
    return Promise.all(tasks.map((task) => insertTask(app, task)));
  }

  const outcomes = (answers: CreateAnswer[]) => answers.map((answer) => answer.outcome);

  /** A task of this account starts and fails. */
  async function failOne(client: Client): Promise<void> {
    const task = taskOf(client, { estimate: 0n });
    expect((await insertTask(service.app, task)).outcome).toBe('created');
    const failed = { status: 'failed', type: 'upstream_error', message: 'x', counts: true } as const;
    const ref = { account_id: task.account_id, task_id: task.id };
    await finish(service.app, ref, { ...failed, attempt: 'failed', reason: 'x' });
  }

  /** Everything that was written for these accounts, with numbers in place of ids. */
  async function stateOf(clients: Client[], tasks: NewTask[]): Promise<string> {
    const account_ids = [...new Set(clients.map((client) => client.account_id))];
    const queries = [
      'select * from balances where account_id = any ($1) order by account_id',
      'select * from budgets where account_id = any ($1) order by key_id',
      'select * from open_holds where account_id = any ($1) order by account_id, ref',
      `select * from ledger_entries where account_id = any ($1) and available < 0 order by account_id, number`,
      `select * from tasks where account_id = any ($1) and completed_at is null order by id`,
      `select name, data, singleton_key from pgboss.job where data->>'account_id' = any ($1)
        and singleton_key = any (select id from tasks where completed_at is null) order by singleton_key`,
    ];
    const rows = await Promise.all(queries.map((sql) => service.app.db.query(sql, [account_ids])));
    let text = JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    const ids = [...account_ids, ...clients.map((client) => client.key_id), ...tasks.map((task) => task.id)];
    for (const [i, id] of ids.entries()) text = text.replaceAll(id, `#${i}`);
    return text;
  }

  /** Two keys of one account, one of them limited; another account; and one whose failures have paused it. */
  async function openClients(): Promise<Client[]> {
    const rich = await service.client({ credit: '0.10', limit: '0.05' });
    const paused = await service.client();
    for (let i = 0; i < 2; i++) await failOne(paused);
    return [
      rich,
      await service.client({ account_id: rich.account_id }),
      await service.client({ credit: '0.03' }),
      paused,
    ];
  }

  const plans = fc.array(fc.record({ client: fc.nat(3), estimate: fc.bigInt({ min: 0n, max: 40_000n }) }), {
    minLength: 2,
    maxLength: 12,
  });

  it('has the same effect as the same calls one after the other', async () => {
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const [apart, joined] = [await openClients(), await openClients()];
        const tasksOf = (clients: Client[]) =>
          plan.flatMap(({ client, estimate }) => clients.slice(client, client + 1).map((c) => taskOf(c, { estimate })));
        const [single, batch] = [tasksOf(apart), tasksOf(joined)];
        const expected: CreateAnswer[] = [];
        for (const task of single) expected.push(await insertTask(service.app, task));
        const { app, calls } = watched(service.app);
        const got = await creates(app, batch);
        expect(calls.filter((call) => call !== 'other')).toEqual(['insert_tasks']);
        expect(got).toEqual(expected.map((answer) => ({ ...answer, task_id: null })));
        expect(await stateOf(joined, batch)).toBe(await stateOf(apart, single));
      }),
      { numRuns: 25 },
    );
  });

  it('refuses a paused account, holds nothing for it, and creates the tasks of the others', async () => {
    const [fine, paused] = [await service.client(), await service.client()];
    await failOne(paused);
    clock.pass(3_600_000);
    await failOne(paused);
    const tasks = [paused, fine, paused, fine].map((client) => taskOf(client));
    const { app, calls } = watched(service.app);
    const answers = await creates(app, tasks);
    expect(calls[0]).toBe('insert_tasks');
    expect(answers).toMatchObject([
      { outcome: 'paused', retry_after: 23 * 3_600, available: null },
      { outcome: 'created', available: 99_990_000n },
      { outcome: 'paused', retry_after: 23 * 3_600, available: null },
      { outcome: 'created', available: 99_980_000n },
    ]);
    expect(outcomes(await creates(service.app, [taskOf(paused), taskOf(paused)]))).toEqual(['paused', 'paused']);
    expect((await paused.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  });

  it('gives each task the time of its own request', async () => {
    const client = await service.client();
    const tasks = [0, 1, 2].map((i) => taskOf(client, { created_at: new Date(clock.now() - i * 1_000) }));
    await creates(service.app, tasks);
    const rows = await service.app.db.query<{ id: string; created_at: Date }>(
      'select id, created_at from tasks where account_id = $1',
      [client.account_id],
    );
    const times = new Map(rows.map((row) => [row.id, row.created_at]));
    expect(tasks.map((task) => times.get(task.id))).toEqual(tasks.map((task) => task.created_at));
  });

  it('fails only the task that breaks a rule of the database', async () => {
    const [client, stranger] = [await service.client(), await service.client()];
    const bad: Partial<NewTask>[] = [
      { kind: 'smell' },
      { key_id: stranger.key_id },
      { account_id: 'acct_none' },
      { currency: 'NUL \0' },
      { pricing: { text: '\0' } },
      { estimate: -1n },
      { estimate: 2n ** 70n },
    ];
    const tasks = [taskOf(client), ...bad.map((changes) => taskOf(client, changes)), taskOf(client)];
    const got = await Promise.allSettled(tasks.map((task) => insertTask(service.app, task)));
    expect(got.map((each) => each.status)).toEqual(['fulfilled', ...bad.map(() => 'rejected'), 'fulfilled']);
    expect((await client.call('GET', '/v1/balance')).json.held.exact).toBe('0.020000');
  });

  it('leaves out long inputs and calls with an Idempotency-Key, which run alone', async () => {
    const client = await service.client();
    const long = JSON.stringify({ prompt: 'x'.repeat(40_000) });
    const { app, calls } = watched(service.app);
    const once = { key: 'k1', shared_key: 'limited k1', account_key: 'k1', body_hash: Buffer.alloc(32) };
    const tasks = [taskOf(client), taskOf(client, { input: long }), taskOf(client), taskOf(client)];
    const keyed = taskOf(client);
    const answers = await Promise.all([...tasks.map((task) => insertTask(app, task)), insertTask(app, keyed, once)]);
    expect(outcomes(answers)).toEqual(Array(5).fill('created'));
    expect(calls.toSorted()).toEqual(['insert_task', 'insert_task', 'insert_tasks']);
    expect(await insertTask(app, taskOf(client), once)).toMatchObject({ outcome: 'replayed', task_id: keyed.id });
  });

  async function counts(client: Client): Promise<{ tasks: number; jobs: number; entries: number }> {
    const rows = await service.app.db.query<{ tasks: number; jobs: number; entries: number }>(
      `select (select count(*)::int from tasks where account_id = $1) as tasks,
              (select count(*)::int from pgboss.job where data->>'account_id' = $1) as jobs,
              (select count(*)::int from ledger_entries where account_id = $1 and type = 'hold') as entries`,
      [client.account_id],
    );
    return rows[0] ?? { tasks: -1, jobs: -1, entries: -1 };
  }

  describe.each([1, 5])('of %i calls', (count) => {
    it.each(faults)('creates each task once when the connection is lost %s', async (fault) => {
      const client = await service.client();
      const lossy = withDb(service.app, losesNext(service.app.db, fault));
      const tasks = Array.from({ length: count }, () => taskOf(client));
      expect(outcomes(await creates(lossy, tasks))).toEqual(Array(count).fill('created'));
      expect(await counts(client)).toEqual({ tasks: count, jobs: count, entries: count });
    });

    it('creates each task once when the confirmation is lost and the failure pause begins before the retry', async () => {
      const client = await service.client({ credit: '0.05' });
      let armed = true;
      const query = async <T>(text: string, values?: readonly unknown[]) => {
        const rows = await service.app.db.query<T>(text, values);
        if (!armed) return rows;
        armed = false;
        for (let i = 0; i < 2; i++) await failOne(client);
        throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
      };
      const lossy = withDb(service.app, { ...service.app.db, query });
      const tasks = Array.from({ length: count }, () => taskOf(client));
      expect(outcomes(await creates(lossy, tasks))).toEqual(Array(count).fill('created'));
      expect(await counts(client)).toMatchObject({ tasks: count + 2, entries: count + 2 });
    });

    it('creates a task once when its caller disconnects while the call waits for a lock', async () => {
      const client = await service.client();
      const { db } = service.app;
      const blocker = await db.pool.connect();
      await blocker.query('begin');
      await blocker.query('select 1 from balances where account_id = $1 for update', [client.account_id]);
      let sent = 0;
      const query = async <T>(text: string, values: readonly unknown[] = []): Promise<T[]> => {
        sent += 1;
        if (sent > 1) return db.query<T>(text, values, 'long'); // until both are seen to wait
        const lost = await db.pool.connect();
        lost.on('error', () => undefined);
        await lost.query(`set lock_timeout = 0; set statement_timeout = 0; set client_connection_check_interval = 0`);
        lost.query(text, [...values]).catch(() => undefined);
        await until('the call waits', 60_000, async () => (await waiting(db)) === 1);
        lost.release(new Error('gone')); // the server will notice once it has committed
        throw Object.assign(new Error('Connection terminated unexpectedly'), { code: 'ECONNRESET' });
      };
      const tasks = Array.from({ length: count }, () => taskOf(client));
      const created = creates(withDb(service.app, { ...db, query }), tasks);
      created.catch(() => undefined); // it is looked at below, unless the wait for it fails
      try {
        await until('both wait', 60_000, async () => (await waiting(db)) === 2);
      } finally {
        blocker.release(true); // which ends its transaction
      }
      expect(outcomes(await created)).toEqual(Array(count).fill('created'));
      expect(sent).toBe(2);
      expect(await counts(client)).toEqual({ tasks: count, jobs: count, entries: count });
    });
  });

  /** Creations that wait for a lock; scheduled jobs may wait for others meanwhile. */
  async function waiting(db: Db): Promise<number> {
    const rows = await db.query<{ n: number }>(
      `select count(*)::int as n from pg_stat_activity
        where datname = current_database() and query like '%insert_task%' and cardinality(pg_blocking_pids(pid)) > 0`,
    );
    return rows[0]?.n ?? 0;
  }
});
