import { finish, type FinishOutcome, type FinishParts } from './finish.ts';
import { refOf, type Task } from './task.ts';

/** Ends a task that hangs: it fails and is refunded. The reason is for the record. */
export async function failManually(parts: FinishParts, task: Task, reason: string): Promise<FinishOutcome> {
  return finish(parts, refOf(task), {
    status: 'failed',
    type: 'internal_error',
    message: 'The task was ended by the operator; it costs nothing.',
    counts: false,
    attempt: 'abandoned', // the worker that polls the run stops it upstream
    reason: `operator: ${reason}`,
  });
}
