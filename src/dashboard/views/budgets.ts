import type { Cost } from './common.ts';

export type BudgetScope = 'account' | 'project' | 'key' | 'member';
export type BudgetPeriod = 'day' | 'week' | 'month' | 'total';

type Named = { id: string; name: string };

export type BudgetView = {
  id: string;
  name: string;
  scope: BudgetScope;
  /** The project, key or member; null for the whole account. */
  subject: Named | null;
  period: BudgetPeriod;
  amount: Cost;
  /** Calls that it does not pay are refused. */
  is_hard: boolean;
  /** Percentages at which people hear of it; none: they do not. */
  alert_percents: number[];
  /** Number of requests that it has refused in its period. */
  refused: number;
  spent: Cost;
  held: Cost;
  /** Spent and held, of the amount; 999 at most. */
  used_percent: number;
  /** The begin of the period; null for all time. */
  begins_at: string | null;
  ends_at: string | null;
  /** Spending by the end of the period at the speed so far; null for all time, and at its beginning. */
  projection: Cost | null;
};

/** `choices`: subjects that a budget can have, beside working keys. */
export type BudgetsView = { data: BudgetView[]; choices: { projects: Named[]; members: Named[] } };
