import { conditionsOf } from '../db/conditions.ts';
import type { Queryable } from '../db/database.ts';
import { keyConditions, type KeysOfProjects } from '../money/key-budgets.ts';
import { task_columns, type Task } from './task.ts';

/** A task of a video model with what was asked for. `input` is a JSON text. */
export type VideoTask = Task & { input: string };

export type VideoFilter = KeysOfProjects & {
  account_id: string;
  limit: number;
  order: 'asc' | 'desc';
  after: string | undefined;
};

/** A video whose file was deleted, or is no longer kept, is no video any more; its task is still a task. */
const there = `kind = 'video' and files_removed_at is null`;

export async function loadVideo(db: Queryable, account_id: string, id: string): Promise<VideoTask | undefined> {
  const rows = await db.query<VideoTask>(
    `select ${task_columns}, input from tasks where account_id = $1 and id = $2 and ${there}`,
    [account_id, id],
  );
  return rows[0];
}

/** Videos of an account, however they were asked for; ids sort by time, so they are the cursor. */
export async function listVideos(
  db: Queryable,
  { account_id, limit, order, after, ...keys }: VideoFilter,
): Promise<{ videos: VideoTask[]; has_more: boolean }> {
  const { text, values } = conditionsOf([
    ['account_id = ?', account_id],
    [`id ${order === 'asc' ? '>' : '<'} ?`, after],
    ...keyConditions(keys),
  ]);
  const rows = await db.query<VideoTask>(
    `select ${task_columns}, input from tasks where ${text} and ${there} order by id ${order} limit $${values.length + 1}`,
    [...values, limit + 1],
  );
  return { videos: rows.slice(0, limit), has_more: rows.length > limit };
}
