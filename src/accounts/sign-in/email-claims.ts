import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { sha256 } from '../../lib/sha256.ts';
import type { Db, Queryable } from '../../db/database.ts';
import { no_mail_domain } from './login-rules.ts';

/**
 * Ownership of e-mail addresses. An address belongs to the person who follows the link that was mailed to it.
 * Until then it is a claim: nobody signs in, is invited or gets mail by it. A service without mail cannot ask
 * for that proof: there an address counts for signing in if the operator's link or the invitation admitted its
 * person.
 */

const day_ms = 86_400_000;

/** Writes down that a person says that this address is theirs. Returns the token of the link that proves it. */
export async function claimEmail(db: Queryable, user_id: string, email: string, now: Date): Promise<string> {
  const token = randomBytes(32).toString('base64url');
  await db.query(
    `insert into email_claims (user_id, hash, email, created_at, expires_at) values ($1, $2, $3, $4, $5)
       on conflict (user_id) do update set hash = excluded.hash, email = excluded.email,
         created_at = excluded.created_at, expires_at = excluded.expires_at`,
    [user_id, sha256(token), email, now, new Date(now.getTime() + day_ms)],
  );
  return token;
}

/** Says whether somebody has proved that this address is theirs. */
export async function isProvedEmail(db: Queryable, email: string): Promise<boolean> {
  const rows = await db.query('select 1 from auth."user" where email = $1 and "emailVerified"', [email]);
  return rows.length > 0;
}

export type ConfirmedEmail = { user_id: string; email: string; email_before: string | undefined };

/**
 * Gives the address to whoever claimed it with this token: somebody who held it without a proof loses it. `gone`: there
 * is no such claim any more; `taken`: somebody else has proved the same address meanwhile.
 */
export async function confirmEmail(db: Db, token: string, now: Date): Promise<ConfirmedEmail | 'gone' | 'taken'> {
  const work = db.tx<ConfirmedEmail | 'gone' | 'taken'>(async (tx) => {
    const [claim] = await tx.query<{ user_id: string; email: string }>(
      'delete from email_claims where hash = $1 and expires_at > $2 returning user_id, email',
      [sha256(token), now],
    );
    if (!claim) return 'gone';
    const { user_id, email } = claim;
    if (!(await freeEmail(tx, email, user_id, now))) return 'taken';
    const [before] = await tx.query<{ email: string; proved: boolean }>(
      'select email, "emailVerified" as proved from auth."user" where id = $1 for update',
      [user_id],
    );
    await tx.query('update auth."user" set email = $2, "emailVerified" = true, "updatedAt" = $3 where id = $1', [
      user_id,
      email,
      now,
    ]);
    const is_other = before?.proved === true && before.email !== email;
    return { user_id, email, email_before: is_other ? before.email : undefined };
  });
  return work.catch((error: unknown) => {
    if (isTaken(error)) return 'taken';
    throw error;
  });
}

/** Addresses are unique, also among those who ask at the same moment. */
export function isTaken(error: unknown): boolean {
  return error instanceof Error && 'constraint' in error && error.constraint === 'user_email_key';
}

/** Takes an address from who holds it without a proof. False if somebody other than `user_id` has proved it. */
export async function freeEmail(
  tx: Queryable,
  email: string,
  user_id: string | undefined,
  now: Date,
): Promise<boolean> {
  const [holder] = await tx.query<{ id: string; proved: boolean }>(
    'select id, "emailVerified" as proved from auth."user" where email = $1 for update',
    [email],
  );
  if (!holder || holder.id === user_id) return true;
  if (holder.proved) return false;
  await tx.query('update auth."user" set email = $2, "updatedAt" = $3 where id = $1', [
    holder.id,
    placeholderOf(holder.id),
    now,
  ]);
  return true;
}

/** The address of somebody who has none that counts; nobody can have it otherwise. */
export function placeholderOf(user_id: string): string {
  return `${user_id}@${no_mail_domain}`;
}

/** Claims that nobody can prove any more. */
export async function removeOldClaims(db: Queryable, now: Date): Promise<void> {
  await db.query('delete from email_claims where expires_at < $1', [now]);
}

type Invited = { id: string; email: string };

/**
 * Returns the proof that is only in the mailed link of an invitation: its holder reads the mail of the invited
 * address.
 */
export function mailProofOf(secret: string, { id, email }: Invited): string {
  return createHmac('sha256', secret).update(`invitation mail\0${id}\0${email.toLowerCase()}`).digest('base64url');
}

export function isMailProof(secret: string, invited: Invited, proof: string | undefined): boolean {
  const [expected, sent] = [Buffer.from(mailProofOf(secret, invited)), Buffer.from(proof ?? '')];
  return expected.length === sent.length && timingSafeEqual(expected, sent);
}
