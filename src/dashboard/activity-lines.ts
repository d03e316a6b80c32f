import { listRecords, type RecordFilter, type RecordLine } from '../chat/record.ts';
import type { Db } from '../db/database.ts';
import { isId } from '../lib/ids.ts';
import { listTaskLines, searchTaskLines, type LineFilter, type TaskLine } from '../tasks/list.ts';
import type { TaskStatus } from '../tasks/task.ts';

/** A task or a chat call of an account. */
export type Line = { what: 'task'; line: TaskLine } | { what: 'chat'; line: RecordLine };

export type ActivityFilter = {
  account_id: string;
  of: 'all' | 'tasks' | 'chats';
  /** Words of the input or the metadata, or an id. Chat calls have no words: nothing that was said is stored. */
  words?: string;
  /** Of tasks: chat calls have none. */
  status?: TaskStatus;
  /** Of chat calls, and of both. */
  ok?: boolean;
  model?: string;
  key_id?: string;
  created_after?: Date;
  created_before?: Date;
  oldest_first: boolean;
};

type Place = { after?: string; limit: number };

/**
 * Lines in the order of their ids' times, which is the same for both kinds: behind the prefix, ids sort by time. So the
 * id of a line of one kind is a place in the list of the other, too.
 */
export async function readLines(
  db: Db,
  filter: ActivityFilter,
  place: Place,
): Promise<{ lines: Line[]; has_more: boolean }> {
  const [tasks, chats] = await Promise.all([readTasks(db, filter, place), readChats(db, filter, place)]);
  const all: Line[] = [
    ...tasks.lines.map((line): Line => ({ what: 'task', line })),
    ...chats.lines.map((line): Line => ({ what: 'chat', line })),
  ].toSorted((a, b) => (timePart(a.line.id) < timePart(b.line.id) ? 1 : -1));
  const ordered = filter.oldest_first ? all.toReversed() : all;
  const lines = ordered.slice(0, place.limit);
  return { lines, has_more: tasks.has_more || chats.has_more || ordered.length > lines.length };
}

const nothing = { lines: [], has_more: false };

async function readTasks(db: Db, filter: ActivityFilter, place: Place) {
  const { of, words, ok, status = statusOf(ok), account_id, model, key_id, created_after, created_before } = filter;
  if (of === 'chats') return nothing;
  const task_filter: LineFilter = {
    account_id,
    limit: place.limit,
    ...cursorOf('task', filter, place),
    ...(status && { status }),
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  };
  if (words === undefined) return listTaskLines(db, task_filter);
  if (isId('task', words)) return listTaskLines(db, { ...task_filter, id: words });
  return isId('req', words) ? nothing : searchTaskLines(db, task_filter, words);
}

function statusOf(ok: boolean | undefined): TaskStatus | undefined {
  return ok === undefined ? undefined : ok ? 'succeeded' : 'failed';
}

async function readChats(db: Db, filter: ActivityFilter, place: Place) {
  const { of, words, status, ok, account_id, model, key_id, created_after, created_before } = filter;
  if (of === 'tasks' || status !== undefined || (words !== undefined && !isId('req', words))) return nothing;
  const record_filter: RecordFilter = {
    account_id,
    limit: place.limit,
    ...cursorOf('req', filter, place),
    ...(words !== undefined && { id: words }),
    ...(ok !== undefined && { ok }),
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  };
  return listRecords(db, record_filter);
}

/** The ids of an account's tasks, and of its calls, are all above their prefix. */
function cursorOf(prefix: 'task' | 'req', { oldest_first }: ActivityFilter, { after }: Place) {
  if (oldest_first) return { before: `${prefix}_${after === undefined ? '' : timePart(after)}` };
  return after === undefined ? {} : { after: `${prefix}_${timePart(after)}` };
}

function timePart(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}
