import type { BatcherOptions } from '../db/batcher.ts';
import type { Queryable } from '../db/database.ts';

/**
 * Options of a batcher whose calls lock the balances of accounts: one that somebody else has locked delays no other. The
 * calls must be sent with `brief` patience.
 */
export function lockedBy<Member>(
  db: Queryable,
  groupOf: (member: Member) => string,
): NonNullable<BatcherOptions<Member, unknown>['groups']> {
  return { groupOf, findFree: (account_ids) => unlockedAccounts(db, account_ids) };
}

/** Those of the accounts whose balance no other transaction has locked; waits for none. */
async function unlockedAccounts(db: Queryable, account_ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ account_id: string }>(
    'select account_id from balances where account_id = any($1) order by account_id for update skip locked',
    [account_ids],
    'brief',
  );
  return rows.map(({ account_id }) => account_id);
}
