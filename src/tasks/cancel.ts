import { freeOfCharge } from '../catalog/upstream-cost.ts';
import { ApiError } from '../errors.ts';
import { failpoint } from '../lib/failpoint.ts';
import { loadAtWork, type TaskAtWork } from './attempts.ts';
import { finish, type FinishParts } from './finish.ts';
import { stopAttempt, stopOfStart, type RunParts } from './run.ts';
import { bodyOf, loadTask, type TaskRef } from './task.ts';

/** The parts of the app that cancelling takes. */
export type CancelParts = FinishParts & RunParts;

/** Number of times that a task may change between our read and its end. */
const looks_max = 3;

/**
 * Ends a task that has not started, or whose upstream confirms that it stopped unbilled, and answers
 * its body. A run whose submit is its result is stopped after the task has ended, where nobody is billed for it: its
 * answer must not come first. Throws ApiError 404, and 409 when it is final, the upstream bills it anyway, or it is
 * being submitted.
 */
export async function cancelTask(parts: CancelParts, ref: TaskRef): Promise<string> {
  for (let looks = 1; ; looks++) {
    const at_work = await loadAtWork(parts.db, ref);
    if (!at_work) throw unknownTask(ref.task_id);
    const { task, open } = at_work;
    if (task.completed_at) throw conflict(`The task is ${task.status} already.`);
    const stop = open?.state === 'submitting' ? stopOfStart(parts, task, open) : undefined;
    if ((open?.state === 'submitting' && !stop) || looks > looks_max) throw beingSubmitted();
    const finished = await stopAndFinish(parts, ref, at_work);
    if (finished === 'taken') continue; // it moved on: what was decided holds no more
    if (finished === 'finished') await stop?.();
    const final = await loadTask(parts.db, ref);
    if (finished === 'final' || !final) throw conflict(`The task is ${final?.status ?? 'gone'} already.`);
    return bodyOf(final);
  }
}

async function stopAndFinish(parts: CancelParts, ref: TaskRef, { task, open }: TaskAtWork) {
  if (open && open.state !== 'submitting' && (await stopAttempt(parts, task, open, 'if unbilled')) === 'billed') {
    throw conflict('The task is running and its model provider cannot stop it unbilled.');
  }
  await failpoint('task.canceling');
  return finish(
    parts,
    ref,
    {
      status: 'failed',
      type: 'canceled',
      message: 'The task was canceled.',
      // Else a cancel after the start would be a free run; one that is stopped while it is submitted is at work.
      counts: open?.state === 'submitting' ? true : 'if started',
      attempt: 'canceled',
      reason: 'canceled by the caller',
      upstream: freeOfCharge(parts.catalog.current.settings),
    },
    { attempt: open ?? 'none', task },
  );
}

function beingSubmitted(): ApiError {
  return conflict('The task is being submitted to the model provider right now. Try again in a second.', {
    'retry-after': '1',
  });
}

function conflict(message: string, headers: Record<string, string> = {}): ApiError {
  return new ApiError('conflict', message, { code: 'conflict', headers });
}

/** The same answer for a task that never was and one of another account. */
export function unknownTask(id: string): ApiError {
  return new ApiError('not_found', `There is no task ${JSON.stringify(id.slice(0, 60))}.`, { param: 'id' });
}
