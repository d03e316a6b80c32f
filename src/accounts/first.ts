import type { Db } from '../db/database.ts';
import type { Money } from '../money/money.ts';
import { createAccount, listAccounts } from './accounts.ts';
import { createKey } from './keys.ts';

const advisory_lock = 7_633_529_003;

/**
 * Makes, on the very first start, an account with demo credit and one key. Returns the text of the key, or undefined if
 * there is a key already. Two nodes that start together make one: the lock is held around it.
 */
export async function makeFirstAccount(
  db: Db,
  demo: { currency: string; credit: Money },
  now: Date,
): Promise<{ account_id: string; key: string } | undefined> {
  return db.tx(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [advisory_lock]);
    if ((await tx.query('select 1 from api_keys limit 1')).length > 0) return undefined;
    const account =
      (await listAccounts(tx))[0] ??
      (await createAccount(db, { name: 'Demo', currency: demo.currency, initial_credit: demo.credit }, now));
    const { text } = await createKey(db, { account_id: account.id, name: 'Default', limit_month: null }, now);
    return { account_id: account.id, key: text };
  });
}
