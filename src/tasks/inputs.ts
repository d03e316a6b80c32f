import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Clock } from '../lib/clock.ts';
import { keepFile, removeTaskInputs, type CallerFile, type FilesParts } from '../files/files.ts';
import type { Probe } from '../storage/probe-result.ts';
import type { Task, TaskRef } from './task.ts';

/** The parts of the app that keeping the files of an input takes. */
export type InputParts = FilesParts & {
  readonly clock: Clock;
  readonly log: Logger;
  readonly catalog: CatalogHolder;
};

/** Longer than any job of a task lives: the sweep ends what has not ended by its deadline. */
const after_deadline_ms = 3_600_000;

/** Keeps a file that the input of a task brought along, until the task is final. */
export async function keepInput(
  parts: InputParts,
  task: Pick<Task, 'account_id' | 'id' | 'key_id' | 'deadline_at'>,
  file: { probe: Probe; content: Buffer | string },
): Promise<CallerFile> {
  const file_row = await keepFile(
    parts,
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
    new Date(parts.clock.now()),
  );
  if (typeof file_row === 'string') throw new Error('the files of a task are counted in no limit');
  return file_row;
}

/** The task is final, or was never created: nobody reads its files again. What cannot be removed expires. */
export async function dropInputs(parts: InputParts, model_id: string, ref: TaskRef): Promise<void> {
  const { models } = parts.catalog.current;
  if (models.get(model_id)?.media.length === 0) return;
  try {
    await removeTaskInputs(parts, ref.account_id, ref.task_id);
  } catch (error) {
    parts.log.warn({ ...ref, err: error }, 'files of an input could not be removed; they will expire');
  }
}
