import type { Db, Queryable } from '../db/database.ts';
import { isId } from '../lib/ids.ts';
import type { KeysOfProjects } from '../money/key-budgets.ts';
import {
  listAllTaskLines,
  listTaskLines,
  searchTaskLines,
  type AllFilter,
  type LineFilter,
  type PlainTaskLine,
  type TaskLine,
} from '../tasks/list.ts';
import type { TaskStatus } from '../tasks/task.ts';
import { listAllRecords, listRecords, searchRecords, type RecordFilter, type RecordLine } from './record.ts';

/** A task or a chat call of an account. */
export type Line = { what: 'task'; line: TaskLine } | { what: 'chat'; line: RecordLine };

export type ActivityFilter = KeysOfProjects & {
  account_id: string;
  of: 'all' | 'tasks' | 'chats';
  /** Words of the input, the labels or the error, or an id. What was said in chat calls is not looked through. */
  words?: string;
  /** Of tasks: chat calls have none. */
  status?: TaskStatus;
  /** Of chat calls, and of both. */
  ok?: boolean;
  error_type?: string;
  /** Of chat calls: tasks have none. */
  http_status?: number;
  model?: string;
  key_id?: string;
  /** The end user that the caller named. */
  end_user?: string;
  /** One of the tags in the metadata. */
  tag?: string;
  /** Pairs of metadata, all of them. */
  metadata?: Record<string, string>;
  created_after?: Date;
  created_before?: Date;
  oldest_first: boolean;
};

/** Lists of operators have routes, too. `route`: the last one that was tried. */
type LinesFilter = ActivityFilter & { route?: string };

/** `before`: further up the list; without it the list goes down from its beginning, or from `after`. */
type Place = { after?: string; before?: string; limit: number };

/**
 * Lines in the order of their ids' times, which is the same for both kinds: after the prefix, ids sort by time. So the
 * id of a line of one kind is a place in the list of the other, too.
 */
export async function readLines(
  db: Db,
  filter: LinesFilter,
  place: Place,
): Promise<{ lines: Line[]; has_more: boolean }> {
  if (hasNul([filter.account_id, filter.route])) return nothing;
  const [tasks, chats] = await Promise.all([readTasks(db, filter, place), readChats(db, filter, place)]);
  const all: Line[] = [
    ...tasks.lines.map((line): Line => ({ what: 'task', line })),
    ...chats.lines.map((line): Line => ({ what: 'chat', line })),
  ].toSorted((a, b) => (timePart(a.line.id) < timePart(b.line.id) ? 1 : -1));
  const upwards = isUpwards(filter, place);
  const nearest = (upwards ? all.toReversed() : all).slice(0, place.limit);
  const lines = upwards === filter.oldest_first ? nearest : nearest.toReversed();
  return { lines, has_more: tasks.has_more || chats.has_more || all.length > lines.length };
}

function isUpwards({ oldest_first }: ActivityFilter, { before }: Place): boolean {
  return oldest_first || before !== undefined;
}

const nothing = { lines: [], has_more: false };

/** No text of the database has NUL. */
function hasNul(texts: readonly (string | undefined)[]): boolean {
  return texts.some((text) => text?.includes('\0'));
}

async function readTasks(db: Db, filter: LinesFilter, place: Place) {
  const { words, route } = filter;
  const own = tasksOf(filter, place);
  if (!own) return nothing;
  const task_filter = { ...own, ...(route !== undefined && { route }), ...cursorOf('task', filter, place) };
  if (words === undefined) return listTaskLines(db, task_filter);
  if (isId('task', words)) return listTaskLines(db, { ...task_filter, id: words });
  return isId('req', words) ? nothing : searchTaskLines(db, task_filter, words);
}

/** Returns the filter of the tasks of a list, without its words; undefined if no task can be in it. */
export function tasksOf(filter: ActivityFilter, place: Pick<Place, 'limit'>): LineFilter | undefined {
  const { of, ok, status = statusOf(ok), http_status, end_user: user, metadata = {}, error_type, tag } = filter;
  if (of === 'chats' || http_status !== undefined || hasNul([error_type, tag])) return undefined;
  // The end user of a task is a pair of its metadata.
  if (user !== undefined && Object.hasOwn(metadata, 'user') && metadata['user'] !== user) return undefined;
  const shared = sharedBy(filter, place);
  return (
    shared && {
      ...shared,
      metadata: user === undefined ? metadata : { ...metadata, user },
      ...(status && { status }),
      ...(error_type !== undefined && { error_type }),
      ...(tag !== undefined && { tag }),
    }
  );
}

function statusOf(ok: boolean | undefined): TaskStatus | undefined {
  return ok === undefined ? undefined : ok ? 'succeeded' : 'failed';
}

/** The filters that lists of both kinds have. */
function sharedBy(filter: ActivityFilter, { limit }: Pick<Place, 'limit'>) {
  const { account_id, model, key_id, key_ids, project_ids, created_after, created_before } = filter;
  if (hasNul([model, key_id])) return undefined;
  return {
    account_id,
    limit,
    ...(model !== undefined && { model }),
    ...(key_id !== undefined && { key_id }),
    ...(key_ids && { key_ids }),
    ...(project_ids && { project_ids }),
    ...(created_after && { created_after }),
    ...(created_before && { created_before }),
  };
}

async function readChats(db: Db, filter: LinesFilter, place: Place) {
  const { words, route } = filter;
  const own = chatsOf(filter, place);
  if (!own) return nothing;
  const record_filter = { ...own, ...(route !== undefined && { route }), ...cursorOf('req', filter, place) };
  if (words === undefined) return listRecords(db, record_filter);
  if (isId('req', words)) return listRecords(db, { ...record_filter, id: words });
  return isId('task', words) ? nothing : searchRecords(db, record_filter, words);
}

/** Returns the filter of the chat calls of a list, without its words; undefined if no call can be in it. */
export function chatsOf(filter: ActivityFilter, place: Pick<Place, 'limit'>): RecordFilter | undefined {
  const { of, status, ok, http_status, end_user, metadata = {}, error_type, tag } = filter;
  if (of === 'tasks' || status !== undefined) return undefined;
  if (!isStatusOfCalls(http_status)) return undefined;
  const pairs = Object.entries(metadata).flat();
  if (hasNul([error_type, end_user, tag, ...pairs])) return undefined;
  const shared = sharedBy(filter, place);
  return (
    shared && {
      ...shared,
      ...(ok !== undefined && { ok }),
      ...(error_type !== undefined && { error_type }),
      ...(http_status !== undefined && { http_status }),
      ...(end_user !== undefined && { end_user }),
      ...(tag !== undefined && { tag }),
      ...(pairs.length > 0 && { metadata }),
    }
  );
}

/** Tells whether a chat call can have this status: what is answered without an error is answered 200. */
function isStatusOfCalls(http_status = 200): boolean {
  return http_status === 200 || http_status >= 400;
}

/** The ids of an account's tasks, and of its calls, are all above their prefix. */
function cursorOf(prefix: 'task' | 'req', filter: ActivityFilter, place: Place) {
  const { before, after = before } = place;
  if (isUpwards(filter, place)) return { before: `${prefix}_${after === undefined ? '' : timePart(after)}` };
  return after === undefined ? {} : { after: `${prefix}_${timePart(after)}` };
}

function timePart(id: string): string {
  return id.slice(id.indexOf('_') + 1);
}

/** A task or a chat call in a list of all accounts. Nothing in it is an input or an answer. */
type AccountLine = { what: 'task'; line: PlainTaskLine } | { what: 'chat'; line: RecordLine & { account_id: string } };

/**
 * Lines of all accounts in a time, the newest first: for operators. Of the filters by labels it has those of failures: the
 * indexes of the others begin with an account.
 */
export async function readAllLines(
  db: Queryable,
  filter: AllFilter & Pick<ActivityFilter, 'of' | 'http_status'>,
): Promise<{ lines: AccountLine[]; has_more: boolean }> {
  const { of, model, route, error_type, http_status, limit } = filter;
  if (hasNul([model, route, error_type])) return nothing;
  const [tasks, chats] = await Promise.all([
    of === 'chats' || http_status !== undefined ? [] : listAllTaskLines(db, filter),
    of === 'tasks' || !isStatusOfCalls(http_status) ? [] : listAllRecords(db, filter),
  ]);
  const all: AccountLine[] = [
    ...tasks.map((line): AccountLine => ({ what: 'task', line })),
    ...chats.map((line): AccountLine => ({ what: 'chat', line })),
  ].toSorted(newestFirst);
  return { lines: all.slice(0, limit), has_more: all.length > limit };
}

function newestFirst({ line: a }: AccountLine, { line: b }: AccountLine): number {
  return b.created_at.getTime() - a.created_at.getTime() || (a.id < b.id ? 1 : -1);
}
