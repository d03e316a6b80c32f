import type { Db, Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { whileLeased } from '../leases/while-leased.ts';
import { ApiError } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import { balanceView, money_max, type Money } from './money.ts';

/**
 * Budgets of an account, beside the monthly limits of keys. A hard one is never passed: each hold that counts in it is
 * decided by PostgreSQL. A soft one only tells people how far it is.
 */

export const budget_scopes = ['account', 'project', 'key', 'member'] as const;
export type BudgetScope = (typeof budget_scopes)[number];

export const budget_periods = ['day', 'week', 'month', 'total'] as const;
export type BudgetPeriod = (typeof budget_periods)[number];

/** Percentages of its amount at which people can hear of a budget. */
export const alert_percents = [50, 80, 100] as const;
export type AlertPercent = (typeof alert_percents)[number];

/** Budgets of one account at most. */
export const budgets_max = 100;

type AccountBudget = {
  id: string;
  account_id: string;
  name: string;
  scope: BudgetScope;
  /** The project, the key that has the monthly budget, or the member; null for the account. */
  subject: string | null;
  period: BudgetPeriod;
  amount: Money;
  is_hard: boolean;
  /** Percentages at which people hear of it; none: they do not. */
  alert_percents: readonly AlertPercent[];
  created_at: Date;
};

/** `spent` since the period began; `held` are open holds, which count in every period until they end. */
export type BudgetState = AccountBudget & { spent: Money; held: Money; begins_at: Date | null; ends_at: Date | null };

/** Returns the first moment of the period of `now` (UTC) and of the one after it; null of all time. */
export function periodOf(period: BudgetPeriod, now: Date): { begins_at: Date; ends_at: Date } | null {
  const [year, month, day] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  const from = (first: number, next: number) => {
    return { begins_at: new Date(Date.UTC(year, month, first)), ends_at: new Date(Date.UTC(year, month, next)) };
  };
  switch (period) {
    case 'day':
      return from(day, day + 1);
    case 'week': {
      const monday = day - ((now.getUTCDay() + 6) % 7);
      return from(monday, monday + 7);
    }
    case 'month':
      return { begins_at: new Date(Date.UTC(year, month, 1)), ends_at: new Date(Date.UTC(year, month + 1, 1)) };
    case 'total':
      return null;
  }
}

/** Reads what is spent and held of each budget `a`, at $1. */
const states = `
  select a.id, a.account_id, a.name, a.scope, a.subject, a.period, a.amount, a.is_hard, a.alert_percents, a.created_at,
         case when not a.is_hard then budget_spent(a.account_id, a.scope, a.subject, period_begin(a.period, $1))
           when a.period_start < period_begin(a.period, $1) then 0 else a.spent end as spent,
         case when a.is_hard then a.held + a.exposed else (
           select coalesce(sum(h.amount), 0)::bigint
             from open_holds h join budgets own on own.key_id = h.key_id
             join budgets k on k.key_id = coalesce(own.shares, own.key_id)
            where h.account_id = a.account_id
              and is_in_budget(a.scope, a.subject, h.project_id, k.key_id, k.member_id)) end as held
    from account_budgets a`;

type StateRow = AccountBudget & { spent: Money; held: Money };

function stateIn(row: StateRow, now: Date): BudgetState {
  const { begins_at = null, ends_at = null } = periodOf(row.period, now) ?? {};
  return { ...row, begins_at, ends_at };
}

/** Returns the budgets of an account, oldest first, as they stand now. */
export async function listAccountBudgets(db: Queryable, account_id: string, now: Date): Promise<BudgetState[]> {
  const rows = await db.query<StateRow>(`${states} where a.account_id = $2 order by a.created_at, a.id`, [
    now,
    account_id,
  ]);
  return rows.map((row) => stateIn(row, now));
}

/** Returns one budget of an account. */
export async function findAccountBudget(
  db: Queryable,
  { account_id, id }: Pick<AccountBudget, 'account_id' | 'id'>,
  now: Date,
): Promise<BudgetState | undefined> {
  const [row] = await db.query<StateRow>(`${states} where a.account_id = $2 and a.id = $3`, [now, account_id, id]);
  return row && stateIn(row, now);
}

/** Returns the budgets of all accounts. */
export async function allAccountBudgets(db: Queryable, now: Date): Promise<BudgetState[]> {
  const rows = await db.query<StateRow>(`${states} order by a.account_id, a.id`, [now]);
  return rows.map((row) => stateIn(row, now));
}

/**
 * A budget as it is set. Scope, subject and period stay as they were when it was made, and so do its alerts where none are
 * set; a new budget has all of them.
 */
export type BudgetSetting = Omit<AccountBudget, 'created_at' | 'alert_percents'> &
  Partial<Pick<AccountBudget, 'alert_percents'>>;

/**
 * Makes a budget, or changes the name, amount and hardness of one; from the next hold on, on every node. A new hard budget
 * counts what was spent since its period began, and what is held. `leased`: a node holds on to the account's money for
 * longer than nodes do that are alive.
 */
export async function setAccountBudget(
  db: Db,
  budget: BudgetSetting,
  now: Date,
): Promise<'set' | 'crowded' | 'leased'> {
  const { amount } = budget;
  assert(amount >= 0n && amount <= money_max, 'a budget is from zero to money_max');
  const record = recordText({ ...budget, amount: String(amount) });
  const { outcome } = await whileLeased(async () => {
    const rows = await db.query<{ outcome: 'set' | 'crowded' | 'leased' }>(
      'select set_account_budget($1, $2, $3) as outcome',
      [now, record, budgets_max],
    );
    const [row] = rows;
    assert(row, 'set_account_budget answers');
    return row;
  });
  return outcome;
}

/** Returns false if the account has no such budget. */
export async function removeAccountBudget(db: Queryable, account_id: string, id: string): Promise<boolean> {
  const rows = await db.query<{ removed: boolean }>('select remove_account_budget($1, $2) as removed', [
    account_id,
    id,
  ]);
  return rows[0]?.removed ?? false;
}

/** A key whose hold was refused. */
export type RefusedKey = { account_id: string; key_id: string };

/** The hard budget that refused a hold, and what is left of it. */
export type RefusingBudget = BudgetState & { room: Money };

/**
 * Returns the hard budget of which the least is left for a key, if that is less than the key's own limit leaves it; for
 * the message of a refusal.
 */
export async function refusingBudget(
  db: Queryable,
  { account_id, key_id }: RefusedKey,
  now: Date,
): Promise<RefusingBudget | undefined> {
  const rows = await db.query<StateRow & { room: Money; own_room: Money | null }>(
    `select s.*, s.amount - s.spent - s.held as room,
            k.limit_month - case when k.month < month_of($1) then 0 else k.spent end - k.held - k.exposed as own_room
       from (${states} where a.account_id = $2 and a.is_hard) s
       join budgets own on own.key_id = $3 join budgets k on k.key_id = coalesce(own.shares, own.key_id)
      where is_in_budget(s.scope, s.subject, k.project_id, k.key_id, k.member_id)
      order by room, s.id limit 1`,
    [now, account_id, key_id],
  );
  const [row] = rows;
  if (!row || (row.own_room !== null && row.own_room < row.room)) return undefined;
  return { ...stateIn(row, now), room: row.room };
}

/** A hold that was refused. `needed`: its amount, as callers see it. `is_limited`: the caller does not see budgets of the account. */
type RefusedHold = {
  is_limited: true | undefined;
  what: 'call' | 'task';
  needed: string;
  currency: string;
  key_id: string;
  model: string;
};

/** The answer to a hold that a hard budget refused. */
export function budgetReached(
  { id, name, amount, room, ends_at }: RefusingBudget,
  { what, needed, currency, is_limited, key_id, model }: RefusedHold,
): ApiError {
  const text = (value: Money) => `${balanceView(value < 0n ? 0n : value, currency).amount} ${currency}`;
  const reset = ends_at ? `It resets at ${ends_at.toISOString()}.` : 'It is for all time: it never resets.';
  const in_short = `A budget of the account is reached: the ${what} needs a hold of ${needed}. Ask an owner of the account to raise it.`;
  const message =
    `The budget "${name}" is reached: the ${what} needs a hold of ${needed}, and ${text(room)} of ${text(amount)} is left. ` +
    `${reset} Wait for that, or ask an owner of the account to raise it.`;
  return new ApiError('key_limit', is_limited ? in_short : message, {
    code: 'budget_reached',
    headers: { 'x-should-retry': 'false' },
    refusal: { reason: 'budget_reached', budget_id: id, key_id, model },
  });
}
