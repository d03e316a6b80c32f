import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { removeAll } from '../storage/remove-all.ts';
import type { Storage } from '../storage/storage.ts';
import { ApiError } from '../errors.ts';
import { failpoint } from '../lib/failpoint.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import { unknownTask } from './cancel.ts';
import { linkOutputs, type LinkParts } from './outputs.ts';
import { loadTask, type OutputItem, type Task, type TaskRef } from './task.ts';

/** The parts of the app that keeping and removing the files of a task takes. */
export type TaskFileParts = LinkParts & {
  readonly db: Db;
  readonly clock: Clock;
  readonly storage: Storage;
};

/** For backups: a task is there from its hold on. Whatever is final now and was not read at the moment was final then. */
export const growing_tasks: GrowingTable = {
  name: 'public.tasks',
  keys: ['id'],
  changing: '(select * from tasks where completed_at is null)',
  is_later: hasLaterEntry('r.id', ['hold']),
  bytes: 'pg_column_size(r.input) + coalesce(pg_column_size(r.body), 0)',
  parts: { name: 'public.attempts', keys: ['task_id'] },
};

/** SQL for backups: the storage `key` of every stored output, of tasks in the row set `rows`. */
export function storedOutputs(rows: string): string {
  return `select f ->> 'key' as key from ${rows} t, jsonb_array_elements(files) f where files_removed_at is null`;
}

/** Removes the files of a finished task; its body stays as it is, their links answer 404. */
export async function removeOutput(parts: TaskFileParts, ref: TaskRef): Promise<void> {
  const task = await finished(parts, ref);
  await removeFiles(parts, task);
}

/** Fresh links to the files of a finished task; nothing else changes. 404 when they are gone. */
export async function freshLinks(parts: TaskFileParts, ref: TaskRef): Promise<OutputItem[]> {
  const task = await finished(parts, ref);
  if (task.files_removed_at) throw new ApiError('not_found', 'The files of this task are no longer kept.');
  return linkOutputs(parts, task.files, new Date(parts.clock.now()));
}

async function finished(parts: TaskFileParts, ref: TaskRef): Promise<Task> {
  const task = await loadTask(parts.db, ref);
  if (!task) throw unknownTask(ref.task_id);
  if (!task.completed_at)
    throw new ApiError('conflict', `The task is ${task.status}; it has no output yet.`, { code: 'conflict' });
  return task;
}

/**
 * Removes whatever is stored for a task, then notes it: after a crash in between, removing again does
 * no harm, while a note without the removal would keep the files for ever.
 */
export async function removeFiles(parts: TaskFileParts, task: Pick<Task, 'account_id' | 'id'>): Promise<void> {
  await removeAll(parts.storage, task.account_id, task.id);
  await failpoint('sweep.removing');
  await parts.db.query(
    'update tasks set files_removed_at = $3 where account_id = $1 and id = $2 and files_removed_at is null',
    [task.account_id, task.id, new Date(parts.clock.now())],
  );
}

/** Removes files that a worker stored for a task that somebody else ended meanwhile, unless it succeeded. */
export async function removeStrays(parts: TaskFileParts, ref: TaskRef): Promise<void> {
  const task = await loadTask(parts.db, ref);
  if (task?.status === 'succeeded' && task.files_removed_at === null) return;
  await removeAll(parts.storage, ref.account_id, ref.task_id);
}
