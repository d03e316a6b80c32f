import { hash } from 'node:crypto';
import type { Db, Queryable } from '../db/database.ts';
import { randomBase62 } from '../lib/ids.ts';
import { limitOf } from './limit.ts';
import { no_mail_domain } from './sign-in/login-rules.ts';
import { limitable_roles, type Membership, type Role } from './roles.ts';

/** A member of an account. Members are changed here, not by the login library: an account always keeps an owner. */
export type Member = {
  user_id: string;
  name: string;
  /** Null: came by a link, and has not said. */
  email: string | null;
  role: Role;
  /** Ids of the projects that they are limited to; null: not limited. */
  projects: string[] | null;
  two_factor: boolean;
  created_at: Date;
};

/** Owners first, then by name. */
export async function listMembers(db: Queryable, account_id: string): Promise<Member[]> {
  return db.query<Member>(
    `select m."userId" as user_id, u.name, case when u.email like '%@' || $2 then null else u.email end as email,
            m.role, ${limitOf('m')} as projects, coalesce(u."twoFactorEnabled", false)
              or exists (select from passkeys p where p.user_id = u.id) as two_factor, m."createdAt" as created_at
       from auth.member m join auth."user" u on u.id = m."userId"
      where m."organizationId" = $1 order by m.role <> 'owner', lower(u.name), m."userId"`,
    [account_id, no_mail_domain],
  );
}

/**
 * `last_owner`: nobody else could let people in then, so nothing was changed. `limited`: their new role sees all of the
 * account, and they do not. `unlimitable`: their role cannot be limited.
 */
export type MemberAnswer =
  | { outcome: 'done'; before: Membership }
  | { outcome: 'missing' | 'last_owner' | 'limited' | 'unlimitable' };

/** A change of a member; what is undefined stays. */
export type MemberChange = { role: Role | undefined; projects: readonly string[] | null | undefined };

/**
 * Gives a member another standing, or, without one, takes them out of the account. The open invitations of an owner who
 * is none any more end with it: by one of them they would come back.
 */
export async function changeMember(
  db: Db,
  { account_id, user_id }: { account_id: string; user_id: string },
  change: MemberChange | undefined,
): Promise<MemberAnswer> {
  return db.tx(async (tx) => {
    // Two owners who demote each other at the same moment wait for each other here.
    await tx.query('select 1 from auth.organization where id = $1 for update', [account_id]);
    const members = await tx.query<Membership & { user_id: string }>(
      `select m."userId" as user_id, m.role, ${limitOf('m')} as projects from auth.member m where m."organizationId" = $1`,
      [account_id],
    );
    const member = members.find((each) => each.user_id === user_id);
    if (!member) return { outcome: 'missing' };
    const others = members.filter((each) => each.role === 'owner' && each.user_id !== user_id);
    const { role, projects: before } = member;
    const next = change && {
      role: change.role ?? role,
      projects: change.projects === undefined ? before : change.projects,
    };
    if (next?.projects && !limitable_roles.includes(next.role))
      return { outcome: change?.projects ? 'unlimitable' : 'limited' };
    if (role === 'owner' && next?.role !== 'owner' && others.length === 0) return { outcome: 'last_owner' };
    const values = [account_id, user_id];
    if (role === 'owner' && next?.role !== 'owner') {
      await tx.query(
        `update auth.invitation set status = 'canceled'
          where "organizationId" = $1 and "inviterId" = $2 and status = 'pending'`,
        values,
      );
    }
    if (next === undefined) {
      await tx.query('delete from auth.member where "organizationId" = $1 and "userId" = $2', values);
    } else {
      await tx.query('update auth.member set role = $3, projects = $4 where "organizationId" = $1 and "userId" = $2', [
        ...values,
        next.role,
        next.projects,
      ]);
    }
    return { outcome: 'done', before: { role, projects: before } };
  });
}

/** An invitation that can still be accepted. The id of its link opens it, as a password would. */
export type PendingInvitation = {
  link_id: string;
  inviter_id: string;
  email: string;
  role: Role;
  projects: string[] | null;
  created_at: Date;
  expires_at: Date;
  inviter: string;
};

/** Lists the invitations that can still be accepted, newest first. */
export async function listInvitations(db: Queryable, account_id: string, now: Date): Promise<PendingInvitation[]> {
  return db.query<PendingInvitation>(
    `select i.id as link_id, i."inviterId" as inviter_id, i.email, coalesce(i.role, 'viewer') as role, ${limitOf('i')} as projects, i."createdAt" as created_at,
            i."expiresAt" as expires_at, u.name as inviter
       from auth.invitation i join auth."user" u on u.id = i."inviterId"
      where i."organizationId" = $1 and i.status = 'pending' and i."expiresAt" > $2 order by i."createdAt" desc, i.id`,
    [account_id, now],
  );
}

/** Names an invitation to owners, and opens nothing. */
export function invitationName(link_id: string): string {
  return hash('sha256', link_id, 'hex');
}

const week_ms = 7 * 86_400_000;

type Invited = Membership & { account_id: string; email: string; inviter_id: string };

/** Each of them may be mailed, with the name of the account in it: nobody gets a mail server for free. */
const invitations_per_hour = 20;

/** Invites somebody for a week; an invitation that they had before ends. `no_owner`: the inviter is none any more. */
export async function invite(
  db: Db,
  invited: Invited,
  now: Date,
): Promise<{ id: string; expires_at: Date } | 'member' | 'too_many' | 'no_owner'> {
  const { account_id, role, projects, inviter_id } = invited;
  const email = invited.email.toLowerCase();
  const expires_at = new Date(now.getTime() + week_ms);
  const id = randomBase62(32);
  return db.tx(async (tx) => {
    await tx.query('select 1 from auth.organization where id = $1 for update', [account_id]);
    const inviters = await tx.query(
      `select 1 from auth.member where "organizationId" = $1 and "userId" = $2 and role = 'owner'`,
      [account_id, inviter_id],
    );
    if (inviters.length === 0) return 'no_owner'; // removed in this very moment: nothing would end it
    const members = await tx.query(
      `select 1 from auth.member m join auth."user" u on u.id = m."userId"
        where m."organizationId" = $1 and lower(u.email) = $2`,
      [account_id, email],
    );
    if (members.length > 0) return 'member';
    const [invitations] = await tx.query<{ count: number }>(
      `select count(*)::int as count from auth.invitation where "organizationId" = $1 and "createdAt" > $2`,
      [account_id, new Date(now.getTime() - 3_600_000)],
    );
    if (invitations && invitations.count >= invitations_per_hour) return 'too_many';
    await tx.query(
      `update auth.invitation set status = 'canceled'
        where "organizationId" = $1 and lower(email) = $2 and status = 'pending'`,
      [account_id, email],
    );
    await tx.query(
      `insert into auth.invitation (id, "organizationId", email, role, projects, status, "expiresAt", "createdAt", "inviterId")
       values ($1, $2, $3, $4, $5, 'pending', $6, $7, $8)`,
      [id, account_id, email, role, projects, expires_at, now, inviter_id],
    );
    return { id, expires_at };
  });
}

/**
 * Withdraws the invitation of this name: its link opens nothing any more. Returns the address that it was for; undefined
 * if there is no such invitation.
 */
export async function withdrawInvitation(db: Queryable, account_id: string, name: string): Promise<string | undefined> {
  const rows = await db.query<{ email: string }>(
    `update auth.invitation set status = 'canceled'
      where encode(sha256(convert_to(id, 'UTF8')), 'hex') = $2 and "organizationId" = $1 and status = 'pending'
     returning email`,
    [account_id, name],
  );
  return rows[0]?.email;
}

/** Removes invitations, accepted or not, whose time ended before. */
export async function removeOldInvitations(db: Queryable, ended_before: Date): Promise<void> {
  await db.query('delete from auth.invitation where "expiresAt" < $1', [ended_before]);
}
