/** Times in milliseconds; null where nothing was measured. */
export type SpeedFigures = {
  count: number;
  failed: number;
  first_p50_ms: number | null;
  first_p95_ms: number | null;
  total_p50_ms: number | null;
  total_p95_ms: number | null;
  tokens_per_second: number | null;
  feedback_count: number;
  /** Mean, from -1 to 1. */
  feedback_score: number | null;
};

/** `metadata.team`: by the pair of this name. `route` for operators. */
export type SpeedGrouping = 'model' | 'key' | 'route' | 'user' | 'tag' | `metadata.${string}`;

export type SpeedView = {
  from: string;
  to: string;
  step: 'hour' | 'day';
  group: SpeedGrouping;
  /** Groups, those with the most calls first; the id is empty where there is none. */
  rows: (SpeedFigures & { id: string; name: string })[];
  /** Every hour or day that has calls, oldest first. */
  points: (SpeedFigures & { at: string })[];
  /** Null if there was no call. */
  total: SpeedFigures | null;
  /** Names of metadata on the account's newest calls and tasks. */
  pairs: string[];
};
