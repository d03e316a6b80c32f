import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeBigAccount } from '../../bench/big-account.ts';
import { service_rules } from '../../src/chat/books.ts';
import { isId } from '../../src/lib/ids.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase({ state: 'engine' });
});
afterAll(() => database.drop());

test('the account that a bench writes into the tables has exact books, and ids of the times of its calls', async () => {
  const { db } = database;
  const end = new Date();
  const { account_id, rows } = await makeBigAccount(db, { ledger_entries: 5_001, days: 60, end });
  expect(rows).toMatchObject({ ledger: 5_001, tasks: 500, chats: 1_000 });
  await expectExactBooks(db, service_rules);
  const ids = await db.query<{ id: string }>('select id from tasks where account_id = $1 order by id', [account_id]);
  expect(ids.every(({ id }) => isId('task', id))).toBe(true);
  const [by_time] = await db.query<{ id: string }>('select id from tasks order by created_at desc limit 1');
  expect(by_time?.id).toBe(ids.at(-1)?.id);
});
