import type { App } from '../app.ts';
import { ApiError } from '../errors.ts';
import type { Json } from '../providers/provider.ts';
import { routeName } from '../routing/health.ts';
import { finish } from './finish.ts';
import { runRequest, stopRun } from './step.ts';
import { bodyOf, listAttempts, loadTask, type Attempt, type Task, type TaskRef } from './task.ts';

/**
 * Ends a task that has not started, or whose upstream confirms that it stopped unbilled, and answers
 * its body. Throws ApiError 404, and 409 when it is final or the upstream bills it anyway.
 */
export async function cancelTask(app: App, ref: TaskRef): Promise<string> {
  const task = await loadTask(app.db, ref);
  if (!task) throw unknownTask(ref.task_id);
  if (task.completed_at) throw conflict(`The task is ${task.status} already.`);
  const open = (await listAttempts(app.db, ref)).find((attempt) => attempt.ended_at === null);
  if (open?.state === 'submitting') {
    throw conflict('The task is being handed to the model provider at this moment. Try again in a second.', {
      'retry-after': '1',
    });
  }
  if (open) await stopUpstream(app, task, open);
  const ended = await finish(app, ref, {
    status: 'failed',
    type: 'canceled',
    message: 'The task was canceled.',
    counts: task.started_at !== null, // else a cancel after the start would be a free run
    attempt: 'canceled',
    reason: 'canceled by the caller',
  });
  const final = await loadTask(app.db, ref);
  if (ended === 'final') throw conflict(`The task is ${final?.status ?? 'gone'} already.`);
  return bodyOf(final ?? task);
}

async function stopUpstream(app: App, task: Task, attempt: Attempt): Promise<void> {
  const model = app.catalog.current.models.get(task.model);
  const route = model?.routes.find((candidate) => routeName(task.model, candidate.id) === attempt.route);
  const provider = route && app.providers.get(route.provider);
  const ref: Json = JSON.parse(attempt.run_ref ?? 'null');
  const stopped = provider && route ? await stopRun(app, provider, runRequest(app, task, route), ref) : 'billed';
  if (stopped === 'billed') throw conflict('The task is running and its model provider cannot stop it unbilled.');
}

function conflict(message: string, headers: Record<string, string> = {}): ApiError {
  return new ApiError('conflict', message, { code: 'conflict', headers });
}

/** The same answer for a task that never was and one of another account. */
export function unknownTask(id: string): ApiError {
  return new ApiError('not_found', `There is no task ${JSON.stringify(id.slice(0, 60))}.`, { param: 'id' });
}
