/** `/status.json`: the page Status. */
export type StatusView = {
  at: string;
  /** Anybody may see it. */
  is_public: boolean;
  /** In the order of the catalogue. */
  models: ModelStatusView[];
};

export type ModelStatusView = {
  id: string;
  name: string;
  kind: string;
  status: 'available' | 'degraded' | 'unavailable';
  /** The share of calls in the last 24 hours that did not fail, from 0 to 1; null without calls. */
  served: number | null;
  /** Median time to the first token, and to the end, in the last 24 hours; null where nothing was measured. */
  first_p50_ms: number | null;
  total_p50_ms: number | null;
  /** The share of served calls on each day in UTC, oldest first; null on days without calls. */
  days: { day: string; served: number | null }[];
};
