import { randomBytes } from 'node:crypto';
import type { Db, Queryable, Tx } from '../db/database.ts';
import { newId } from '../lib/ids.ts';
import { credit, openBalance } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';

/** The party that pays. */
export type Account = {
  id: string;
  name: string;
  currency: string;
  status: 'active' | 'blocked';
  webhook_secret: string;
  /** Signs beside the new one for a day after a rotation. */
  webhook_secret_before: string | null;
  webhook_secret_rotated_at: Date | null;
  /** Answers of the responses style are kept, for as long as the configuration says. */
  keeps_responses: boolean;
  /** Members without a second factor see nothing of it. */
  second_factor_required: boolean;
  created_at: Date;
};

/** `whsec_` + base64 of 32 bytes, the form of the Standard Webhooks specification. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Makes an account with its balance, and a first top-up unless `initial_credit` is zero. */
export async function createAccount(
  db: Db,
  account: { name: string; currency: string; initial_credit: Money },
  now: Date,
): Promise<Account> {
  return db.tx((tx) => insertAccount(tx, account, now));
}

/** The same within a transaction. */
export async function insertAccount(
  tx: Tx,
  account: { name: string; currency: string; initial_credit: Money },
  now: Date,
): Promise<Account> {
  const rows = await tx.query<Account>(
    `insert into accounts (id, name, currency, webhook_secret, created_at) values ($1, $2, $3, $4, $5) returning *`,
    [newId('acct', now.getTime()), account.name, account.currency, newWebhookSecret(), now],
  );
  const row = rows[0];
  if (!row) throw new Error('the account was not made');
  await openBalance(tx, row.id, row.currency);
  await openOrganization(tx, row);
  if (account.initial_credit !== 0n) {
    const first = {
      account_id: row.id,
      type: 'topup',
      amount: account.initial_credit,
      ref: `initial ${row.id}`,
      reason: 'initial credit',
    } as const;
    await credit(tx, first, now);
  }
  return row;
}

/** Opens the account's organization in the tables of the login library; its members belong to it. */
async function openOrganization(tx: Queryable, account: Account): Promise<void> {
  await tx.query('insert into auth.organization (id, name, slug, "createdAt") values ($1, $2, $1, $3)', [
    account.id,
    account.name,
    account.created_at,
  ]);
}

/**
 * Gives the account a new webhook secret, from the next attempt of any delivery on. For 24 hours the
 * standard signature is made with the one before as well (`accounts` in sql/migrations). Undefined
 * if there is no such account.
 */
export async function rotateWebhookSecret(db: Queryable, id: string, now: Date): Promise<string | undefined> {
  const rows = await db.query<{ webhook_secret: string }>(
    `update accounts set webhook_secret_before = webhook_secret, webhook_secret_rotated_at = $3, webhook_secret = $2
      where id = $1 returning webhook_secret`,
    [id, newWebhookSecret(), now],
  );
  return rows[0]?.webhook_secret;
}

/** Reasons why an account cannot be deleted. */
export const undeletable = {
  money: 'The account has entries in its ledger, which are never deleted.',
  history: 'The account has work on record: tasks, chat calls, files, deliveries or invoices.',
} as const;

/**
 * Deletes an account that never had money or work, with its keys and memberships. Otherwise nothing changes, and the
 * answer says why; `absent` if there is no such account.
 */
export async function deleteAccount(
  db: Queryable,
  id: string,
): Promise<'deleted' | 'absent' | keyof typeof undeletable> {
  const rows = await db.query<{ outcome: 'deleted' | 'absent' | keyof typeof undeletable }>(
    'select delete_account($1) as outcome',
    [id],
  );
  return rows[0]?.outcome ?? 'absent';
}

export async function findAccount(db: Queryable, id: string): Promise<Account | undefined> {
  const rows = await db.query<Account>('select * from accounts where id = $1', [id]);
  return rows[0];
}

/** Returns the names of accounts by their ids. */
export async function accountNames(db: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ id: string; name: string }>('select id, name from accounts where id = any($1)', [ids]);
  return new Map(rows.map(({ id, name }) => [id, name]));
}

export async function accountCurrencies(db: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ id: string; currency: string }>(
    'select id, currency from accounts where id = any($1)',
    [ids],
  );
  return new Map(rows.map(({ id, currency }) => [id, currency]));
}

/** All accounts, oldest first. */
export async function listAccounts(db: Queryable): Promise<Account[]> {
  return db.query<Account>('select * from accounts order by created_at, id');
}

/**
 * Accounts whose name or id has these letters, or the name or address of one of their people, or which have a key with
 * this id or these last four characters, newest first: ids sort by time, so they are the cursor.
 */
export async function searchAccounts(
  db: Queryable,
  { search, after, limit }: { search: string; after: string | undefined; limit: number },
): Promise<Account[]> {
  return db.query<Account>(
    `select * from accounts where ($1 = '' or strpos(lower(name), lower($1)) > 0 or strpos(id, $1) > 0
          or id in (select account_id from api_keys where id = $1 or (last_four = $1 and kind = 'program'))
          or id in (select m."organizationId" from auth.member m join auth."user" u on u.id = m."userId"
                     where strpos(lower(u.email), lower($1)) > 0 or strpos(lower(u.name), lower($1)) > 0))
        and ($2::text is null or id < $2) order by id desc limit $3`,
    [search.replaceAll('\0', ''), after ?? null, limit],
  );
}

/** Counts the accounts of each currency. */
export async function currenciesInUse(db: Queryable): Promise<Map<string, number>> {
  const rows = await db.query<{ currency: string; accounts: bigint }>(
    'select currency, count(*) as accounts from accounts group by currency order by currency',
  );
  return new Map(rows.map(({ currency, accounts }) => [currency, Number(accounts)]));
}

/** Decides whether answers of the responses style are kept. False if there is no such account. */
export async function setKeepsResponses(db: Queryable, id: string, keeps_responses: boolean): Promise<boolean> {
  const rows = await db.query('update accounts set keeps_responses = $2 where id = $1 returning id', [
    id,
    keeps_responses,
  ]);
  return rows.length === 1;
}

/** Gives an account another name, which invitations and mails have from then on. Returns the name before. */
export async function renameAccount(db: Queryable, id: string, name: string): Promise<string | undefined> {
  const rows = await db.query<{ name: string }>(
    `with before as (select id, name from accounts where id = $1 for update),
          organization as (update auth.organization o set name = $2 from before where o.id = before.id)
     update accounts a set name = $2 from before where a.id = before.id returning before.name`,
    [id, name],
  );
  return rows[0]?.name;
}

/** Decides whether members need a second factor. */
export async function requireSecondFactor(db: Queryable, id: string, is_required: boolean): Promise<void> {
  await db.query('update accounts set second_factor_required = $2 where id = $1', [id, is_required]);
}

/**
 * Blocks or unblocks an account: blocked, its keys can read but start nothing new; what runs goes
 * on to its end. False if there is no such account.
 */
export async function setAccountStatus(db: Queryable, id: string, status: Account['status']): Promise<boolean> {
  const rows = await db.query('update accounts set status = $2 where id = $1 returning id', [id, status]);
  return rows.length === 1;
}
