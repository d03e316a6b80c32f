import type { App } from '../app.ts';
import { isUniqueViolation } from '../db/database.ts';
import type { RunState } from '../providers/provider.ts';
import type { AttemptState, TaskRef } from './task.ts';

/**
 * Writes a try down before the upstream is called. False if the task is final by now, or another
 * worker has an attempt of it open: the share lock waits for a finish that is under way.
 */
export async function openAttempt(
  app: App,
  ref: TaskRef,
  attempt: { number: number; route: string; provider: string },
): Promise<boolean> {
  try {
    const rows = await app.db.query(
      `insert into attempts (account_id, task_id, number, route, provider, created_at)
       select account_id, id, $3, $4, $5, $6 from tasks
        where account_id = $1 and id = $2 and completed_at is null for share
       returning number`,
      [ref.account_id, ref.task_id, attempt.number, attempt.route, attempt.provider, new Date(app.clock.now())],
    );
    return rows.length === 1;
  } catch (error) {
    if (isUniqueViolation(error)) return false;
    throw error;
  }
}

/**
 * Notes what the upstream said of a run that goes on: its reference, and the start of the task the
 * first time it is seen running. With `poll_after_ms` the poll job is sent in the same transaction.
 * False if the attempt was closed in between.
 */
export async function acceptAttempt(
  app: App,
  ref: TaskRef,
  number: number,
  state: RunState & { phase: 'waiting' | 'running' },
  options: { poll_after_ms?: number } = {},
): Promise<boolean> {
  const rows = await app.db.query<{ accepted: boolean }>(
    'select accept_attempt($1, $2, $3, $4, $5, $6, $7) as accepted',
    [
      new Date(app.clock.now()),
      ref.account_id,
      ref.task_id,
      number,
      JSON.stringify(state.ref),
      state.phase === 'running',
      options.poll_after_ms ?? null,
    ],
  );
  return rows[0]?.accepted === true;
}

/** Closes a try that did not lead to a run; with `send_start`, the next routes get a job. */
export async function closeAttempt(
  app: App,
  ref: TaskRef,
  number: number,
  end: { state: AttemptState; reason: string; message: string },
  options: { send_start: boolean } = { send_start: false },
): Promise<boolean> {
  return app.db.tx(async (tx) => {
    const rows = await tx.query(
      `update attempts set state = $4, reason = $5, message = $6, ended_at = $7
        where account_id = $1 and task_id = $2 and number = $3 and ended_at is null returning number`,
      [
        ref.account_id,
        ref.task_id,
        number,
        end.state,
        end.reason,
        end.message.slice(0, 2000),
        new Date(app.clock.now()),
      ],
    );
    if (rows.length === 0) return false;
    if (options.send_start) await app.engine.send(tx, 'task.start', ref, { key: ref.task_id });
    return true;
  });
}
