import type { App } from '../app.ts';
import { ApiError } from '../errors.ts';
import { failpoint } from '../lib/failpoint.ts';
import { unknownTask } from './cancel.ts';
import { linkOutputs } from './outputs.ts';
import { loadTask, type OutputItem, type Task, type TaskRef } from './task.ts';

/** For backups: the storage `key` of every output that is kept, as a row set, and the table behind it. */
export const stored_outputs = {
  table: 'public.tasks',
  keys: `(select f ->> 'key' as key from tasks, jsonb_array_elements(files) f where files_removed_at is null)`,
};

/** Removes the files of a finished task; its body stays as it is, their links answer 404. */
export async function removeOutput(app: App, ref: TaskRef): Promise<void> {
  const task = await finished(app, ref);
  await removeFiles(app, task);
}

/** Fresh links to the files of a finished task; nothing else changes. 404 when they are gone. */
export async function freshLinks(app: App, ref: TaskRef): Promise<OutputItem[]> {
  const task = await finished(app, ref);
  if (task.files_removed_at) throw new ApiError('not_found', 'The files of this task are no longer kept.');
  return linkOutputs(app, task.files, new Date(app.clock.now()));
}

async function finished(app: App, ref: TaskRef): Promise<Task> {
  const task = await loadTask(app.db, ref);
  if (!task) throw unknownTask(ref.task_id);
  if (!task.completed_at)
    throw new ApiError('conflict', `The task is ${task.status}; it has no output yet.`, { code: 'conflict' });
  return task;
}

/**
 * Removes whatever is stored for a task, then notes it: after a crash in between, removing again does
 * no harm, while a note without the removal would keep the files for ever.
 */
export async function removeFiles(app: App, task: Pick<Task, 'account_id' | 'id'>): Promise<void> {
  await app.storage.remove(await app.storage.list(task.account_id, task.id));
  await failpoint('sweep.removing');
  await app.db.query(
    'update tasks set files_removed_at = $3 where account_id = $1 and id = $2 and files_removed_at is null',
    [task.account_id, task.id, new Date(app.clock.now())],
  );
}

/** Removes files that a worker stored for a task that somebody else ended meanwhile, unless it succeeded. */
export async function removeStrays(app: App, ref: TaskRef): Promise<void> {
  const task = await loadTask(app.db, ref);
  if (task?.status === 'succeeded' && task.files_removed_at === null) return;
  await app.storage.remove(await app.storage.list(ref.account_id, ref.task_id));
}
