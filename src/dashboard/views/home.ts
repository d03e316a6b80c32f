import type { TaskLineView } from './activity.ts';
import type { Cost } from './common.ts';

export type HomeView = {
  spend: {
    today: Cost;
    month: Cost;
    /** From the first of last month to this day and time of it. */
    month_before: Cost;
    /** The last 30 UTC days, oldest first, none left out. */
    days: { day: string; cost: Cost }[];
  };
  running: TaskLineView[];
  /** The newest that have something to look at. */
  results: TaskLineView[];
  failures: { counted: number; limit: number; paused_until: string | null };
  /** Keys that have used at least four fifths of their month, the fullest first; five at most. */
  keys_near_limit: { id: string; name: string; used_percent: number }[];
  /** There are further keys near their limit. */
  has_more_near_limit: boolean;
  /** Webhooks of the last 24 hours: dropped, and failed so far. */
  undelivered: { dropped: number; retrying: number };
  /** Below how much the account wants to be told; null if there is more, or it does not. */
  low_balance: Cost | null;
  /** Steps that a new account has done. `key`: this person has made a key. Of members of some projects, `api` is that they have used one. */
  steps: { image: boolean; api: boolean; webhook: boolean; key: boolean };
};
