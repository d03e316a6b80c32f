import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeBigAccount, type BigAccount } from '../../bench/big-account.ts';
import { service_rules } from '../../src/chat/books.ts';
import { insertRecord, insertRecords, type StoredRecord } from '../../src/chat/record-row.ts';
import { lastCheck, reconcile } from '../../src/money/reconciliation.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;
let big: BigAccount;

const end = new Date('2026-11-20T12:00:00Z');
const minute_ms = 60_000;
const at = (minutes: number) => ({ now: () => end.getTime() + minutes * minute_ms });
const check = (minutes: number, full = false) =>
  reconcile(database.db, { clock: at(minutes), full, more: service_rules });

beforeAll(async () => {
  database = await testDatabase({ state: 'engine' });
  big = await makeBigAccount(database.db, { ledger_entries: 60_001, days: 60, end });
});
afterAll(() => database.drop());

/** Changes the record of a chat call by one millionth. */
async function damage(which: 'first' | 'last', amount: 1 | -1): Promise<void> {
  await database.db.query(
    `update chat_calls set cost = cost + $1 where id = (
        select id from chat_calls where cost > 0 order by id ${which === 'last' ? 'desc' : ''} limit 1)`,
    [amount],
  );
}

test('a check of the books is read in parts and saved with what it found; the next one begins where it began', async () => {
  const { db } = database;
  expect(await lastCheck(db)).toBeUndefined();
  const first = await check(1);
  expect(first).toMatchObject({ ok: true, difference: '0.000000', entries: 60_001 });
  expect(await lastCheck(db)).toMatchObject({ ...first, started_at: new Date(at(1).now()), is_full: false });
  const marks = await db.query<{ number: bigint }>('select number from book_marks where account_id = $1', [
    big.account_id,
  ]);
  expect(marks).toEqual([{ number: 60_001n }]);

  // What was checked is not read again, but by a full check.
  await damage('first', 1);
  expect(await check(2)).toMatchObject({ ok: true });
  const full = await check(3, true);
  expect(full).toMatchObject({ ok: false, difference: '0.000001' });
  expect(await lastCheck(db)).toMatchObject({ ...full, is_full: true });
  await damage('first', -1);

  // What came shortly before the last check is looked at again; and as long as something is wrong, it is found again.
  await damage('last', 1);
  for (const minutes of [4, 60, 600]) expect(await check(minutes)).toMatchObject({ ok: false, difference: '0.000001' });
  await damage('last', -1);
  expect(await check(601)).toMatchObject({ ok: true });
});

test.each([
  { by: 'its own node', begin: 700, write: insertRecords },
  {
    by: 'whoever reads a journal',
    begin: 800,
    write: (parts: Parameters<typeof insertRecord>[0], [record]: StoredRecord[]) =>
      record ? insertRecord(parts, record) : Promise.reject(new Error('there is no record')),
  },
])('a record that $by writes long after its call began is looked at by the next check', async ({ begin, write }) => {
  const { db } = database;
  expect(await check(begin)).toMatchObject({ ok: true });
  const [row] = await db.query<{ record: StoredRecord & { id: string } }>(
    `delete from chat_calls where id = (select id from chat_calls where cost > 0 order by id limit 1)
      returning to_jsonb(chat_calls) as record`,
  );
  const { record } = row ?? {};
  if (!record) throw new Error('there is no record');
  await write({ db, clock: at(begin + 1) }, [{ ...record, cost: Number(record['cost']) + 1 }]);
  expect(await check(begin + 5)).toMatchObject({
    ok: false,
    difference: '0.000001',
    findings: [{ subject: `${big.account_id} ${record.id}`, detail: 'hold settled' }],
  });
  await db.query('update chat_calls set cost = cost - 1 where id = $1', [record.id]);
  expect(await check(begin + 10)).toMatchObject({ ok: true });
});

test('old checks are forgotten, but the last good one', async () => {
  const { db } = database;
  const day = 24 * 60;
  await check(2 * day);
  await damage('last', 1);
  await db.query(`update chat_calls set created_at = created_at + interval '9 days' where cost % 2 = 1`);
  await check(10 * day);
  const checks = await db.query<{ started_at: Date }>('select started_at from book_checks order by started_at');
  expect(checks.map(({ started_at }) => (started_at.getTime() - end.getTime()) / minute_ms / day)).toEqual([2, 10]);
});
