import type { Queryable } from '../db/database.ts';

/** Where a person is signed in; its token stays in the database and in that browser. */
export type SessionLine = {
  id: string;
  created_at: Date;
  updated_at: Date;
  expires_at: Date;
  address: string | null;
  user_agent: string | null;
};

/** A person's sessions that still work, the one used last first. */
export async function listSessions(db: Queryable, user_id: string, now: Date): Promise<SessionLine[]> {
  return db.query<SessionLine>(
    `select id, "createdAt" as created_at, "updatedAt" as updated_at, "expiresAt" as expires_at,
            nullif("ipAddress", '') as address, nullif("userAgent", '') as user_agent
       from auth.session where "userId" = $1 and "expiresAt" > $2 order by "updatedAt" desc, id`,
    [user_id, now],
  );
}

/** Ends one session of a person. False if they have no such one. */
export async function endSession(db: Queryable, user_id: string, id: string): Promise<boolean> {
  const rows = await db.query('delete from auth.session where id = $2 and "userId" = $1 returning id', [user_id, id]);
  return rows.length === 1;
}

/** Ends all sessions of a person but this one. Answers how many there were. */
export async function endOtherSessions(db: Queryable, user_id: string, kept_id: string): Promise<number> {
  const rows = await db.query('delete from auth.session where "userId" = $1 and id <> $2 returning id', [
    user_id,
    kept_id,
  ]);
  return rows.length;
}
