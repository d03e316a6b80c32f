import type { BetterAuthPlugin } from 'better-auth';
import { isRecord } from '../../lib/is-record.ts';
import { claimEmail, confirmEmail, isMailProof, isProvedEmail } from './email-claims.ts';
import { issuerEndpoints } from './issuer-endpoints.ts';
import { joinAsNew, setUpPerson } from './joining.ts';
import { loginHooks } from './login-hooks.ts';
import { makeMailedLink, spendLoginLink } from './login-links.ts';
import {
  addressOf,
  beginChallenge,
  factor_wait_s,
  loadParts,
  makeReader,
  type EndpointOptions,
  type Parts,
} from './login-parts.ts';
import { password_length } from './login-rules.ts';
import { changedEmailMail, confirmMail, knownEmailMail, signInMail } from '../mails.ts';
import { findInvitation } from '../members.ts';
import { passkeyEndpoints } from '../passkey-endpoints.ts';
import { noteFactorsOfLink, proveSession } from './sessions.ts';

/**
 * Ways in that the library does not have: by a link of ours, by an invitation as somebody new, by an issuer, and the
 * first password of who came by a link.
 */
export async function loginEndpoints(options: EndpointOptions): Promise<BetterAuthPlugin> {
  const parts = { ...(await loadParts()), ...options };
  return {
    id: 'medley',
    endpoints: {
      signInByLink: byLink(parts),
      mailLink: mailLink(parts),
      prove: prove(parts),
      setUp: setUp(parts),
      join: join(parts),
      giveEmail: giveEmail(parts),
      confirmEmail: confirm(parts),
      ...issuerEndpoints(parts),
      ...passkeyEndpoints(parts),
    },
    hooks: await loginHooks(options),
  };
}

const link_gone = 'This link was used or has expired. Ask for a new one.';

function byLink(parts: Parts) {
  const { createAuthEndpoint, setSessionCookie, APIError, db, now } = parts;
  return createAuthEndpoint('/sign-in/link', { method: 'POST' }, async (ctx) => {
    const read = makeReader(APIError, ctx.body);
    const followed = await spendLoginLink(db, read.text('token', 100), now());
    const user = followed && (await ctx.context.internalAdapter.findUserById(followed.user_id));
    if (!user) throw new APIError('UNAUTHORIZED', { message: link_gone });
    if (followed.by_mail && 'twoFactorEnabled' in user && user.twoFactorEnabled === true) {
      const cookie = ctx.context.createAuthCookie('two_factor', { maxAge: factor_wait_s });
      const identifier = await beginChallenge(parts, ctx.context.internalAdapter, user.id);
      await ctx.setSignedCookie(cookie.name, identifier, ctx.context.secret, cookie.attributes);
      return ctx.json({ twoFactorRedirect: true });
    }
    const session = await ctx.context.internalAdapter.createSession(user.id);
    if (!followed.by_mail) await noteFactorsOfLink(db, session.id);
    await setSessionCookie(ctx, { session, user });
    return ctx.json({ ok: true });
  });
}

/** Answers the same, and as fast, whether anybody has this address. */
function mailLink({ createAuthEndpoint, APIError, db, now, base_url, mailer, log }: Parts) {
  return createAuthEndpoint('/sign-in/mail', { method: 'POST' }, async (ctx) => {
    const email = makeReader(APIError, ctx.body).email();
    const send = async () => {
      const link = await makeMailedLink(db, base_url(), email, now());
      if (link !== undefined) mailer.post(signInMail(email, link));
    };
    if (mailer.ready()) void send().catch((err: unknown) => log.error({ err }, 'a sign-in link could not be made'));
    return ctx.json({ ok: true });
  });
}

/** Whoever is here gives their password once more, before an act that asks for it. */
function prove({ createAuthEndpoint, getSessionFromCtx, APIError, db, now }: Parts) {
  return createAuthEndpoint('/prove', { method: 'POST' }, async (ctx) => {
    const session = await getSessionFromCtx(ctx);
    if (!session) throw new APIError('UNAUTHORIZED', { message: 'Sign in first.' });
    const candidate = makeReader(APIError, ctx.body).text('password', password_length.max);
    const { internalAdapter, password } = ctx.context;
    const accounts = await internalAdapter.findAccounts(session.user.id);
    const hash = accounts.find(({ providerId }) => providerId === 'credential')?.password;
    if (!hash) throw new APIError('CONFLICT', { message: 'You have no password yet.' });
    if (!(await password.verify({ hash, password: candidate }))) {
      throw new APIError('BAD_REQUEST', { message: 'This is not your password.' });
    }
    await proveSession(db, session.session.id, now());
    return ctx.json({ ok: true });
  });
}

function setUp(parts: Parts) {
  const { createAuthEndpoint, getSessionFromCtx, setSessionCookie, APIError, db, now } = parts;
  return createAuthEndpoint('/set-up', { method: 'POST' }, async (ctx) => {
    const read = makeReader(APIError, ctx.body);
    const session = await getSessionFromCtx(ctx);
    if (!session) throw new APIError('UNAUTHORIZED', { message: 'Sign in first.' });
    const { internalAdapter, password } = ctx.context;
    const done_already = 'This has been done already: change the password instead.';
    if ((await internalAdapter.findAccounts(session.user.id)).length > 0) {
      throw new APIError('CONFLICT', { message: done_already });
    }
    const email = read.email();
    const name = read.text('name', 100).trim();
    const hash = await password.hash(read.password({ email, name }));
    const asks_proof = parts.mailer.ready();
    const person = { email: asks_proof ? undefined : email, name, password: hash };
    const who = { user_id: session.user.id, session_id: session.session.id };
    const outcome = await setUpPerson(db, who, person, now());
    if (outcome === 'has_password') throw new APIError('CONFLICT', { message: done_already });
    if (outcome === 'address_taken') throw new APIError('CONFLICT', { message: taken, param: 'email' });
    if (asks_proof) await askProof(parts, session.user.id, email);
    const user = { ...session.user, name, ...(!asks_proof && { email }) };
    await setSessionCookie(ctx, { session: session.session, user });
    return ctx.json({ ok: true });
  });
}

/** Without mail only: who is told has been let in by the operator or an owner, and nobody could ask the mailbox. */
const taken = 'This e-mail address is in use here. Enter another one, or ask the operator of the service.';

/** Mails the link that proves an address; whoever has proved it already is told so, and the asker never. */
async function askProof({ db, now, base_url, mailer }: Parts, user_id: string, email: string): Promise<void> {
  const token = await claimEmail(db, user_id, email, now());
  const is_proved = await isProvedEmail(db, email);
  mailer.post(
    is_proved ? knownEmailMail(email, base_url()) : confirmMail(email, `${base_url()}/confirm-email?token=${token}`),
  );
}

function giveEmail(parts: Parts) {
  const { createAuthEndpoint, getSessionFromCtx, APIError } = parts;
  return createAuthEndpoint('/email', { method: 'POST' }, async (ctx) => {
    const session = await getSessionFromCtx(ctx);
    if (!session) throw new APIError('UNAUTHORIZED', { message: 'Sign in first.' });
    const email = makeReader(APIError, ctx.body).email();
    if (!parts.mailer.ready()) throw new APIError('CONFLICT', { message: 'This service sends no mail.' });
    await askProof(parts, session.user.id, email);
    return ctx.json({ ok: true });
  });
}

/** Nobody has to be signed in: the link proves the mailbox, and may be opened on another device. */
function confirm({ createAuthEndpoint, APIError, db, now, mailer }: Parts) {
  return createAuthEndpoint('/confirm-email', { method: 'POST' }, async (ctx) => {
    const confirmed = await confirmEmail(db, makeReader(APIError, ctx.body).text('token', 100), now());
    if (typeof confirmed === 'string') {
      throw new APIError('BAD_REQUEST', { message: link_gone });
    }
    const { email, email_before } = confirmed;
    if (email_before !== undefined) mailer.post(changedEmailMail(email_before, email));
    return ctx.json({ email });
  });
}

function join(parts: Parts) {
  const { createAuthEndpoint, setSessionCookie, APIError, db, now, secret } = parts;
  return createAuthEndpoint('/join', { method: 'POST' }, async (ctx) => {
    const read = makeReader(APIError, ctx.body);
    const { internalAdapter, password } = ctx.context;
    const gone = 'This invitation was used or has expired. Ask for a new one.';
    const has_password = 'You have a password here already: sign in, then open the invitation again.';
    const invitation = await findInvitation(db, read.text('id', 100), now());
    if (!invitation) throw new APIError('BAD_REQUEST', { message: gone });
    const name = read.text('name', 100).trim();
    const hash = await password.hash(read.password({ email: invitation.email, name }));
    const proof = isRecord(ctx.body) && typeof ctx.body['proof'] === 'string' ? ctx.body['proof'] : undefined;
    const state = isMailProof(secret, invitation, proof) ? 'proved' : parts.mailer.ready() ? 'claim' : 'held';
    const address = addressOf(ctx);
    const joined = await joinAsNew(db, invitation, { name, password: hash, state, address }, now());
    if (joined === 'gone') throw new APIError('BAD_REQUEST', { message: gone });
    if (joined === 'known') throw new APIError('CONFLICT', { message: has_password });
    const user = await internalAdapter.findUserById(joined.user_id);
    if (!user) throw new APIError('BAD_REQUEST', { message: gone }); // removed in this very moment
    if (state === 'claim') await askProof(parts, user.id, invitation.email.toLowerCase());
    const session = await internalAdapter.createSession(user.id);
    await setSessionCookie(ctx, { session, user });
    return ctx.json({ ok: true });
  });
}
