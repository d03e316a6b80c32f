import { randomBytes } from 'node:crypto';
import { sha256 } from '../../lib/sha256.ts';
import type { Queryable } from '../../db/database.ts';

/** Lifetime of a link. */
const login_link_ms = 15 * 60_000;

/** Makes a link that signs this person in, once; its text is known only to who asked. */
export async function makeLoginLink(
  db: Queryable,
  base_url: string,
  user_id: string,
  now: Date,
  lifetime_ms = login_link_ms,
): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await db.query('insert into login_links (hash, user_id, created_at, expires_at) values ($1, $2, $3, $4)', [
    sha256(token),
    user_id,
    now,
    new Date(now.getTime() + lifetime_ms),
  ]);
  return `${base_url}/sign-in?token=${token}`;
}

/**
 * Makes a link for whoever has proved this address, to be mailed there; undefined if nobody has. Signing in by it asks
 * for the second factor.
 */
export async function makeMailedLink(
  db: Queryable,
  base_url: string,
  email: string,
  now: Date,
): Promise<string | undefined> {
  const token = randomBytes(32).toString('base64url');
  const rows = await db.query(
    `insert into login_links (hash, user_id, created_at, expires_at, by_mail)
       select $1, id, $3, $4, true from auth."user" where email = $2 and "emailVerified" returning user_id`,
    [sha256(token), email, now, new Date(now.getTime() + login_link_ms)],
  );
  return rows.length === 0 ? undefined : `${base_url}/sign-in?token=${token}&by=mail`;
}

/** The person of the link that was followed, and whether they requested it by mail. */
export type FollowedLink = { user_id: string; by_mail: boolean };

/** The person whose link this is; undefined if there is none, or it was used, or is too old. */
export async function spendLoginLink(db: Queryable, token: string, now: Date): Promise<FollowedLink | undefined> {
  const rows = await db.query<FollowedLink>(
    `update login_links set used_at = $2 where hash = $1 and used_at is null and expires_at > $2
     returning user_id, by_mail`,
    [sha256(token), now],
  );
  return rows[0];
}

/**
 * Ends the links of a person who gets their first password, as void_links does for those who change it: there is no
 * trigger for a new password, so that a backup is put back as it was.
 */
export async function voidLinks(db: Queryable, user_id: string): Promise<void> {
  await db.query('delete from login_links where user_id = $1', [user_id]);
  await db.query('delete from auth.verification where value = $1', [user_id]);
  await db.query('delete from email_claims where user_id = $1', [user_id]);
}

/** Links that nobody can use any more. */
export async function removeOldLoginLinks(db: Queryable, now: Date): Promise<void> {
  await db.query('delete from login_links where expires_at < $1', [now]);
}
