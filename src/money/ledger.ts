import { conditionsOf } from '../db/conditions.ts';
import type { Queryable, Tx } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import type { GrowingTable } from '../db/tables.ts';
import { assert } from '../lib/assert.ts';
import { keysOfProjects } from './key-budgets.ts';
import { money_max, type Money } from './money.ts';

/**
 * For backups: how far the ledger of each account is, and its sums. Entries are numbered without gaps under the lock of
 * the balance. Each has the time at which its statement began: two hours are far more than those of one account can be
 * out of order.
 */
export const moments = `select b.account_id, b.entries, now() as at, least(e.created_at, now()) - interval '2 hours' as summed_to
    from balances b left join usage_marks u using (account_id)
    left join lateral (select created_at from ledger_entries e where e.account_id = b.account_id
      and e.number = least(coalesce(least(u.number, u.margins), 0) + 1, b.entries) offset 0) e on true`;

/** For backups: entries never change. */
export const growing_entries: GrowingTable = {
  name: 'public.ledger_entries',
  keys: ['number'],
  is_later: '(r.number > m.entries)',
};

/** For backups: entries go only where a month is closed, which raises this. */
export const closed_entries = 'select coalesce(sum(number), 0)::text as closed from ledger_openings';

/**
 * SQL for the growing tables of later modules: the condition that the ledger has one of these entries of `ref` after
 * the moment.
 */
export function hasLaterEntry(ref: string, events: readonly LedgerEvent[]): string {
  return `exists (select from ledger_entries e where e.ref = ${ref} and e.account_id is not distinct from r.account_id
    and e.event in (${events.map((event) => `'${event}'`).join(', ')}) and e.number > m.entries offset 0)`;
}

type LedgerEvent = 'hold' | 'close' | 'late';

/** Makes the balance row of a new account; part of the transaction that makes the account. */
export async function openBalance(tx: Queryable, account_id: string, currency: string): Promise<void> {
  await tx.query('insert into balances (account_id, currency) values ($1, $2)', [account_id, currency]);
}

/** Makes the budget row of a new key; part of the transaction that makes the key. */
export async function openBudget(
  tx: Queryable,
  key: {
    id: string;
    account_id: string;
    limit_month: Money | null;
    project_id?: string | null;
    member_id?: string | null;
  },
  now: Date,
): Promise<void> {
  checkLimit(key.limit_month);
  await tx.query(
    `insert into budgets (key_id, account_id, limit_month, month, project_id, member_id)
       values ($1, $2, $3, month_of($4), $5, $6)`,
    [key.id, key.account_id, key.limit_month, now, key.project_id ?? null, key.member_id ?? null],
  );
}

/**
 * Makes the budget row of a key that shares the budget of another; part of the transaction that makes the key. Answers
 * the key whose budget both use.
 */
export async function shareBudget(
  tx: Queryable,
  key: { id: string; account_id: string; shares: string; member_id: string | null },
  now: Date,
): Promise<string> {
  const rows = await tx.query<{ shares: string }>(
    `insert into budgets (key_id, account_id, month, shares, project_id, member_id)
       select $1, $2, month_of($4), coalesce(shares, key_id), project_id, $5 from budgets
        where key_id = $3 and account_id = $2
     returning shares`,
    [key.id, key.account_id, key.shares, now, key.member_id],
  );
  const shared = rows[0]?.shares;
  assert(shared, 'the other key has a budget');
  return shared;
}

/** Changes or lifts (null) the monthly limit of a key and of those that share its budget, from the next hold on. False if there is no such key. */
export async function setLimit(db: Queryable, key_id: string, limit_month: Money | null): Promise<boolean> {
  checkLimit(limit_month);
  const rows = await db.query<{ changed: boolean }>('select money_limit($1, $2) as changed', [key_id, limit_month]);
  return rows[0]?.changed ?? false;
}

/** Moves a key, and those that share its budget, to a project (null: the default), from the next hold on. False if there is no such key. */
export async function setProject(db: Queryable, key_id: string, project_id: string | null): Promise<boolean> {
  const rows = await db.query<{ moved: boolean }>('select money_project($1, $2) as moved', [key_id, project_id]);
  return rows[0]?.moved ?? false;
}

/** Tells whether keys of an account are in the same project now. */
export async function areInOneProject(db: Queryable, account_id: string, key_ids: readonly string[]): Promise<boolean> {
  const rows = await db.query<{ project_id: string }>(
    `select coalesce(b.project_id, 'default') as project_id
       from budgets own join budgets b on b.key_id = coalesce(own.shares, own.key_id)
      where own.account_id = $1 and own.key_id = any($2)`,
    [account_id, key_ids],
  );
  return rows.length === new Set(key_ids).size && new Set(rows.map(({ project_id }) => project_id)).size === 1;
}

/** Returns the id of the project that a key is in; undefined if there is no such key. */
export async function projectOf(db: Queryable, key_id: string): Promise<string | undefined> {
  const rows = await db.query<{ project_id: string }>(
    `select coalesce(b.project_id, 'default') as project_id
       from budgets own join budgets b on b.key_id = coalesce(own.shares, own.key_id) where own.key_id = $1`,
    [key_id],
  );
  return rows[0]?.project_id;
}

/** Returns the projects that these keys are in now. */
export async function projectsByKey(db: Queryable, key_ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ key_id: string; project_id: string }>(
    `select key_id, coalesce(project_id, 'default') as project_id from budgets where key_id = any($1)`,
    [key_ids],
  );
  return new Map(rows.map(({ key_id, project_id }) => [key_id, project_id]));
}

/** Returns the keys of an account whose text a person has seen: made or rotated by them. With the projects they are in. */
export async function keysOfMember(
  db: Queryable,
  account_id: string,
  user_id: string,
): Promise<{ key_id: string; project_id: string }[]> {
  return db.query(
    `select own.key_id, coalesce(b.project_id, 'default') as project_id
       from budgets own join budgets b on b.key_id = coalesce(own.shares, own.key_id)
      where own.account_id = $1 and coalesce(own.member_id, b.member_id) = $2`,
    [account_id, user_id],
  );
}

/** Returns which of these keys are in one of these projects of an account now. */
export async function keysInProjects(
  db: Queryable,
  { account_id, project_ids }: { account_id: string; project_ids: readonly string[] },
  key_ids: readonly string[],
): Promise<Set<string>> {
  const rows = await db.query<{ key_id: string }>(`${keysOfProjects('$1', '$2')} and key_id = any($3)`, [
    account_id,
    project_ids,
    key_ids,
  ]);
  return new Set(rows.map(({ key_id }) => key_id));
}

/** Returns keys that are in one of these projects of an account now, at most `limit`. */
export async function someKeysInProjects(
  db: Queryable,
  { account_id, project_ids, limit }: { account_id: string; project_ids: readonly string[]; limit: number },
): Promise<string[]> {
  const text = `${keysOfProjects('$1', '$2')} limit $3`;
  const rows = await db.query<{ key_id: string }>(text, [account_id, project_ids, limit]);
  return rows.map(({ key_id }) => key_id);
}

function checkLimit(limit_month: Money | null): void {
  assert(limit_month === null || (limit_month >= 0n && limit_month <= money_max), 'a limit is from zero to money_max');
}

export type Credit = {
  account_id: string;
  /** `topup`: money came in (> 0). `adjustment`: a correction by the operator, either sign, never zero. */
  type: 'topup' | 'adjustment';
  amount: Money;
  /** Names the event in the outside world: the same ref is booked once. 1 to 255 characters. */
  ref: string;
  reason: string;
};

/**
 * `exists`: this ref was booked before. `conflict`: it was, but with another amount; nothing was booked
 * now. `insufficient`: it would take more than is available. `too_large`: the account would have more
 * than money_max. `leased`: nodes have leased what it takes, and are asked for it; try again, in another transaction.
 */
export type CreditAnswer = {
  outcome: 'booked' | 'exists' | 'conflict' | 'insufficient' | 'too_large' | 'leased';
  available: Money;
};

export async function credit(db: Queryable, movement: Credit, now: Date): Promise<CreditAnswer> {
  const { account_id, type, amount, ref, reason } = movement;
  assert(type === 'topup' ? amount > 0n : amount !== 0n, 'a top-up is above zero, an adjustment is not zero');
  assert(amount <= money_max && amount >= -money_max, 'no movement is larger than money_max');
  const rows = await db.query<CreditAnswer>('select * from money_credit($1, $2, $3, $4, $5, $6)', [
    now,
    account_id,
    type,
    amount,
    ref,
    reason,
  ]);
  const answer = rows[0];
  if (!answer) throw new Error('money_credit answered nothing');
  return answer;
}

/** `elsewhere`: the ref was booked before, for another account; nothing was booked now. */
export type ManualCreditAnswer = CreditAnswer | { outcome: 'elsewhere'; available: Money };

/**
 * `credit` for what a person books: their ref names one payment in the whole service, whoever it is booked for and
 * whatever its sign. Only a repeat of the very same words is `exists`.
 */
export async function creditManually(tx: Tx, movement: Credit, now: Date): Promise<ManualCreditAnswer> {
  const { account_id, type, ref } = movement;
  await tx.query(`select pg_advisory_xact_lock(hashtextextended('credit ' || $1, 0))`, [ref]); // two accounts have two locks
  const booked = await tx.query<{ account_id: string; type: string }>(
    `select account_id, type from ledger_entries where ref = $1 and event in ('topup', 'adjustment')`,
    [ref],
  );
  if (booked.some((entry) => entry.account_id !== account_id)) return { outcome: 'elsewhere', available: 0n };
  if (booked.some((entry) => entry.type !== type)) return { outcome: 'conflict', available: 0n };
  return credit(tx, movement, now);
}

export type Balance = { account_id: string; currency: string; amount: Money; held: Money };

export async function balanceOf(db: Queryable, account_id: string): Promise<Balance | undefined> {
  const rows = await db.query<Balance>(
    'select account_id, currency, amount, held from balances where account_id = $1',
    [account_id],
  );
  return rows[0];
}

/** An account's available money as of an entry, and whether a credit has lifted it to so much since another one. */
export type AccountStanding = {
  account_id: string;
  available: Money;
  currency: string;
  entry: bigint;
  credited: boolean;
};

/** An account whose standing is asked for. `after`: the entry since which credits count; null: none do. */
export type StandingRequest = { account_id: string; available: Money; after: bigint | null };

/** Returns the standing of each account. */
export async function standingsOf(db: Queryable, requests: readonly StandingRequest[]): Promise<AccountStanding[]> {
  return db.query<AccountStanding>(
    `select b.account_id, b.amount - b.held as available, b.currency, b.entries as entry,
            exists (select from ledger_entries e where e.account_id = b.account_id and e.number > r.after
              and e.type in ('topup', 'adjustment') and e.available_after >= r.available) as credited
       from unnest($1::text[], $2::bigint[], $3::bigint[]) as r (account_id, available, after)
       join balances b using (account_id)`,
    [
      requests.map(({ account_id }) => account_id),
      requests.map(({ available }) => available),
      requests.map(({ after }) => after),
    ],
  );
}

/** Counts the accounts that have less available than this. */
export async function countBelow(
  db: Queryable,
  thresholds: readonly { account_id: string; threshold: Money }[],
): Promise<bigint> {
  const rows = await db.query<{ count: bigint }>(
    `select count(*) as count from balances b
       join unnest($1::text[], $2::bigint[]) as t (account_id, threshold) using (account_id)
      where b.amount - b.held < t.threshold`,
    [thresholds.map(({ account_id }) => account_id), thresholds.map(({ threshold }) => threshold)],
  );
  return rows[0]?.count ?? 0n;
}

/** Spending and holds of a key, with those that share its budget, in the month of `now`, its limit, and where it belongs. */
export type Budget = {
  key_id: string;
  /** The key that has the budget, if this one shares it. */
  budget_id: string;
  limit_month: Money | null;
  spent: Money;
  held: Money;
  project_id: string;
};

/** Returns the budgets of these keys of an account, as they stand in the month of `now`. */
export async function budgetsOf(
  db: Queryable,
  account_id: string,
  now: Date,
  key_ids: readonly string[],
): Promise<Budget[]> {
  return db.query<Budget>(
    `select own.key_id, b.key_id as budget_id, b.limit_month, b.held, case when b.month < month_of($2) then 0 else b.spent end as spent,
            coalesce(b.project_id, 'default') as project_id
       from budgets own join budgets b on b.key_id = coalesce(own.shares, own.key_id)
      where own.account_id = $1 and own.key_id = any($3)`,
    [account_id, now, key_ids],
  );
}

/** Returns the budgets of all accounts that have used so much of their limit, held money included. */
export async function budgetsAbove(
  db: Queryable,
  percent: number,
  now: Date,
): Promise<(Omit<Budget, 'project_id' | 'budget_id'> & { account_id: string; limit_month: Money })[]> {
  return db.query(
    `select b.account_id, b.key_id, b.limit_month, b.held, s.spent
       from budgets b cross join lateral (select case when b.month < month_of($2) then 0 else b.spent end as spent) s
      where b.shares is null and b.limit_month > 0 and (s.spent + b.held)::numeric * 100 >= b.limit_month::numeric * $1
      order by b.account_id, b.key_id`,
    [percent, now],
  );
}

/** The first moment of the UTC month after `now`: when budgets begin again. */
export function nextMonth(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1));
}

/** One line of the account's history, as GET /v1/balance/transactions shows it. */
export type Entry = {
  number: bigint;
  type: 'topup' | 'hold' | 'settle' | 'release' | 'adjustment';
  available: Money;
  held: Money;
  charged: Money;
  available_after: Money;
  held_after: Money;
  key_id: string | null;
  ref: string;
  model: string | null;
  reason: string | null;
  created_at: Date;
};

export type EntryFilter = {
  account_id: string;
  limit: number;
  /** Entries older than this number. */
  after?: bigint;
  /** Entries newer than this number. */
  before?: bigint;
  type?: Entry['type'];
  /** Made at this time or later. */
  from?: Date;
  /** Made before this time. */
  to?: Date;
};

/** Entries of these types have an index of their own: they are few among holds and charges. */
const is_few = `type not in ('hold', 'settle')`;

/** Lists at most `limit` entries, newest first; `has_more`: there are further ones in the direction asked for. */
export async function listEntries(
  db: Queryable,
  filter: EntryFilter,
): Promise<{ entries: Entry[]; has_more: boolean }> {
  const { account_id, after, before, type, from, to, limit } = filter;
  const upwards = before !== undefined;
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    ['number < ?', after],
    ['number > ?', before],
    ['type = ?', type],
    ['number > entry_near($1, ?, false)', from],
    ['number <= entry_near($1, ?, true)', to],
    ['created_at >= ?', from],
    ['created_at < ?', to],
  ]);
  const few = type === undefined || type === 'hold' || type === 'settle' ? '' : ` and ${is_few}`;
  const rows = await db.query<Entry>(
    `select number, type, available, held, revenue + loss as charged, available_after, held_after,
            key_id, ref, model, reason, created_at
       from ledger_entries where ${text} and type <> 'upstream'${few}
      order by number ${upwards ? 'asc' : 'desc'} limit $${values.length + 1}`,
    [...values, limit + 1],
  );
  const page = rows.slice(0, filter.limit);
  return { entries: upwards ? page.toReversed() : page, has_more: rows.length > filter.limit };
}

/** Lists the entries of a task or a chat call, oldest first. */
export async function entriesOfRef(db: Queryable, account_id: string, ref: string): Promise<Entry[]> {
  return db.query<Entry>(
    `select number, type, available, held, revenue + loss as charged, available_after, held_after,
            key_id, ref, model, reason, created_at
       from ledger_entries where ref = $2 and account_id = $1 and type <> 'upstream' order by number`,
    [account_id, ref],
  );
}

/** A charge as it was booked: its units, what they cost, and what of that the account paid. */
export type BookedCharge = { units: Record<string, string>; cost: Money; charged: Money };

/** Returns the charge of a task or a chat call; undefined if there is none, or its month is closed and its entries are gone. */
export async function bookedCharge(db: Queryable, account_id: string, ref: string): Promise<BookedCharge | undefined> {
  const rows = await db.query<BookedCharge>(
    `select coalesce(units, '{}') as units, revenue as cost, revenue + loss as charged
       from ledger_entries where ref = $2 and account_id = $1 and type = 'settle' order by number desc limit 1`,
    [account_id, ref],
  );
  return rows[0];
}

/** A try of a route that did not end the customer's money, and may have cost something. */
export type LostTry = {
  account_id: string;
  ref: string;
  /** The number of the attempt; noted once. */
  number: number;
  provider: string;
  route: string;
  model: string;
  kind: string;
};

/** Notes for the operator that the upstream of a try may have charged something, nobody knows what. */
export async function noteUnknownCost(db: Queryable, lost: LostTry, now: Date): Promise<void> {
  await db.query(`select note_upstream($1, $2, 'unknown')`, [now, recordText(lost)]);
}
