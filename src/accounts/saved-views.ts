import type { Queryable } from '../db/database.ts';

/** A list of the dashboard that a person saved: its name, and the search of its address without `?`. */
type SavedView = { name: string; search: string };

/** The person whose views these are, in one account. */
export type ViewOwner = { account_id: string; user_id: string };

export const saved_views_max = 50;

/** Returns the views that a person saved, by name. */
export async function listViews(db: Queryable, { account_id, user_id }: ViewOwner): Promise<SavedView[]> {
  return db.query<SavedView>(
    'select name, search from saved_views where account_id = $1 and user_id = $2 order by lower(name), name',
    [account_id, user_id],
  );
}

/** Saves a view, in the place of one with its name. False if that would be one too many. */
export async function saveView(
  db: Queryable,
  { account_id, user_id }: ViewOwner,
  { name, search }: SavedView,
  now: Date,
): Promise<boolean> {
  const rows = await db.query(
    `insert into saved_views (account_id, user_id, name, search, created_at)
     select $1, $2, $3, $4, $5
      where (select count(*) from saved_views where account_id = $1 and user_id = $2 and name <> $3) < ${saved_views_max}
     on conflict (account_id, user_id, name) do update set search = excluded.search returning name`,
    [account_id, user_id, name, search, now],
  );
  return rows.length === 1;
}

/** Removes a view. One that is not there is no failure. */
export async function removeView(db: Queryable, { account_id, user_id }: ViewOwner, name: string): Promise<void> {
  await db.query('delete from saved_views where account_id = $1 and user_id = $2 and name = $3', [
    account_id,
    user_id,
    name,
  ]);
}
