import type { Db, Queryable } from '../../db/database.ts';
import { limitOf } from '../limit.ts';

/** A session of a person. Its token stays in the database and in that browser. */
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

/**
 * Ends all sessions of a person but this one, and with them the browsers that are asked for no code, the sign-ins that
 * wait for one, and a link that moves the address. Returns how many sessions there were.
 */
export async function endOtherSessions(db: Db, user_id: string, kept_id: string): Promise<number> {
  return db.tx(async (tx) => {
    await endWaiting(tx, user_id);
    await tx.query('delete from email_claims where user_id = $1', [user_id]);
    const rows = await tx.query('delete from auth.session where "userId" = $1 and id <> $2 returning id', [
      user_id,
      kept_id,
    ]);
    return rows.length;
  });
}

/** Ends a sign-in that should not have begun: its session, or the wait for its code. */
export async function undoSignIn(db: Queryable, user_id: string, session_id: string | undefined): Promise<void> {
  if (session_id !== undefined) await endSession(db, user_id, session_id);
  await endWaiting(db, user_id);
}

/** Ends sign-ins that wait for a code, and the trust in browsers that are asked for none. */
async function endWaiting(db: Queryable, user_id: string): Promise<void> {
  await db.query(
    `delete from auth.verification where value = $1 and (identifier like 'trust-device-%' or identifier like '2fa-%')`,
    [user_id],
  );
}

/** A page that shows what changes in an account. `project_ids`: it is of a member who is limited to these. */
type LivePage = { session_id: string; account_id: string; project_ids: readonly string[] | undefined };

/**
 * Returns those of these whose session lasts, and whose person belongs to the account, with the factors that it asks for
 * and just this limit to projects, or is an operator.
 */
export async function watchesAdmitted<T extends LivePage>(
  db: Queryable,
  watches: readonly T[],
  now: Date,
): Promise<T[]> {
  const rows = await db.query<{ at: number }>(
    `select w.at::int as at
       from unnest($1::text[], $2::text[], $3::jsonb[]) with ordinality w (session_id, account_id, projects, at)
       join auth.session s on s.id = w.session_id and s."expiresAt" > $4
       join auth."user" u on u.id = s."userId"
       join accounts a on a.id = w.account_id
       left join auth.member m on m."userId" = u.id and m."organizationId" = a.id
      where case when m.id is not null
                 then to_jsonb(${limitOf('m')}) is not distinct from w.projects
                   and (not a.second_factor_required or coalesce(u."twoFactorEnabled", false) or coalesce(s."hasTwoFactors", false))
                 else u."isOperator" and w.projects is null end`,
    [
      watches.map(({ session_id }) => session_id),
      watches.map(({ account_id }) => account_id),
      watches.map(({ project_ids }) => (project_ids === undefined ? null : JSON.stringify(project_ids))),
      now,
    ],
  );
  return rows.flatMap(({ at }) => watches[at - 1] ?? []);
}

/** Notes when the person of this session has given their password; without this it is when the session began. */
export async function proveSession(db: Queryable, id: string, at: Date): Promise<void> {
  await db.query('update auth.session set "provedAt" = $2 where id = $1', [id, at]);
}

/** Notes that this session began with two factors, whatever its person has set up here. */
export async function noteTwoFactors(db: Queryable, id: string): Promise<void> {
  await db.query('update auth.session set "hasTwoFactors" = true where id = $1', [id]);
}

/** The same for the operator's link, by which whoever has lost their passkeys comes back; of no concern to others. */
export async function noteFactorsOfLink(db: Queryable, id: string): Promise<void> {
  await db.query(
    `update auth.session s set "hasTwoFactors" = true
      where id = $1 and exists (select from passkeys p where p.user_id = s."userId")`,
    [id],
  );
}

/** Removes sessions, and tokens of the login library, that ended before. */
export async function removeOldSessions(db: Queryable, ended_before: Date): Promise<void> {
  await db.query('delete from auth.session where "expiresAt" < $1', [ended_before]);
  await db.query('delete from auth.verification where "expiresAt" < $1', [ended_before]);
}
