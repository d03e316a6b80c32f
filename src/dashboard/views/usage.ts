import type { Cost } from './common.ts';

/** `metadata.team`: by the pair of this name. */
export type UsageGrouping = 'model' | 'key' | 'project' | 'kind' | 'user' | 'tag' | `metadata.${string}`;

export type UsageSum = {
  count: number;
  cost: Cost;
  /** unit → decimal text. */
  units: Record<string, string>;
};

export type UsageView = {
  from: string;
  to: string;
  /** As long as the range, and directly before it. */
  before: { from: string; to: string };
  /** The time that one bar covers. */
  step: 'hour' | 'day';
  group: UsageGrouping;
  /** Groups, the most expensive first. */
  rows: (UsageSum & { id: string; name: string; before: UsageSum | null })[];
  /** Groups beyond these rows. */
  rows_more: number;
  /** Names of metadata on the account's newest calls and tasks. */
  pairs: string[];
  /** Every hour or day of the range that has charges, oldest first. */
  bars: { at: string; parts: (UsageSum & { id: string })[] }[];
  total: UsageSum;
  total_before: UsageSum;
};

/** The mail about spend that a person gets. */
export type SpendMailView = {
  /** False: this service sends no mail. */
  mails: boolean;
  /** The person's proved address; null if there is none. */
  email: string | null;
  /** Null: they get none. */
  every: 'day' | 'week' | 'month' | null;
  group: UsageGrouping | null;
};
