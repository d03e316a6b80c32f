import type { Db, Queryable, Tx } from '../db/database.ts';
import { newId } from '../lib/ids.ts';
import { audit } from './audit.ts';
import { limitOf } from './limit.ts';
import { no_mail_domain } from './sign-in/login-rules.ts';
import type { Membership, Role } from './roles.ts';

/** An account as somebody who belongs to it sees it. */
export type AccountOfMember = Membership & {
  account_id: string;
  account_name: string;
  currency: string;
  status: 'active' | 'blocked';
  second_factor_required: boolean;
};

export type Invitation = Membership & { id: string; account_id: string; account_name: string; email: string };

/** The accounts of a person, oldest first. */
export async function membershipsOf(db: Queryable, user_id: string): Promise<AccountOfMember[]> {
  return db.query<AccountOfMember>(
    `select a.id as account_id, a.name as account_name, a.currency, a.status, a.second_factor_required, m.role,
            ${limitOf('m')} as projects
       from auth.member m join accounts a on a.id = m."organizationId" where m."userId" = $1 order by a.created_at, a.id`,
    [user_id],
  );
}

/** Returns the standing of a person in an account; undefined if they are no member. */
export async function membershipIn(
  db: Queryable,
  user_id: string,
  account_id: string,
): Promise<Membership | undefined> {
  const rows = await db.query<Membership>(
    `select m.role, ${limitOf('m')} as projects from auth.member m where m."userId" = $1 and m."organizationId" = $2`,
    [user_id, account_id],
  );
  return rows[0];
}

/** An invitation that can still be accepted. */
export async function findInvitation(db: Queryable, id: string, now: Date): Promise<Invitation | undefined> {
  const rows = await db.query<Invitation>(
    `select i.id, i."organizationId" as account_id, o.name as account_name, i.email, coalesce(i.role, 'viewer') as role,
            ${limitOf('i')} as projects
       from auth.invitation i join auth.organization o on o.id = i."organizationId"
      where i.id = $1 and i.status = 'pending' and i."expiresAt" > $2`,
    [id, now],
  );
  return rows[0];
}

/** Somebody who uses an invitation, and where they come from. */
type Joiner = { user: { id: string; email: string }; address: string };

/**
 * Makes somebody a member by their invitation, which is used up; the audit log of the account says so. False if somebody
 * else was faster, or they are one.
 */
export async function admitMember(
  tx: Tx,
  invitation: Invitation,
  { user, address }: Joiner,
  now: Date,
): Promise<boolean> {
  // The account is locked first, as `invite` does it: in opposite orders the two would wait for each other.
  const rows = await tx.query(
    `with used as (
       update auth.invitation i set status = 'accepted'
         from (select id from auth.organization where id = $5 for key share) account
        where i.id = $1 and i."organizationId" = account.id and status = 'pending' and "expiresAt" > $3
       returning i."organizationId", coalesce(role, 'viewer') as role, projects)
     insert into auth.member (id, "organizationId", "userId", role, projects, "createdAt")
       select $4, "organizationId", $2, role, projects, $3 from used on conflict ("userId", "organizationId") do nothing returning id`,
    [invitation.id, user.id, now, newId('member', now.getTime()), invitation.account_id],
  );
  if (rows.length !== 1) return false;
  const { account_id, email, role, projects } = invitation;
  const details = { invited: email, role, ...(projects && { projects: projects.join(', ') || 'none' }) };
  await audit(tx, { account_id, user, action: 'member.join', subject: user.id, details, address, now });
  return true;
}

const advisory_lock = 7_633_529_005;

/**
 * The first person of a service, who runs it: an operator without a password, owner of the first account, who
 * comes in by a link. The same one every time; null once somebody else is an operator with a password.
 */
export async function firstOperator(db: Db, account_id: string, now: Date): Promise<string> {
  return db.tx(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [advisory_lock]);
    const operators = await tx.query<{ id: string }>(
      'select id from auth."user" where "isOperator" order by "createdAt", id limit 1',
    );
    if (operators[0]) return operators[0].id;
    const id = newId('user', now.getTime());
    await tx.query(
      `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt", "isOperator")
       values ($1, 'Operator', $2, false, $3, $3, true)`,
      [id, `${id}@${no_mail_domain}`, now],
    );
    await addMember(tx, { account_id, user_id: id, role: 'owner' }, now);
    return id;
  });
}

/** Makes somebody a member of all of the account, or changes their role and lifts their limit. */
export async function addMember(
  db: Queryable,
  member: { account_id: string; user_id: string; role: Role },
  now: Date,
): Promise<void> {
  await db.query(
    `insert into auth.member (id, "organizationId", "userId", role, "createdAt") values ($1, $2, $3, $4, $5)
       on conflict ("userId", "organizationId") do update set role = excluded.role, projects = null`,
    [newId('member', now.getTime()), member.account_id, member.user_id, member.role, now],
  );
}

/**
 * Returns the addresses of members who manage the account's money. Unproved addresses are left out: they may
 * be strangers'.
 */
export async function moneyAddresses(db: Queryable, account_id: string): Promise<string[]> {
  const rows = await db.query<{ email: string }>(
    `select u.email from auth.member m join auth."user" u on u.id = m."userId"
      where m."organizationId" = $1 and m.role in ('owner', 'billing') and u."emailVerified" order by u.email`,
    [account_id],
  );
  return rows.map(({ email }) => email);
}

/** A proved address of somebody who belongs to an account. */
export type MemberAddress = { account_id: string; user_id: string; role: Role; email: string };

/** Returns the proved addresses of the members of these accounts, without those who are limited to projects. */
export async function addressesOf(db: Queryable, account_ids: readonly string[]): Promise<MemberAddress[]> {
  return db.query<MemberAddress>(
    `select m."organizationId" as account_id, u.id as user_id, m.role, u.email from auth.member m join auth."user" u on u.id = m."userId"
      where m."organizationId" = any($1) and u."emailVerified" and ${limitOf('m')} is null order by u.email`,
    [account_ids],
  );
}

/** Returns the proved addresses of those who run the service. */
export async function operatorAddresses(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ email: string }>(
    'select email from auth."user" where "isOperator" and "emailVerified" order by email',
  );
  return rows.map(({ email }) => email);
}

/** Returns the first owner of an account, for a link to it. Makes one if there is none. */
export async function ownerOf(db: Db, account_id: string, now: Date): Promise<string> {
  return db.tx(async (tx) => {
    // Two who ask at the same moment wait for each other here.
    await tx.query('select 1 from auth.organization where id = $1 for update', [account_id]);
    const [member] = await tx.query<{ user_id: string }>(
      `select "userId" as user_id from auth.member where "organizationId" = $1 and role = 'owner' order by "createdAt", id limit 1`,
      [account_id],
    );
    if (member) return member.user_id;
    const id = newId('user', now.getTime());
    await tx.query(
      `insert into auth."user" (id, name, email, "emailVerified", "createdAt", "updatedAt")
       values ($1, 'Owner', $2, false, $3, $3)`,
      [id, `${id}@${no_mail_domain}`, now],
    );
    await addMember(tx, { account_id, user_id: id, role: 'owner' }, now);
    return id;
  });
}

export type Member = {
  user_id: string;
  name: string;
  email: string;
  role: Role;
  two_factor: boolean;
  created_at: Date;
};

/** The people of an account, oldest first. */
export async function listMembers(db: Queryable, account_id: string): Promise<Member[]> {
  return db.query<Member>(
    `select u.id as user_id, u.name, u.email, m.role, coalesce(u."twoFactorEnabled", false)
              or exists (select from passkeys p where p.user_id = u.id) as two_factor,
            m."createdAt" as created_at
       from auth.member m join auth."user" u on u.id = m."userId" where m."organizationId" = $1 order by m."createdAt", u.id`,
    [account_id],
  );
}
