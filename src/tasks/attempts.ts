import type { Clock } from '../lib/clock.ts';
import type { ProviderLimits, Route } from '../catalog/model.ts';
import type { Queryable, Db } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { randomBase62 } from '../lib/ids.ts';
import type { RunState } from '../providers/provider.ts';
import { task_columns, tidyText, type Attempt, type AttemptState, type Task, type TaskRef } from './task.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';
import { limitsText } from './throttled.ts';

/** The parts of the app that calls of this module take. */
type Parts = {
  readonly db: Db;
  readonly clock: Clock;
};

/** A task with its open attempt, if it has one. */
export type TaskAtWork = { task: Task; open: Attempt | undefined };

/** Loads a task for a worker, in one statement. Undefined if there is no such task. */
export async function loadAtWork(db: Queryable, ref: TaskRef): Promise<TaskAtWork | undefined> {
  type Row = Task & { open: (Omit<Attempt, 'created_at'> & { created_at: string }) | null };
  const rows = await db.query<Row>(
    `select ${task_columns}, (select to_json(a) from attempts a
       where a.account_id = t.account_id and a.task_id = t.id and a.ended_at is null) as open
       from tasks t where account_id = $1 and id = $2`,
    [ref.account_id, ref.task_id],
  );
  if (!rows[0]) return undefined;
  const { open, ...task } = rows[0];
  return { task, open: open ? { ...open, created_at: new Date(open.created_at) } : undefined };
}

/** The number and the claim of an attempt, for a worker that goes on with it. */
export type AttemptClaim = Pick<Attempt, 'number' | 'claim'>;

/** The route of a try as it was at its submit. */
export function routeOf(attempt: Attempt): Route {
  return JSON.parse(attempt.route_settings); // our own text, written by openAttempt
}

/**
 * Writes a try down before the upstream is called, and answers the claim on it. `full` if its provider has no room for
 * it by these limits, or others wait for that. Undefined if the task is final by now, or another try of it is open.
 */
export async function openAttempt(
  parts: Parts,
  ref: TaskRef,
  attempt: { number: number; name: string; route: Route },
  limits: ProviderLimits | undefined,
): Promise<AttemptClaim | 'full' | undefined> {
  const claimed = { number: attempt.number, claim: randomBase62(16) };
  const { name, route } = attempt;
  const row = { ...ref, ...claimed, route: name, provider: route.provider, route_settings: JSON.stringify(route) };
  const values = [new Date(parts.clock.now()), recordText(row), limitsText(limits)];
  const rows = await retryWhileUnavailable(() =>
    parts.db.query<{ outcome: 'begun' | 'full' | 'stale' }>('select begin_attempt($1, $2, $3) as outcome', values),
  );
  const outcome = rows[0]?.outcome;
  if (outcome === 'full') return 'full';
  return outcome === 'begun' ? claimed : undefined;
}

/** Takes an open try over from a worker that was lost; what that one still writes is refused. */
export async function claimAttempt(
  parts: Parts,
  ref: TaskRef,
  attempt: AttemptClaim,
): Promise<AttemptClaim | undefined> {
  const claimed = { number: attempt.number, claim: randomBase62(16) };
  const values = [ref.account_id, ref.task_id, attempt.number, attempt.claim, claimed.claim];
  return (await isApplied(parts.db, 'select claim_attempt($1, $2, $3, $4, $5) as applied', values))
    ? claimed
    : undefined;
}

/**
 * Notes what the upstream said of a run that goes on: its reference, and the start of the task the
 * first time it is seen running. `seen_ref` is the reference known before; without one, the poll job
 * is sent along. False if the try was closed, claimed or noted otherwise in between.
 */
export async function acceptAttempt(
  parts: Parts,
  ref: TaskRef,
  attempt: AttemptClaim & { seen_ref: string | null },
  state: RunState & { phase: 'waiting' | 'running' },
  poll_after_ms: number,
): Promise<boolean> {
  const run = {
    ...ref,
    number: attempt.number,
    claim: attempt.claim,
    seen_ref: attempt.seen_ref,
    run_ref: JSON.stringify(state.ref),
    running: state.phase === 'running',
    poll_after_ms,
  };
  return isApplied(parts.db, 'select note_run($1, $2) as applied', [new Date(parts.clock.now()), recordText(run)]);
}

/**
 * Closes a try that did not lead to a run; with `send_start`, the next routes get a job. False if it
 * was closed otherwise, or claimed, in between.
 */
export async function closeAttempt(
  parts: Parts,
  ref: TaskRef,
  attempt: AttemptClaim,
  end: { state: AttemptState; reason: string; message: string },
  options: { send_start: boolean } = { send_start: false },
): Promise<boolean> {
  const closed = {
    ...ref,
    number: attempt.number,
    claim: attempt.claim,
    state: end.state,
    reason: tidyText(end.reason),
    message: tidyText(end.message),
  };
  const values = [new Date(parts.clock.now()), recordText(closed), options.send_start];
  return isApplied(parts.db, 'select fail_attempt($1, $2, $3) as applied', values);
}

/** Attempts of a task that ended without them, and whose runs are to be stopped. */
export async function listAbandoned(db: Queryable, ref: TaskRef): Promise<Attempt[]> {
  return db.query<Attempt>(
    `select * from attempts where account_id = $1 and task_id = $2 and state = 'abandoned' and run_ref is not null`,
    [ref.account_id, ref.task_id],
  );
}

/** Returns those of the attempts that their upstreams have accepted and not ended, by their tasks. */
export async function acceptedAmong(
  db: Queryable,
  attempts: readonly (TaskRef & { number: number })[],
): Promise<Set<string>> {
  const rows = await db.query<{ task_id: string }>(
    `select task_id from attempts
       join unnest($1::text[], $2::text[], $3::int[]) as reported (account_id, task_id, number) using (account_id, task_id, number)
      where state = 'accepted'`,
    [attempts.map((one) => one.account_id), attempts.map((one) => one.task_id), attempts.map((one) => one.number)],
  );
  return new Set(rows.map((row) => row.task_id));
}

/** The upstream confirmed that an abandoned run stopped, unbilled. */
export async function setStopped(parts: Parts, ref: TaskRef, attempt: AttemptClaim): Promise<void> {
  await parts.db.query('select stop_attempt($1, $2, $3, $4)', [
    new Date(parts.clock.now()),
    ref.account_id,
    ref.task_id,
    attempt.number,
  ]);
}

/** Calls one of the functions of attempts, all of which may be repeated. */
async function isApplied(db: Db, call: string, values: readonly unknown[]): Promise<boolean> {
  const rows = await retryWhileUnavailable(() => db.query<{ applied: boolean }>(call, values));
  return rows[0]?.applied === true;
}
