import type { ActivityFilter, Line } from '../chat/activity.ts';
import { dearestRecords } from '../chat/record.ts';
import type { Db } from '../db/database.ts';
import { dearestTaskLines } from '../tasks/list.ts';

/** A long time is compared in bounds: so many tasks and so many calls, the newest. */
const compared_max = 50_000;

const none = { lines: [], compared: 0, since: null };

/**
 * The lines of a time with the highest cost, first. `cut_since`: there are more than are compared, and those since then
 * were. Words are not looked for.
 */
export async function readDearest(
  db: Db,
  filter: ActivityFilter,
  limit: number,
): Promise<{ lines: Line[]; cut_since: Date | undefined }> {
  const { of, status, ok, ...shared } = filter;
  // No text of the database has NUL.
  if ([filter.model, filter.key_id].some((text) => text?.includes('\0'))) return { lines: [], cut_since: undefined };
  const task_status = status ?? (ok === undefined ? undefined : ok ? 'succeeded' : 'failed');
  const of_tasks = { ...shared, limit, ...(task_status && { status: task_status }) };
  const of_chats = { ...shared, limit, ...(ok !== undefined && { ok }) };
  const [tasks, chats] = await Promise.all([
    of === 'chats' ? none : dearestTaskLines(db, of_tasks, compared_max),
    of === 'tasks' || status !== undefined ? none : dearestRecords(db, of_chats, compared_max),
  ]);
  const lines: Line[] = [
    ...tasks.lines.map((line): Line => ({ what: 'task', line })),
    ...chats.lines.map((line): Line => ({ what: 'chat', line })),
  ].toSorted((a, b) => (a.line.cost === b.line.cost ? 0 : a.line.cost < b.line.cost ? 1 : -1));
  const cuts = [tasks, chats].flatMap(({ compared, since }) => (compared < compared_max ? [] : (since ?? [])));
  const cut_since = cuts.toSorted((a, b) => b.getTime() - a.getTime())[0];
  return { lines: lines.slice(0, limit), cut_since };
}
