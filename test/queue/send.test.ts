import { PgBoss } from 'pg-boss';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../src/queue/queue.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { countJobs, testEngine } from './engine.ts';

type Row = Record<string, unknown>;

let database: TestDatabase;
let engine: Engine;
let pgboss: PgBoss;

beforeAll(async () => {
  database = await testDatabase();
  engine = await testEngine(database.db, ['sent', 'many', 'rolled-back', 'timed', 'keys']);
  pgboss = new PgBoss({
    db: { executeSql: (text, values) => database.db.pool.query(text, values) },
    supervise: false,
    schedule: false,
  });
  await pgboss.start();
});

afterAll(async () => {
  await pgboss.stop({ graceful: false, close: false });
  await engine.stop();
  await database.drop();
});

async function rowOf(id: string | null | undefined): Promise<Row> {
  const [row] = await database.db.query<Row>('select * from pgboss.job where id = $1', [id]);
  if (!row) throw new Error(`no job ${id}`);
  return row;
}

describe('a sent job', () => {
  const at = new Date('2031-03-31T23:59:59.123Z');
  const data = { task_id: 'task_1', text: 'ą\u0007"', nested: [1, null, { a: true }] };

  it.each([
    ['at once', {}, {}],
    ['deferred', { at }, { startAfter: at }],
    ['with a key', { key: 'task_1' }, { singletonKey: 'task_1' }],
  ])('has every column that pg-boss would write: %s', async (_name, ours, theirs) => {
    // In one transaction, so that both see the same now().
    const [mine, its] = await database.db.tx(async (tx) => {
      const db = { executeSql: async (text: string, values?: unknown[]) => ({ rows: await tx.query(text, values) }) };
      return [await engine.send(tx, 'sent', data, ours), await pgboss.send('sent', data, { ...theirs, db })];
    });
    const { id: my_id, ...my_row } = await rowOf(mine);
    const { id: its_id, ...its_row } = await rowOf(its);
    expect(my_id).not.toBe(its_id);
    expect(Object.keys(its_row).length).toBeGreaterThan(30);
    expect(my_row).toEqual(its_row);
  });

  it('has every column that pg-boss would write, also when many are sent at once', async () => {
    const keys = ['task_1', 'task_2', 'task_3'];
    const dataOf = (key: string) => ({ ...data, task_id: key });
    const its: Row[] = [];
    const mine = await database.db.tx(async (tx) => {
      const db = { executeSql: async (text: string, values?: unknown[]) => ({ rows: await tx.query(text, values) }) };
      const all = keys.map((key) => JSON.stringify(dataOf(key)));
      await tx.query('select engine_send_many($1, $2::jsonb[], $3)', ['many', all, keys]);
      const sent = await tx.query<Row>(`select * from pgboss.job where name = 'many' order by singleton_key`);
      for (const key of keys) {
        const id = await pgboss.send('many', dataOf(key), { singletonKey: key, db });
        its.push(...(await tx.query<Row>('select * from pgboss.job where id = $1', [id])));
      }
      return sent;
    });
    expect(new Set(mine.map((row) => row['id'])).size).toBe(3);
    expect(mine).toEqual(its.map((row, i) => ({ ...row, id: mine[i]?.['id'] })));
  });

  it('is refused in a batch for a queue that does not exist', async () => {
    const sent = database.db.query(`select engine_send_many('nowhere', array['{}'::jsonb], array['x'])`);
    await expect(sent).rejects.toThrow('The engine has no queue "nowhere"');
  });

  it('does not exist if its transaction rolls back', async () => {
    const failed = database.db.tx(async (tx) => {
      await engine.send(tx, 'rolled-back', {});
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect(await countJobs(database.db, 'rolled-back')).toBe(0);
  });

  it('is refused for a queue that does not exist', async () => {
    await expect(engine.send(database.db, 'nowhere', {})).rejects.toThrow('The engine has no queue "nowhere"');
  });

  it('starts after its delay by the clock of the database, counted from the send', async () => {
    const { id, sent_at } = await database.db.tx(async (tx) => {
      await tx.query('select pg_sleep(0.3)');
      const sent = await engine.send(tx, 'timed', {}, { after_ms: 1_500 });
      const [after] = await tx.query<{ now: Date }>('select clock_timestamp() as now');
      return { id: sent, sent_at: after?.now };
    });
    const row = await rowOf(id);
    const delay_ms = Number(row['start_after']) - Number(row['created_on']); // created_on: the begin of the transaction
    expect(delay_ms).toBeGreaterThanOrEqual(1_799);
    expect(Number(row['start_after']) - Number(sent_at)).toBeLessThanOrEqual(1_501);
  });

  it('is kept however long nobody works, and is retried without end', async () => {
    const row = await rowOf(await engine.send(database.db, 'timed', {}));
    const kept_days = (Number(row['keep_until']) - Number(row['created_on'])) / 86_400_000;
    expect(kept_days).toBeGreaterThan(3_600);
    expect(row).toMatchObject({
      retry_limit: 2_000_000_000,
      heartbeat_seconds: 10,
      expire_seconds: 86_400,
      deletion_seconds: 60,
    });
  });
});

describe('live keys', () => {
  it('are those with a job that is waiting, deferred or running', async () => {
    await engine.send(database.db, 'keys', {}, { key: 'waiting' });
    await engine.send(database.db, 'keys', {}, { key: 'deferred', after_ms: 60_000 });
    const running = await engine.send(database.db, 'keys', {}, { key: 'running' });
    const completed = await engine.send(database.db, 'keys', {}, { key: 'completed' });
    await database.db.query(`update pgboss.job set state = 'active' where id = $1`, [running]);
    await database.db.query(`update pgboss.job set state = 'completed' where id = $1`, [completed]);
    const keys = ['waiting', 'deferred', 'running', 'completed', 'never'];
    expect([...(await engine.liveKeys(keys))].toSorted()).toEqual(['deferred', 'running', 'waiting']);
  });
});

describe('two nodes that start together on an empty database', () => {
  it('both find the schema and all queues', async () => {
    const empty = await testDatabase();
    const engines = await Promise.all([1, 2, 3].map(() => testEngine(empty.db, ['a', 'b'])));
    for (const each of engines) await each.send(empty.db, 'b', {});
    expect(await countJobs(empty.db, 'b')).toBe(3);
    expect(engines.flatMap((each) => each.lines)).toEqual([]);
    await Promise.all(engines.map((each) => each.stop()));
    await empty.drop();
  });
});
