import { renameAccount, requireSecondFactor } from '../accounts/accounts.ts';
import { findKeys } from '../accounts/key-list.ts';
import { keyState } from '../accounts/keys.ts';
import { mailProofOf } from '../accounts/sign-in/email-claims.ts';
import { invitationMail } from '../accounts/mails.ts';
import { projectNames } from '../accounts/projects.ts';
import { limitable_roles, role_names, type Membership } from '../accounts/roles.ts';
import {
  changeMember,
  invitationName,
  invite,
  listInvitations,
  listMembers,
  withdrawInvitation,
  type MemberAnswer,
} from '../accounts/team.ts';
import type { Db } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { ApiError, invalidField } from '../errors.ts';
import { keysOfMember } from '../money/ledger.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { InvitedView, KeyOutsideView, MemberChangedView, MemberView, TeamView } from './views/settings.ts';

/**
 * Members of the account. Invitations are listed for owners, and the link of each for who sent it: it is as good as a
 * password, also for an owner who is removed later.
 */
export const get_team = account_endpoint('GET', '/team', 'read', async (app, { account, person }) => {
  const may_invite = person.role === 'owner';
  const [members, names, invitations] = await Promise.all([
    listMembers(app.db, account.id),
    projectNames(app.db, account.id),
    may_invite ? listInvitations(app.db, account.id, new Date(app.clock.now())) : null,
  ]);
  const named = (ids: readonly string[] | null) => ids && ids.map((id) => ({ id, name: names.get(id) ?? id }));
  const view: TeamView = {
    members: members.map((member): MemberView => ({
      ...member,
      projects: named(member.projects),
      created_at: member.created_at.toISOString(),
    })),
    invitations:
      invitations?.map(({ link_id, inviter_id, email, role, projects, inviter, created_at, expires_at }) => {
        const [created, expires] = [created_at.toISOString(), expires_at.toISOString()];
        const shown = { id: invitationName(link_id), email, role, projects: named(projects), inviter };
        const link = inviter_id === person.user.id ? linkOf(app, link_id) : null;
        return { ...shown, created_at: created, expires_at: expires, link };
      }) ?? null,
    second_factor_required: account.second_factor_required,
  };
  return { status: 200, body: view };
});

function linkOf({ base_url }: { base_url(): string }, id: string): string {
  return `${base_url()}/invitation?id=${id}`;
}

/** Another name of the account, for all of its members at once. */
export const rename_account = account_endpoint('PUT', '/name', 'members', async (app, call) => {
  const name = readBodyFields(call.body).text('name', 200);
  const before = await renameAccount(app.db, call.account.id, name);
  await auditAction(app, call, 'account.rename', call.account.id, { name, name_before: before });
  return { status: 200, body: { name } };
});

/** Members without a second factor are led to turn one on, from their next request on. Whoever decides it has one. */
export const require_second_factor = account_endpoint(
  'PUT',
  '/team/second-factor',
  'members',
  async (app, call) => {
    const { account, person, body } = call;
    const is_required = body?.['required'];
    if (typeof is_required !== 'boolean') throw invalidField('required', 'required must be true or false.');
    if (is_required && !person.has_two_factors)
      throw new ApiError('conflict', 'Turn on your own second factor first, in Settings, Security.');
    await requireSecondFactor(app.db, account.id, is_required);
    await auditAction(app, call, 'account.require_second_factor', account.id, { required: is_required });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

/** Another role, or other projects that the member is limited to, from their next request on. `projects: null`: all of the account. */
export const change_member = account_endpoint(
  'PATCH',
  '/team/{user}',
  'members',
  async (app, call) => {
    const { account, params, body } = call;
    const role = body?.['role'] === undefined ? undefined : readBodyFields(body).oneOf('role', role_names);
    const projects = await readProjects(app.db, call);
    if (role === undefined && projects === undefined) throw invalidField('role', 'Send a role, or projects.');
    const user_id = params['user'] ?? '';
    const before = done(await changeMember(app.db, { account_id: account.id, user_id }, { role, projects }));
    await auditAction(app, call, 'member.change', user_id, {
      ...(role !== undefined && { role, role_before: before.role }),
      ...(projects !== undefined && { projects: shownIds(projects), projects_before: shownIds(before.projects) }),
    });
    const keys_outside = projects ? await keysOutside(app, account.id, { user_id, projects }) : [];
    return { status: 200, body: { keys_outside } satisfies MemberChangedView };
  },
  { needs_proof: true },
);

/** Out of the account, from their next request on; what they made stays. */
export const remove_member = account_endpoint(
  'DELETE',
  '/team/{user}',
  'members',
  async (app, call) => {
    const { account, params } = call;
    const user_id = params['user'] ?? '';
    const before = done(await changeMember(app.db, { account_id: account.id, user_id }, undefined));
    await auditAction(app, call, 'member.remove', user_id, { role_before: before.role });
    const keys_outside = await keysOutside(app, account.id, { user_id, projects: [] });
    return { status: 200, body: { keys_outside } satisfies MemberChangedView };
  },
  { needs_proof: true },
);

/** Keys that an answer lists. */
const keys_outside_max = 100;

/** Returns the working keys that somebody has made and that open more than these projects: a limit changes no key. */
async function keysOutside(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  account_id: string,
  { user_id, projects }: { user_id: string; projects: readonly string[] },
): Promise<KeyOutsideView[]> {
  const own_keys = await keysOfMember(db, account_id, user_id);
  const project_by_key = new Map(own_keys.map(({ key_id, project_id }) => [key_id, project_id]));
  const [keys, names] = await Promise.all([
    findKeys(db, account_id, project_by_key.keys()),
    projectNames(db, account_id),
  ]);
  const now_ms = clock.now();
  const outside = keys.flatMap((key) => {
    const project = project_by_key.get(key.id);
    if (project === undefined || (key.is_limited && projects.includes(project))) return [];
    if (!['active', 'ending'].includes(keyState(key, now_ms))) return [];
    const { id, name, is_limited } = key;
    return [{ id, name, project: { id: project, name: names.get(project) ?? project }, is_limited }];
  });
  return outside.toSorted((a, b) => (a.id < b.id ? -1 : 1)).slice(0, keys_outside_max); // ids begin with their time
}

/**
 * Reads the projects that a member is limited to: undefined if the body has none, null for all of the account. Throws
 * ApiError.
 */
async function readProjects(db: Db, { account, body }: AccountCall): Promise<string[] | null | undefined> {
  const value: unknown = body?.['projects'];
  if (value === undefined || value === null) return value;
  const names = await projectNames(db, account.id);
  const items: readonly unknown[] = Array.isArray(value) ? value : [undefined];
  const ids = items.flatMap((id) => (typeof id === 'string' && names.has(id) ? [id] : []));
  if (ids.length === items.length) return [...new Set(ids)];
  throw invalidField(
    'projects',
    'projects must be a list of ids of projects of this account; null is all of the account.',
  );
}

/** Ids as the audit log shows them: an empty list would be read as none given. */
function shownIds(projects: readonly string[] | null): string {
  return projects === null ? 'all' : projects.join(', ') || 'none';
}

const whole_account =
  'Owners and members for billing see all of the account: only developers and viewers can be limited to projects.';

function done(answer: MemberAnswer): Membership {
  if (answer.outcome === 'done') return answer.before;
  if (answer.outcome === 'unlimitable') throw invalidField('projects', whole_account);
  if (answer.outcome === 'limited')
    throw new ApiError(
      'conflict',
      `This member is limited to projects. Let them see all of the account first. ${whole_account}`,
    );
  if (answer.outcome === 'missing') throw new ApiError('not_found', 'There is no such member.');
  throw new ApiError('conflict', 'The account would have no owner. Make somebody else an owner first.');
}

/** A link for somebody: mailed where the service can, and to be handed over where it cannot. */
export const create_invitation = account_endpoint(
  'POST',
  '/team/invitations',
  'members',
  async (app, call) => {
    const { account, person, body } = call;
    const fields = readBodyFields(body);
    const role = fields.oneOf('role', role_names);
    const email = fields.text('email', 254);
    if (!/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(email)) throw invalidField('email', 'email must be an e-mail address.');
    const projects = (await readProjects(app.db, call)) ?? null;
    if (projects && !limitable_roles.includes(role)) throw invalidField('projects', whole_account);
    const invitation = { account_id: account.id, email, role, projects, inviter_id: person.user.id };
    const invited = await invite(app.db, invitation, new Date(app.clock.now()));
    if (invited === 'member') throw new ApiError('conflict', `${email} is a member already.`, { param: 'email' });
    if (invited === 'too_many') throw tooMany();
    if (invited === 'no_owner') throw new ApiError('forbidden', 'You are no owner of this account any more.');
    await auditAction(app, call, 'invitation.create', undefined, {
      email,
      role,
      ...(projects && { projects: shownIds(projects) }),
    });
    const link = linkOf(app, invited.id);
    const mailed = `${link}&proof=${mailProofOf(app.secret, { id: invited.id, email })}`; // the inviter never sees it
    app.mailer.post(invitationMail({ to: email, from: person.user.name, account_name: account.name, link: mailed }));
    const view: InvitedView = {
      link,
      expires_at: invited.expires_at.toISOString(),
      mailed: app.mailer.ready(),
    };
    return { status: 201, body: view };
  },
  { needs_proof: true },
);

function tooMany(): ApiError {
  const headers = { 'retry-after': '3600' };
  return new ApiError('rate_limit', 'Too many invitations in an hour. Try again later.', { headers });
}

export const withdraw_invitation = account_endpoint(
  'DELETE',
  '/team/invitations/{id}',
  'members',
  async (app, call) => {
    const { id = '' } = call.params;
    const email = id.includes('\0') ? undefined : await withdrawInvitation(app.db, call.account.id, id);
    if (email === undefined) throw new ApiError('not_found', 'There is no such invitation.');
    await auditAction(app, call, 'invitation.withdraw', undefined, { email });
    return { status: 200, body: { ok: true } };
  },
);
