import type { BetterAuthPlugin } from 'better-auth';
import type { Db } from '../db/database.ts';
import { isRecord } from '../lib/is-record.ts';
import { joinAsNew, setUpPerson } from './joining.ts';
import { spendLoginLink } from './login-links.ts';
import { no_mail_domain, password_length } from './login-rules.ts';
import { findInvitation } from './members.ts';

/** What the endpoints are made of: the library is loaded when it is first needed. */
type Parts = Awaited<ReturnType<typeof loadParts>> & { db: Db; now(): Date };

async function loadParts() {
  const { createAuthEndpoint, getSessionFromCtx, APIError } = await import('better-auth/api');
  const { setSessionCookie } = await import('better-auth/cookies');
  return { createAuthEndpoint, getSessionFromCtx, APIError, setSessionCookie };
}

/**
 * Ways in that the library does not have: by a link of ours, by an invitation as somebody new, and the first
 * password of who came by a link.
 */
export async function loginEndpoints(db: Db, now: () => Date): Promise<BetterAuthPlugin> {
  const parts = { ...(await loadParts()), db, now };
  return { id: 'medley', endpoints: { signInByLink: byLink(parts), setUp: setUp(parts), join: join(parts) } };
}

function byLink({ createAuthEndpoint, setSessionCookie, APIError, db, now }: Parts) {
  return createAuthEndpoint('/sign-in/link', { method: 'POST' }, async (ctx) => {
    const read = makeReader(APIError, ctx.body);
    const user_id = await spendLoginLink(db, read.text('token', 100), now());
    const user = user_id === undefined ? null : await ctx.context.internalAdapter.findUserById(user_id);
    if (!user) {
      throw new APIError('UNAUTHORIZED', { message: 'This link has been used, or is too old. Ask for a new one.' });
    }
    const session = await ctx.context.internalAdapter.createSession(user.id);
    await setSessionCookie(ctx, { session, user });
    return ctx.json({ ok: true });
  });
}

function setUp({ createAuthEndpoint, getSessionFromCtx, setSessionCookie, APIError, db, now }: Parts) {
  return createAuthEndpoint('/set-up', { method: 'POST' }, async (ctx) => {
    const read = makeReader(APIError, ctx.body);
    const found = await getSessionFromCtx(ctx);
    if (!found) throw new APIError('UNAUTHORIZED', { message: 'Sign in first.' });
    const { internalAdapter, password } = ctx.context;
    const done_already = 'This has been done already: change the password instead.';
    if ((await internalAdapter.findAccounts(found.user.id)).length > 0) {
      throw new APIError('CONFLICT', { message: done_already });
    }
    const given = { email: read.email(), name: read.text('name', 100).trim() };
    const hash = await password.hash(read.password());
    const outcome = await setUpPerson(db, found.user.id, { ...given, password: hash }, now());
    if (outcome === 'has_password') throw new APIError('CONFLICT', { message: done_already });
    if (outcome === 'address_taken') throw new APIError('CONFLICT', { message: 'Somebody has this e-mail address.' });
    await setSessionCookie(ctx, { session: found.session, user: { ...found.user, ...given } });
    return ctx.json({ ok: true });
  });
}

function join({ createAuthEndpoint, setSessionCookie, APIError, db, now }: Parts) {
  return createAuthEndpoint('/join', { method: 'POST' }, async (ctx) => {
    const read = makeReader(APIError, ctx.body);
    const { internalAdapter, password } = ctx.context;
    const gone = 'This invitation has been used, or is too old. Ask for a new one.';
    const known = 'You have a password here already: sign in, then open the invitation again.';
    const invitation = await findInvitation(db, read.text('id', 100), now());
    if (!invitation) throw new APIError('BAD_REQUEST', { message: gone });
    if (await internalAdapter.findUserByEmail(invitation.email)) throw new APIError('CONFLICT', { message: known });
    const name = read.text('name', 100).trim();
    const hash = await password.hash(read.password());
    const joined = await joinAsNew(db, invitation, { name, password: hash }, now());
    if (joined === 'gone') throw new APIError('BAD_REQUEST', { message: gone });
    if (joined === 'known') throw new APIError('CONFLICT', { message: known });
    const user = await internalAdapter.findUserById(joined.user_id);
    if (!user) throw new APIError('BAD_REQUEST', { message: gone }); // removed in this very moment
    const session = await internalAdapter.createSession(user.id);
    await setSessionCookie(ctx, { session, user });
    return ctx.json({ ok: true });
  });
}

/** Fields of a body that may be anything; each throws what the library answers as a 400. */
function makeReader(APIError: Parts['APIError'], body: unknown) {
  const refuse = (message: string) => new APIError('BAD_REQUEST', { message });
  const text = (field: string, length_max: number): string => {
    const value = isRecord(body) ? body[field] : undefined;
    const fits = typeof value === 'string' && value.trim() !== '' && value.length <= length_max;
    if (fits && !value.includes('\0')) return value;
    throw refuse(`${field} is required, and at most ${length_max} characters long.`);
  };
  return {
    text,
    password: () => {
      const value = text('password', password_length.max);
      if (value.length >= password_length.min) return value;
      throw refuse(`The password needs at least ${password_length.min} characters.`);
    },
    email: () => {
      const value = text('email', 254).trim().toLowerCase();
      if (/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value) && !value.endsWith(`@${no_mail_domain}`)) return value;
      throw refuse('email must be an e-mail address.');
    },
  };
}
