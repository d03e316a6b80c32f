import { afterAll, beforeAll, expect, it } from 'vitest';
import { createAccount } from '../../src/accounts/accounts.ts';
import { audit, listAudit } from '../../src/accounts/audit.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;
let own: string;
let other: string;

beforeAll(async () => {
  database = await testDatabase();
  const make = (name: string) =>
    createAccount(database.db, { name, currency: 'USD', initial_credit: 0n }, new Date()).then(({ id }) => id);
  [own, other] = await Promise.all([make('Own'), make('Other')]);
  for (let count = 0; count < 5; count++) {
    const now = new Date(Date.UTC(2026, 0, 1, 0, count));
    const user = { id: 'user_1', email: 'olga@example.com' };
    await audit(database.db, {
      account_id: own,
      user,
      action: 'key.create',
      subject: `key_${count}`,
      address: '::1',
      now,
    });
  }
  const now = new Date(Date.UTC(2026, 0, 2));
  await audit(database.db, { account_id: other, action: 'key.delete', details: { name: 'x' }, now });
  await audit(database.db, { action: 'models.reload', now: new Date(Date.UTC(2026, 0, 3)) });
});

afterAll(() => database.drop());

it('the audit log of an account has its own entries, newest first and page by page', async () => {
  const first = await listAudit(database.db, { account_id: own, limit: 3 });
  expect(first.entries.map(({ subject }) => subject)).toEqual(['key_4', 'key_3', 'key_2']);
  expect(first.entries[0]).toMatchObject({
    actor: 'olga@example.com',
    user_id: 'user_1',
    address: '::1',
    details: null,
  });
  const after = first.entries.at(-1)?.id ?? '';
  const rest = await listAudit(database.db, { account_id: own, limit: 3, after });
  expect(rest.entries.map(({ subject }) => subject)).toEqual(['key_1', 'key_0']);
  expect([first.has_more, rest.has_more]).toEqual([true, false]);
});

it('the audit log of the service has all entries, and an entry without a person is from the command line', async () => {
  const { entries } = await listAudit(database.db, { limit: 100 });
  expect(entries).toHaveLength(7);
  expect(entries[0]).toMatchObject({ account_id: null, actor: 'command line', action: 'models.reload' });
  const deleted = await listAudit(database.db, { limit: 100, action: 'key.delete' });
  expect(deleted.entries).toMatchObject([{ account_id: other, details: { name: 'x' } }]);
});

it.each([
  'update audit_entries set actor = $1',
  'delete from audit_entries where actor <> $1',
  'truncate audit_entries',
])('an audit entry cannot be changed: %s', async (sql) => {
  await expect(database.db.query(sql, sql.includes('$1') ? ['x'] : [])).rejects.toThrow('never changed or deleted');
});
