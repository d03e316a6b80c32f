import type { Db, Queryable } from '../../db/database.ts';
import { newId, randomBase62 } from '../../lib/ids.ts';
import { freeEmail, isTaken, placeholderOf } from './email-claims.ts';
import { voidLinks } from './login-links.ts';
import { admitMember, type Invitation } from '../members.ts';
import { proveSession } from './sessions.ts';

/**
 * The first password of a person. The login library is not used for it: its steps are separate calls, so two
 * at the same moment would both succeed, and a failure would leave half a person behind.
 */

/** `password` is its hash, as the library makes it. */
type NewPerson = { name: string; password: string };

/**
 * The state of a person's address: `proved` by the mailbox; `held` without a proof, if the service cannot ask
 * for one; or a `claim` that waits for the proof.
 */
export type EmailState = 'proved' | 'held' | 'claim';

/** A new person, member by their invitation. `gone`: it cannot be used any more; `known`: somebody has its address. */
export async function joinAsNew(
  db: Db,
  invitation: Invitation,
  { name, password, state, address }: NewPerson & { state: EmailState; address: string },
  now: Date,
): Promise<{ user_id: string } | 'gone' | 'known'> {
  const work = db.tx<{ user_id: string } | 'gone' | 'known'>(async (tx) => {
    // Whoever invites waits at the account, whoever else uses or withdraws the invitation at that.
    await tx.query('select 1 from auth.organization where id = $1 for key share', [invitation.account_id]);
    const open = await tx.query(
      `select 1 from auth.invitation where id = $1 and status = 'pending' and "expiresAt" > $2 for update`,
      [invitation.id, now],
    );
    if (open.length === 0) return 'gone';
    const user_id = newId('user', now.getTime());
    const email = invitation.email.toLowerCase();
    if (state === 'proved' && !(await freeEmail(tx, email, undefined, now))) return 'known';
    const user = { id: user_id, email: state === 'claim' ? placeholderOf(user_id) : email };
    await tx.query(
      `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt")
         values ($1, $2, $3, $4, $5, $5)`,
      [user.id, name, user.email, state === 'proved', now],
    );
    await addPassword(tx, user_id, password, now);
    await admitMember(tx, invitation, { user, address }, now);
    return { user_id };
  });
  return work.catch((error: unknown) => {
    if (isTaken(error)) return 'known';
    throw error;
  });
}

/**
 * The first password of somebody who came by a link, and their own address; without one it waits for its proof. It ends
 * their other sessions and their links, as every new password does.
 */
export async function setUpPerson(
  db: Db,
  { user_id, session_id }: { user_id: string; session_id: string },
  { email, name, password }: NewPerson & { email: string | undefined },
  now: Date,
): Promise<'done' | 'has_password' | 'address_taken'> {
  const work = db.tx(async (tx) => {
    await tx.query('select 1 from auth."user" where id = $1 for update', [user_id]);
    const passwords = await tx.query('select 1 from auth.account where "userId" = $1', [user_id]);
    if (passwords.length > 0) return 'has_password';
    await tx.query('update auth."user" set email = coalesce($2, email), name = $3, "updatedAt" = $4 where id = $1', [
      user_id,
      email,
      name,
      now,
    ]);
    await addPassword(tx, user_id, password, now);
    await voidLinks(tx, user_id);
    await tx.query('delete from auth.session where "userId" = $1 and id <> $2', [user_id, session_id]);
    await proveSession(tx, session_id, now);
    return 'done';
  });
  return work.catch((error: unknown) => {
    if (isTaken(error)) return 'address_taken';
    throw error;
  });
}

async function addPassword(tx: Queryable, user_id: string, password: string, now: Date): Promise<void> {
  await tx.query(
    `insert into auth.account (id, "accountId", "providerId", "userId", password, "createdAt", "updatedAt")
       values ($1, $2, 'credential', $2, $3, $4, $4)`,
    [randomBase62(32), user_id, password, now],
  );
}
