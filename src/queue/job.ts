/** Data of a job: a small JSON object, usually ids; its handler checks the shape. */
export type JobData = Record<string, unknown>;

export type Job = {
  /** Changes whenever the job is rescheduled; do not store it. */
  readonly id: string;
  readonly queue: string;
  readonly data: JobData;
  /**
   * Number of earlier starts of this job without an outcome: its handler threw, or its worker died or lost the
   * database. 0 at first, and 0 again after each `again_after_ms`, but not after `defer_ms`.
   */
  readonly attempt: number;
  /** Aborts when the engine stops or when the job no longer belongs to this worker. */
  readonly signal: AbortSignal;
};

/**
 * `done` removes the job; `again_after_ms` runs it once more, after that time (a poll). `defer_ms` leaves it as it
 * was, not begun, until that time has passed or somebody promotes it.
 */
export type Outcome = 'done' | { again_after_ms: number } | { defer_ms: number };

/**
 * Works on one job. Runs at least once: a worker can die between the work and its outcome, so
 * effects must be guarded by the rows they change. A throw runs it again after 1 s, then 2 s, 4 s
 * and so on up to 30 s, without end: a handler that wants to give up looks at `attempt`.
 */
export type Handler = (job: Job) => Promise<Outcome>;

/** A job as claimed from its queue. `retry_count` names the claim: every later one has a higher. */
export type Claim = { id: string; retry_count: number; heartbeat_s: number; data: JobData };

/** The end of a claim, in the words of the statements that record it. */
export type Settlement =
  | { fate: 'done' }
  | { fate: 'again'; delay_ms: number }
  | { fate: 'failed'; delay_ms: number; reason: string }
  | { fate: 'deferred'; delay_ms: number }
  | { fate: 'returned' };
