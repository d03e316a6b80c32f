import { chatsOf, tasksOf, type ActivityFilter, type Line } from '../chat/activity.ts';
import { highestCostRecords } from '../chat/record.ts';
import type { Db } from '../db/database.ts';
import { highestCostTaskLines } from '../tasks/list.ts';

/** A long time is compared in bounds: so many tasks and so many calls, the newest. */
const compared_max = 50_000;

const none = { lines: [], compared: 0, since: null };

/**
 * The lines of a time with the highest cost, first. `cut_since`: there are more than are compared, and those since then
 * were. Words are not looked for.
 */
export async function readHighestCost(
  db: Db,
  filter: ActivityFilter,
  limit: number,
): Promise<{ lines: Line[]; cut_since: Date | undefined }> {
  const [of_tasks, of_chats] = [tasksOf(filter, { limit }), chatsOf(filter, { limit })];
  const [tasks, chats] = await Promise.all([
    of_tasks ? highestCostTaskLines(db, of_tasks, compared_max) : none,
    of_chats ? highestCostRecords(db, of_chats, compared_max) : none,
  ]);
  const lines: Line[] = [
    ...tasks.lines.map((line): Line => ({ what: 'task', line })),
    ...chats.lines.map((line): Line => ({ what: 'chat', line })),
  ].toSorted((a, b) => (a.line.cost === b.line.cost ? 0 : a.line.cost < b.line.cost ? 1 : -1));
  const cuts = [tasks, chats].flatMap(({ compared, since }) => (compared < compared_max ? [] : (since ?? [])));
  const cut_since = cuts.toSorted((a, b) => b.getTime() - a.getTime())[0];
  return { lines: lines.slice(0, limit), cut_since };
}
