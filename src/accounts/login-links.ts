import { createHash, randomBytes } from 'node:crypto';
import type { Queryable } from '../db/database.ts';

/** How long a link can be used. */
const login_link_ms = 15 * 60_000;

function hashOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}

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
    hashOf(token),
    user_id,
    now,
    new Date(now.getTime() + lifetime_ms),
  ]);
  return `${base_url}/sign-in?token=${token}`;
}

/** The person whose link this is; undefined if there is none, or it was used, or is too old. */
export async function spendLoginLink(db: Queryable, token: string, now: Date): Promise<string | undefined> {
  const rows = await db.query<{ user_id: string }>(
    'update login_links set used_at = $2 where hash = $1 and used_at is null and expires_at > $2 returning user_id',
    [hashOf(token), now],
  );
  return rows[0]?.user_id;
}

/** Links that nobody can use any more. */
export async function removeOldLoginLinks(db: Queryable, now: Date): Promise<void> {
  await db.query('delete from login_links where expires_at < $1', [now]);
}
