import type { App } from '../app.ts';
import { chargeAmount, type Units } from '../catalog/price.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { UpstreamCost } from '../providers/provider.ts';
import { linkOutputs } from './outputs.ts';
import {
  loadTask,
  renderTask,
  type AttemptState,
  type StoredFile,
  type Task,
  type TaskErrorType,
  type TaskRef,
} from './task.ts';

/** How a task ends. Nothing else may end one. */
export type Ending =
  | { status: 'succeeded'; files: StoredFile[]; units: Units; upstream_cost?: UpstreamCost | undefined }
  | {
      status: 'failed';
      type: TaskErrorType;
      message: string;
      /** The run had started and then failed: it counts toward the 25 in 24 hours. */
      counts: boolean;
      /** What becomes of the open attempt, and why, for the operator's eyes. */
      attempt: AttemptState;
      reason: string;
    };

/** The channel on which every node learns that a task is final; the payload is the task's id. */
export const finished_channel = 'task_finished';

/**
 * Ends a task: status, output and money in one call of the database, once. `final`: somebody else
 * was first and nothing happened. `started_at`: when the run started, if the row does not say yet.
 */
export async function finish(app: App, ref: TaskRef, ending: Ending, started_at?: Date): Promise<'finished' | 'final'> {
  for (;;) {
    const task = await loadTask(app.db, ref);
    if (!task || task.completed_at) return 'final';
    const outcome = await tryFinish(app, task, ending, task.started_at ?? started_at ?? null);
    if (outcome === 'changed') continue;
    if (outcome === 'finished') {
      await failpoint('task.finished');
      app.notifier.notify(finished_channel, task.id);
      logEnding(app, task, ending);
    }
    return outcome;
  }
}

async function tryFinish(
  app: App,
  task: Task,
  ending: Ending,
  started_at: Date | null,
): Promise<'finished' | 'final' | 'changed'> {
  const completed_at = new Date(app.clock.now());
  const succeeded = ending.status === 'succeeded';
  const cost = succeeded ? chargeAmount(task.pricing, ending.units, task.held_units) : 0n;
  const body = renderTask({
    ...task,
    status: ending.status,
    output: succeeded ? linkOutputs(app, ending.files, completed_at) : [],
    cost,
    error_type: succeeded ? null : ending.type,
    error_message: succeeded ? null : ending.message,
    started_at,
    completed_at,
  });
  const rows = await app.db.query<{ outcome: 'finished' | 'final' | 'changed' }>(
    'select finish_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) as outcome',
    [
      completed_at,
      task.account_id,
      task.id,
      task.started_at,
      started_at,
      ending.status,
      cost,
      succeeded ? JSON.stringify(ending.units) : null,
      succeeded ? null : ending.type,
      succeeded ? null : ending.message,
      succeeded ? false : ending.counts,
      body,
      JSON.stringify(succeeded ? ending.files : []),
      succeeded ? 'done' : ending.attempt,
      succeeded ? null : ending.reason,
      succeeded && ending.upstream_cost ? `${ending.upstream_cost.amount} ${ending.upstream_cost.currency}` : null,
    ],
  );
  const outcome = rows[0]?.outcome;
  if (outcome === undefined) throw new Error('finish_task answered nothing');
  return outcome;
}

function logEnding(app: App, task: Task, ending: Ending): void {
  const facts = { task_id: task.id, model: task.model, status: ending.status };
  if (ending.status === 'succeeded') app.log.debug(facts, 'task finished');
  else app.log.info({ ...facts, error: ending.type, reason: ending.reason }, 'task failed');
}
