import { createAccount } from '../../src/accounts/accounts.ts';
import { createKey, rotateKey } from '../../src/accounts/keys.ts';
import type { Db, Queryable } from '../../src/db/database.ts';
import type { CloseRequest, HoldRequest } from '../../src/money/holds.ts';
import type { Money } from '../../src/money/money.ts';

/** A day in the middle of a month. */
export const noon = new Date('2026-11-15T12:00:00Z');

export type Wallet = { account_id: string; key_id: string };

/** An account with money and one key. */
export async function openWallet(
  db: Db,
  options: { credit?: Money; limit?: Money | null; currency?: string; now?: Date } = {},
): Promise<Wallet> {
  const { credit = 0n, limit = null, currency = 'USD', now = noon } = options;
  const account = await createAccount(db, { name: 'test', currency, initial_credit: credit }, now);
  const key_id = await openKey(db, account.id, limit, now);
  return { account_id: account.id, key_id };
}

/** One more key of an account. */
export async function openKey(db: Db, account_id: string, limit: Money | null = null, now = noon): Promise<string> {
  const { key } = await createKey(db, { account_id, name: 'test', limit_month: limit }, now);
  return key.id;
}

/** A key that takes the place of the wallet's, which works on for a day. */
export async function rotated(db: Db, wallet: Wallet, now = noon): Promise<Wallet & { budget_id: string }> {
  const answer = await rotateKey(db, wallet.key_id, { overlap_ms: 86_400_000, limits: false }, now);
  const [row] = await db.query<{ budget_id: string }>('select budget_id from api_keys where id = $1', [answer?.key.id]);
  if (!answer || !row) throw new Error('the key was not rotated');
  return { ...wallet, key_id: answer.key.id, budget_id: row.budget_id };
}

export function holdOf(wallet: Wallet, ref: string, amount: Money): HoldRequest {
  return { ...wallet, ref, amount, model: 'test/model', kind: 'chat' };
}

export function closeOf(wallet: Wallet, ref: string, cost: Money | null, beyond_hold = false): CloseRequest {
  return { account_id: wallet.account_id, ref, cost, beyond_hold };
}

export type Standing = { amount: Money; held: Money; spent: Money; key_held: Money; month: string };

/** Returns the state of an account and its key, as their rows have it. */
export async function standingOf(db: Queryable, wallet: Wallet): Promise<Standing> {
  const rows = await db.query<Standing>(
    `select b.amount, b.held, k.spent, k.held as key_held, to_char(k.month, 'YYYY-MM') as month
       from balances b join budgets k on k.account_id = b.account_id
      where b.account_id = $1 and k.key_id = $2`,
    [wallet.account_id, wallet.key_id],
  );
  const row = rows[0];
  if (!row) throw new Error('there is no such wallet');
  return row;
}
