import type { BetterAuthPlugin } from 'better-auth';
import { isRecord } from '../lib/is-record.ts';
import type { Queryable } from '../db/database.ts';
import { no_mail_domain, password_length } from './login-rules.ts';
import { spendLoginLink } from './login-links.ts';
import { admitMember, findInvitation } from './members.ts';

/**
 * Ways in that the library does not have: by a link of ours, by an invitation as somebody new, and the first
 * password of who came by a link.
 */
export async function loginEndpoints(db: Queryable, now: () => Date): Promise<BetterAuthPlugin> {
  const { createAuthEndpoint, getSessionFromCtx, APIError } = await import('better-auth/api');
  const { setSessionCookie } = await import('better-auth/cookies');

  const refuse = (message: string, status: 'BAD_REQUEST' | 'UNAUTHORIZED' | 'CONFLICT' = 'BAD_REQUEST') =>
    new APIError(status, { message });
  const text = (body: unknown, field: string, max: number): string => {
    const value = isRecord(body) ? body[field] : undefined;
    if (typeof value === 'string' && value.trim() !== '' && value.length <= max && !value.includes('\0')) return value;
    throw refuse(`${field} is required, and at most ${max} characters long.`);
  };
  const password = (body: unknown): string => {
    const value = text(body, 'password', password_length.max);
    if (value.length >= password_length.min) return value;
    throw refuse(`The password needs at least ${password_length.min} characters.`);
  };
  const email = (body: unknown): string => {
    const value = text(body, 'email', 254).trim().toLowerCase();
    if (/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value) && !value.endsWith(`@${no_mail_domain}`)) return value;
    throw refuse('email must be an e-mail address.');
  };

  return {
    id: 'medley',
    endpoints: {
      signInByLink: createAuthEndpoint('/sign-in/link', { method: 'POST' }, async (ctx) => {
        const user_id = await spendLoginLink(db, text(ctx.body, 'token', 100), now());
        const user = user_id === undefined ? null : await ctx.context.internalAdapter.findUserById(user_id);
        if (!user) throw refuse('This link has been used, or is too old. Ask for a new one.', 'UNAUTHORIZED');
        const session = await ctx.context.internalAdapter.createSession(user.id);
        await setSessionCookie(ctx, { session, user });
        return ctx.json({ ok: true });
      }),
      setUp: createAuthEndpoint('/set-up', { method: 'POST' }, async (ctx) => {
        const found = await getSessionFromCtx(ctx);
        if (!found) throw refuse('Sign in first.', 'UNAUTHORIZED');
        const { internalAdapter, password: hasher } = ctx.context;
        const accounts = await internalAdapter.findAccounts(found.user.id);
        if (accounts.length > 0) throw refuse('This has been done already: change the password instead.', 'CONFLICT');
        const given = { email: email(ctx.body), name: text(ctx.body, 'name', 100).trim() };
        const hash = await hasher.hash(password(ctx.body));
        const other = await internalAdapter.findUserByEmail(given.email);
        if (other && other.user.id !== found.user.id) throw refuse('Somebody has this e-mail address.', 'CONFLICT');
        const user = await internalAdapter.updateUser(found.user.id, given);
        await internalAdapter.linkAccount({
          userId: user.id,
          accountId: user.id,
          providerId: 'credential',
          password: hash,
        });
        await setSessionCookie(ctx, { session: found.session, user });
        return ctx.json({ ok: true });
      }),
      join: createAuthEndpoint('/join', { method: 'POST' }, async (ctx) => {
        const { internalAdapter, password: hasher } = ctx.context;
        const invitation = await findInvitation(db, text(ctx.body, 'id', 100), now());
        if (!invitation) throw refuse('This invitation has been used, or is too old. Ask for a new one.');
        if (await internalAdapter.findUserByEmail(invitation.email))
          throw refuse('You have a password here already: sign in, then open the invitation again.', 'CONFLICT');
        const name = text(ctx.body, 'name', 100).trim();
        const hash = await hasher.hash(password(ctx.body));
        const user = await internalAdapter.createUser({ email: invitation.email, name, emailVerified: true });
        await internalAdapter.linkAccount({
          userId: user.id,
          accountId: user.id,
          providerId: 'credential',
          password: hash,
        });
        if (!(await admitMember(db, invitation, user.id, now()))) throw refuse('This invitation has just been used.');
        const session = await internalAdapter.createSession(user.id);
        await setSessionCookie(ctx, { session, user });
        return ctx.json({ ok: true });
      }),
    },
  };
}
