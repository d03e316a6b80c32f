/** Reasons for which requests are refused before any work. */
export type RefusalReason =
  | 'insufficient_balance'
  | 'monthly_limit'
  | 'budget_reached'
  | 'model_not_allowed'
  | 'scope_missing'
  | 'address_not_allowed'
  | 'limited_to_projects'
  | 'account_blocked'
  | 'rate_limit'
  | 'concurrency_limit'
  | 'failures_pause';

type Named = { id: string; name: string };

/** Requests with the same names; null where they have none. */
export type RefusedPart = { key: Named | null; budget: Named | null; model: string | null; count: number };

/** Requests that were refused before any work. */
export type RefusalsView = {
  from: string;
  to: string;
  /** The time that one bar covers. */
  step: 'hour' | 'day';
  total: number;
  /** The most frequent first. `last_at`: when the last hour with one began. `parts`: the largest of them. */
  reasons: { reason: RefusalReason; count: number; last_at: string; parts: RefusedPart[] }[];
  /** Every hour or day of the range that has refusals, oldest first. */
  bars: { at: string; parts: { reason: RefusalReason; count: number }[] }[];
};
