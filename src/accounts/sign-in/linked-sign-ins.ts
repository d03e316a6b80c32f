import type { Db, Queryable } from '../../db/database.ts';
import { newId, randomBase62 } from '../../lib/ids.ts';
import { insertAccount } from '../accounts.ts';
import { audit } from '../audit.ts';
import { isTaken } from './email-claims.ts';
import type { Identity } from './issuers.ts';
import { addMember } from '../members.ts';
import { SignInProblem } from './problem.ts';
import type { SignInIssuer } from './settings.ts';
import { hasOtherWay, type UsableWays } from '../ways-in.ts';

/**
 * People as issuers know them: rows of `auth.account`, by the issuer's address and its own id of the person. An e-mail
 * address leads to a person only where both sides have proved it: else whoever enters it first anywhere would be them.
 */

/** A connection of a person with an issuer. */
export type LinkedSignIn = {
  id: string;
  issuer: string;
  email: string | null;
  created_at: Date;
  used_at: Date | null;
};

/** The connections of a person, oldest first. */
export async function listSignIns(db: Queryable, user_id: string): Promise<LinkedSignIn[]> {
  return db.query<LinkedSignIn>(
    `select id, "providerId" as issuer, email, "createdAt" as created_at, "usedAt" as used_at from auth.account
      where "userId" = $1 and "providerId" <> 'credential' order by "createdAt", id`,
    [user_id],
  );
}

/** Returns the person whom this issuer knows by this id, and notes the use. */
export async function personOfIssuer(
  db: Queryable,
  { issuer }: Pick<SignInIssuer, 'issuer'>,
  { subject }: Pick<Identity, 'subject'>,
  now: Date,
): Promise<string | undefined> {
  const rows = await db.query<{ user_id: string }>(
    `update auth.account set "usedAt" = $3 where "providerId" = $1 and "accountId" = $2 returning "userId" as user_id`,
    [issuer, subject, now],
  );
  return rows[0]?.user_id;
}

type Link = { user_id: string; issuer: SignInIssuer; identity: Identity };

/** Connects a person with an issuer. False if the issuer's person is connected with somebody else here. */
export async function linkSignIn(db: Queryable, { user_id, issuer, identity }: Link, now: Date): Promise<boolean> {
  await db.query(
    `insert into auth.account (id, "accountId", "providerId", "userId", email, "createdAt", "updatedAt", "usedAt")
       values ($1, $2, $3, $4, $5, $6, $6, $6) on conflict ("providerId", "accountId") where "providerId" <> 'credential'
       do nothing`,
    [randomBase62(32), identity.subject, issuer.issuer, user_id, identity.email, now],
  );
  return (await personOfIssuer(db, issuer, identity, now)) === user_id;
}

/** `last`: there would be no way in without it. */
export type UnlinkOutcome = { outcome: 'done'; issuer: string } | { outcome: 'missing' } | { outcome: 'last' };

/** Ends a connection of a person, unless it is their last way in. */
export async function unlinkSignIn(
  db: Db,
  { user_id, id }: { user_id: string; id: string },
  usable: UsableWays,
): Promise<UnlinkOutcome> {
  return db.tx<UnlinkOutcome>(async (tx) => {
    await tx.query('select 1 from auth."user" where id = $1 for update', [user_id]);
    const [way] = await tx.query<{ issuer: string }>(
      `select "providerId" as issuer from auth.account
        where id = $2 and "userId" = $1 and "providerId" <> 'credential'`,
      [user_id, id],
    );
    if (!way) return { outcome: 'missing' };
    if (!(await hasOtherWay(tx, { user_id, but: id }, usable))) return { outcome: 'last' };
    await tx.query('delete from auth.account where id = $1', [id]);
    return { outcome: 'done', issuer: way.issuer };
  });
}

/** `has_factors`: an authenticator, or passkeys, which a mailbox alone must not be good for. */
type Addressee = { user_id: string; is_proved: boolean; has_factors: boolean };

/** The person who has this address, proved or not. */
export async function personOfEmail(db: Queryable, email: string): Promise<Addressee | undefined> {
  const rows = await db.query<Addressee>(
    `select id as user_id, "emailVerified" as is_proved, coalesce("twoFactorEnabled", false)
              or exists (select from passkeys p where p.user_id = "user".id) as has_factors
       from auth."user" where email = $1`,
    [email],
  );
  return rows[0];
}

/** The newest invitation of this address that can still be accepted. */
export async function invitationOf(db: Queryable, email: string, now: Date): Promise<string | undefined> {
  const rows = await db.query<{ id: string }>(
    `select id from auth.invitation where lower(email) = $1 and status = 'pending' and "expiresAt" > $2
      order by "createdAt" desc, id limit 1`,
    [email, now],
  );
  return rows[0]?.id;
}

type Newcomer = {
  issuer: SignInIssuer;
  identity: Identity & { email: string };
  /** Members of no account, until they accept their invitation. */
  is_invited: boolean;
  currency: string;
  address: string;
};

/**
 * Makes a person whose address this issuer has proved, with the account that the operator wants for new people. Rejects
 * with SignInProblem where they come from nowhere.
 */
export async function admitNewcomer(db: Db, newcomer: Newcomer, now: Date): Promise<string> {
  const { issuer, identity, is_invited, currency, address } = newcomer;
  const { newcomers } = issuer;
  if (!is_invited && newcomers === 'refused') throw new SignInProblem('unknown_person', 'nobody is let in unasked');
  const work = db.tx(async (tx) => {
    const user_id = newId('user', now.getTime());
    const { email } = identity;
    const name = identity.name ?? email.replace(/@.*/, '');
    await tx.query(
      `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt")
         values ($1, $2, $3, true, $4, $4)`,
      [user_id, name, email, now],
    );
    if (!(await linkSignIn(tx, { user_id, issuer, identity }, now)))
      throw new SignInProblem('expired', 'the same person signs in elsewhere at this moment');
    const user = { id: user_id, email };
    const details = { by: issuer.name };
    await audit(tx, { user, action: 'person.create', subject: user_id, details, address, now });
    if (is_invited || newcomers === 'refused') return user_id;
    if (newcomers === 'own_account') {
      const { id } = await insertAccount(tx, { name, currency, initial_credit: 0n }, now);
      await addMember(tx, { account_id: id, user_id, role: 'owner' }, now);
      await audit(tx, { account_id: id, user, action: 'account.create', subject: id, details, address, now });
      return user_id;
    }
    const { account_id, role } = newcomers;
    const there = await tx.query('select 1 from auth.organization where id = $1 for key share', [account_id]);
    if (there.length === 0) throw new SignInProblem('unknown_person', `there is no account ${account_id} to join`);
    await addMember(tx, { account_id, user_id, role }, now);
    await audit(tx, {
      account_id,
      user,
      action: 'member.join',
      subject: user_id,
      details: { ...details, role },
      address,
      now,
    });
    return user_id;
  });
  return work.catch((error: unknown) => {
    if (isTaken(error)) throw new SignInProblem('expired', 'the same person signs in elsewhere at this moment');
    throw error;
  });
}
