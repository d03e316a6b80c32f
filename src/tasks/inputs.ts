import type { App } from '../app.ts';
import { keepFile, removeTaskInputs, type CallerFile } from '../files/files.ts';
import type { Probe } from '../storage/probe-result.ts';
import type { Task, TaskRef } from './task.ts';

/** Longer than any job of a task lives: the sweep ends what has not ended by its deadline. */
const after_deadline_ms = 3_600_000;

/** Keeps a file that the input of a task brought along, until the task is final. */
export async function keepInput(
  app: App,
  task: Pick<Task, 'account_id' | 'id' | 'key_id' | 'deadline_at'>,
  file: { probe: Probe; content: Buffer | string },
): Promise<CallerFile> {
  const file_row = await keepFile(
    app,
    {
      ...file,
      account_id: task.account_id,
      key_id: task.key_id,
      task_id: task.id,
      filename: `input.${file.probe.extension}`,
      purpose: 'task_input',
      expires_at: new Date(task.deadline_at.getTime() + after_deadline_ms),
    },
    { files_max: 0, bytes_max: 0 },
    new Date(app.clock.now()),
  );
  if (typeof file_row === 'string') throw new Error('the files of a task are counted in no limit');
  return file_row;
}

/** The task is final, or was never created: nobody reads its files again. What cannot be removed expires. */
export async function dropInputs(app: App, model_id: string, ref: TaskRef): Promise<void> {
  const { models } = app.catalog.current;
  if (models.get(model_id)?.media.length === 0) return;
  try {
    await removeTaskInputs(app, ref.account_id, ref.task_id);
  } catch (error) {
    app.log.warn({ ...ref, err: error }, 'files of an input could not be removed; they will expire');
  }
}
