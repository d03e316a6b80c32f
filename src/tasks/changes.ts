import type { Queryable } from '../db/database.ts';

const marked = 50;
const unfinished_marked = 1_000;

/**
 * Returns a mark of each account's newest tasks: it changes when one is created, starts or ends, and when an older one
 * ends.
 */
export async function taskMarks(db: Queryable, account_ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await db.query<{ account_id: string; mark: string }>(
    `select a.account_id, concat(
         (select md5(string_agg(t.id || t.status, ',')) from (
            select id, status from tasks where account_id = a.account_id order by id desc limit ${marked}) t),
         ' ', (select count(*) from (select from tasks
            where account_id = a.account_id and completed_at is null limit ${unfinished_marked}) u)) as mark
       from unnest($1::text[]) a (account_id)`,
    [account_ids],
  );
  return new Map(rows.map(({ account_id, mark }) => [account_id, mark]));
}

/** A task or a chat call: the key that made it, and how far it is. */
export type RecentRow = { id: string; key_id: string; status: string };

/** Rows of one moment: the newest ones, `newest_max` of them, and of those that have not ended the oldest, `unfinished_max`. */
export type RecentRows = { newest: readonly RecentRow[]; unfinished: readonly RecentRow[] };

export const newest_max = 300;
export const unfinished_max = 300;

/** Returns the newest tasks of each account, and the oldest of those that have not ended. */
export async function recentTasks(db: Queryable, account_ids: readonly string[]): Promise<Map<string, RecentRows>> {
  const rows = await db.query<RecentRow & { account_id: string; is_newest: boolean }>(
    `select a.account_id, t.* from unnest($1::text[]) a (account_id) cross join lateral (
       (select true as is_newest, id, key_id, status from tasks
         where account_id = a.account_id order by id desc limit ${newest_max})
       union all
       (select false, id, key_id, status from tasks
         where account_id = a.account_id and completed_at is null order by id limit ${unfinished_max})) t`,
    [account_ids],
  );
  const of_account = Map.groupBy(rows, ({ account_id }) => account_id);
  return new Map(
    [...of_account].map(([id, own]) => [
      id,
      { newest: own.filter(({ is_newest }) => is_newest), unfinished: own.filter(({ is_newest }) => !is_newest) },
    ]),
  );
}

/**
 * Returns the keys whose rows are new, or have changed, between two moments. Rows of other keys let a row into these
 * lists and push it out of them: that is no change of it.
 */
export function keysChanged(before: RecentRows, now: RecentRows): Set<string> {
  const was = rowsById(before);
  const is = rowsById(now);
  const oldest_id = before.newest.length < newest_max ? '' : (before.newest.at(-1)?.id ?? '');
  const last_id = now.unfinished.length < unfinished_max ? undefined : now.unfinished.at(-1)?.id;
  const moved = [...is.values()].filter(({ id, status }) => {
    const earlier = was.get(id);
    return earlier ? earlier.status !== status : id > oldest_id;
  });
  const ended = [...was.values()].filter(({ id, status }) => {
    const is_unfinished = status === 'queued' || status === 'running';
    return is_unfinished && !is.has(id) && (last_id === undefined || id <= last_id);
  });
  return new Set([...moved, ...ended].map(({ key_id }) => key_id));
}

function rowsById({ newest, unfinished }: RecentRows): Map<string, RecentRow> {
  return new Map([...newest, ...unfinished].map((row) => [row.id, row]));
}
