import type { GenericEndpointContext } from 'better-auth';
import { isRecord } from '../../lib/is-record.ts';
import type { Queryable } from '../../db/database.ts';
import { audit } from '../audit.ts';
import { freeEmail } from './email-claims.ts';
import type { Handshake, Identity } from './issuers.ts';
import { admitNewcomer, invitationOf, linkSignIn, personOfEmail, personOfIssuer } from './linked-sign-ins.ts';
import { addressOf, beginChallenge, factor_wait_s, makeReader, type Parts } from './login-parts.ts';
import { no_mail_domain } from './login-rules.ts';
import { securityMail } from '../mails.ts';
import { noteTwoFactors, proveSession } from './sessions.ts';
import { SignInProblem } from './problem.ts';
import type { SignInIssuer } from './settings.ts';

/**
 * Sign-in by an issuer, within the login library: its sessions, its cookies, its waiting for a second factor. Its own
 * plugin for this trusts an ID token without looking at its signature, its audience or its nonce, and opens the session
 * before any second factor (docs/decisions/0119-issuers-are-asked-by-a-client-of-our-own.md).
 */

/** A sign-in that is under way at an issuer, bound to the browser that began it. */
type Flow = {
  issuer: string;
  nonce: string;
  verifier: string;
  /** The page to go to afterwards, of this service. */
  next: string;
  fresh: boolean;
  /** The person who connects the issuer; without one somebody signs in. */
  link_to: string | null;
};

const flow_s = 600;
const cookie_name = 'issuer_state';

export function issuerEndpoints(parts: Parts) {
  return { beginByIssuer: begin(parts), linkIssuer: beginLink(parts), endByIssuer: end(parts) };
}

/** Answers the address at the issuer to which the browser goes. */
function begin(parts: Parts) {
  return parts.createAuthEndpoint('/issuer/start', { method: 'POST' }, async (ctx) => {
    const next = ownPath(parts, isRecord(ctx.body) ? ctx.body['next'] : undefined);
    const fresh = isRecord(ctx.body) && ctx.body['fresh'] === true;
    return ctx.json({ url: await beginFlow(parts, ctx, { next, fresh, link_to: null }) });
  });
}

/** The same for somebody who is here already and connects the issuer. A recent proof was asked for before. */
function beginLink(parts: Parts) {
  return parts.createAuthEndpoint('/issuer/link', { method: 'POST' }, async (ctx) => {
    const session = await parts.getSessionFromCtx(ctx);
    if (!session) throw new parts.APIError('UNAUTHORIZED', { message: 'Sign in first.' });
    const flow = { next: security_page, fresh: false, link_to: session.user.id };
    return ctx.json({ url: await beginFlow(parts, ctx, flow) });
  });
}

const security_page = '/settings?tab=security';

async function beginFlow(
  parts: Parts,
  ctx: GenericEndpointContext,
  purpose: Pick<Flow, 'next' | 'fresh' | 'link_to'>,
): Promise<string> {
  const { generateRandomString, issuers, APIError } = parts;
  const issuer = issuerOf(parts, makeReader(APIError, ctx.body).text('issuer', 32));
  if (!issuer) throw new APIError('BAD_REQUEST', { message: 'Nobody signs in by this issuer here.' });
  const [state, nonce, verifier] = [generateRandomString(32), generateRandomString(32), generateRandomString(64)];
  const flow: Flow = { issuer: issuer.id, nonce, verifier, ...purpose };
  const url = await issuers.begin(issuer, handshakeOf(parts, flow, state)).catch((error: unknown) => {
    throw new APIError('BAD_GATEWAY', { message: `${issuer.name} cannot be reached. ${reason(parts, issuer, error)}` });
  });
  await ctx.context.internalAdapter.createVerificationValue({
    identifier: `issuer-${state}`,
    value: JSON.stringify(flow),
    expiresAt: new Date(Date.now() + flow_s * 1000), // the library reads its own clock
  });
  const cookie = ctx.context.createAuthCookie(cookie_name, { maxAge: flow_s });
  await ctx.setSignedCookie(cookie.name, state, ctx.context.secret, cookie.attributes);
  return url;
}

/** Writes to the log what the operator can do about it. */
function reason({ log }: Parts, issuer: SignInIssuer, error: unknown): string {
  if (!(error instanceof SignInProblem)) throw error;
  log.warn({ issuer: issuer.id, problem: error.code, reason: error.message }, 'a sign-in by an issuer failed');
  return 'Try again in a minute, or sign in another way.';
}

function issuerOf({ sign_in }: Parts, id: string): SignInIssuer | undefined {
  return sign_in().issuers.find((issuer) => issuer.id === id);
}

function handshakeOf({ base_url }: Parts, { issuer, nonce, verifier, fresh }: Flow, state: string): Handshake {
  return { redirect_uri: `${base_url()}/auth/issuer/callback/${issuer}`, state, nonce, verifier, fresh };
}

/** A page of this service; its beginning where the text names another one, or the page of signing in. */
function ownPath({ base_url }: Parts, value: unknown): string {
  const { origin } = new URL(base_url());
  if (typeof value !== 'string' || !value.startsWith('/') || value.length > 2_000) return '/';
  if (!URL.canParse(value, origin)) return '/';
  const url = new URL(value, origin);
  if (url.origin !== origin || url.pathname.startsWith('//') || url.pathname === '/sign-in') return '/';
  return url.pathname + url.search + url.hash;
}

/** The issuer sends the browser back. Whatever happens, it is sent on to a page of this service. */
function end(parts: Parts) {
  return parts.createAuthEndpoint('/issuer/callback/:id', { method: 'GET' }, async (ctx) => {
    const id = String(ctx.params['id']).slice(0, 32);
    const state = textOf(ctx.query, 'state');
    const flow = await takeFlow(parts, ctx, state);
    const path = await arrive(parts, ctx, { id, state, flow }).catch((error: unknown) => {
      if (!(error instanceof SignInProblem)) throw error;
      parts.log.warn({ issuer: id, problem: error.code, reason: error.message }, 'a sign-in by an issuer failed');
      return problemPage(flow, id, error.code);
    });
    throw ctx.redirect(`${parts.base_url()}${path}`);
  });
}

function problemPage(flow: Flow | undefined, id: string, problem: string): string {
  const query = new URLSearchParams({ problem, issuer: id });
  if (flow?.link_to != null) return `${security_page}&${query.toString()}`;
  if (flow) query.set('next', flow.next);
  return `/sign-in?${query.toString()}`;
}

function textOf(query: unknown, name: string): string {
  const value = isRecord(query) ? query[name] : undefined;
  return typeof value === 'string' ? value : '';
}

/** Uses up what this browser began; undefined if there is none, or another browser began it. */
async function takeFlow(parts: Parts, ctx: GenericEndpointContext, state: string): Promise<Flow | undefined> {
  const cookie = ctx.context.createAuthCookie(cookie_name, { maxAge: flow_s });
  const begun = await ctx.getSignedCookie(cookie.name, ctx.context.secret);
  if (state === '' || begun !== state) return undefined;
  parts.expireCookie(ctx, cookie);
  const row = await ctx.context.internalAdapter.consumeVerificationValue(`issuer-${state}`);
  return row ? (JSON.parse(row.value) as Flow) : undefined; // written above
}

type Answer = { id: string; state: string; flow: Flow | undefined };

/** Returns the page to go to. Rejects with SignInProblem. */
async function arrive(parts: Parts, ctx: GenericEndpointContext, { id, state, flow }: Answer): Promise<string> {
  if (!flow || flow.issuer !== id) throw new SignInProblem('expired', 'nothing waits for this answer in this browser');
  const issuer = issuerOf(parts, id);
  if (!issuer) throw new SignInProblem('expired', 'the issuer is no longer configured');
  const error = textOf(ctx.query, 'error');
  if (error === 'access_denied') throw new SignInProblem('denied', 'the person declined');
  if (error !== '') throw new SignInProblem('answer', `it answered ${JSON.stringify(error.slice(0, 60))}`);
  const code = textOf(ctx.query, 'code');
  if (code === '') throw new SignInProblem('answer', 'it answered without a code');
  const iss = textOf(ctx.query, 'iss') || undefined;
  const identity = await parts.issuers.identify(issuer, { ...handshakeOf(parts, flow, state), code, iss });
  checkDomain(issuer, identity);
  if (flow.link_to === null) return signInAs(parts, ctx, { issuer, identity, flow });
  const session = await parts.getSessionFromCtx(ctx);
  if (session?.user.id !== flow.link_to) throw new SignInProblem('expired', 'the session has ended meanwhile');
  await connect(parts, ctx, { issuer, identity, user: session.user });
  return security_page;
}

function checkDomain({ email_domains }: SignInIssuer, { email, email_verified }: Identity): void {
  if (email_domains.length === 0) return;
  if (email === undefined) throw new SignInProblem('email_missing', 'it named no address');
  if (!email_verified) throw new SignInProblem('email_unproved', 'its address is not proved');
  if (!email_domains.includes(email.replace(/^.*@/, '')))
    throw new SignInProblem('email_domain', 'its address is of another domain');
}

type Somebody = { issuer: SignInIssuer; identity: Identity };

async function signInAs(
  parts: Parts,
  ctx: GenericEndpointContext,
  { issuer, identity, flow }: Somebody & { flow: Flow },
): Promise<string> {
  const linked = await personOfIssuer(parts.db, issuer, identity, parts.now());
  const { user_id, page = flow.next } =
    linked === undefined ? await meet(parts, ctx, { issuer, identity }) : { user_id: linked };
  const { internalAdapter } = ctx.context;
  const user = await internalAdapter.findUserById(user_id);
  if (!user) throw new SignInProblem('expired', 'the person was deleted meanwhile');
  if ('twoFactorEnabled' in user && user.twoFactorEnabled === true && !issuer.trusts_second_factor) {
    const cookie = ctx.context.createAuthCookie('two_factor', { maxAge: factor_wait_s });
    const identifier = await beginChallenge(parts, internalAdapter, user.id);
    await ctx.setSignedCookie(cookie.name, identifier, ctx.context.secret, cookie.attributes);
    return `/sign-in?${new URLSearchParams({ step: 'code', next: page }).toString()}`;
  }
  const session = await internalAdapter.createSession(user.id);
  const { authenticated_at } = identity;
  // Else whoever finds a browser open proves themselves by a sign-in that asks for nothing.
  if (authenticated_at && !flow.fresh && authenticated_at < parts.now())
    await proveSession(parts.db, session.id, authenticated_at);
  if (issuer.trusts_second_factor) await noteTwoFactors(parts.db, session.id);
  await parts.setSessionCookie(ctx, { session, user });
  return page;
}

/** Somebody whom this issuer has not named before: by their address, if both sides have proved it. */
async function meet(
  parts: Parts,
  ctx: GenericEndpointContext,
  { issuer, identity }: Somebody,
): Promise<{ user_id: string; page?: string }> {
  const { email, email_verified } = identity;
  if (email === undefined) throw new SignInProblem('email_missing', 'it named no address');
  if (!email_verified) throw new SignInProblem('email_unproved', 'its address is not proved');
  const now = parts.now();
  const person = await personOfEmail(parts.db, email);
  if (!person) {
    const invitation = await invitationOf(parts.db, email, now);
    const newcomer = {
      issuer,
      identity: { ...identity, email },
      is_invited: invitation !== undefined,
      currency: parts.base_currency(),
      address: addressOf(ctx),
    };
    const user_id = await admitNewcomer(parts.db, newcomer, now);
    return { user_id, ...(invitation !== undefined && { page: `/invitation?id=${invitation}` }) };
  }
  if (!person.is_proved) throw new SignInProblem('email_known', 'somebody has this address here without a proof');
  const { user_id } = person;
  // Whoever reads the mailbox has not given the code yet: they are asked for it, and nothing stays of it. Nor does it of
  // a sign-in without the passkey: the person connects the issuer with that.
  if (person.has_factors && !issuer.trusts_second_factor) return { user_id };
  await connect(parts, ctx, { issuer, identity, user: { id: user_id, email, emailVerified: true } });
  return { user_id };
}

/** Connects the issuer with a person, who hears of it by mail. */
async function connect(
  { db, now, mailer, base_url, sign_in }: Parts,
  ctx: GenericEndpointContext,
  { issuer, identity, user }: Somebody & { user: { id: string; email: string; emailVerified: boolean } },
): Promise<void> {
  const [moment, address] = [now(), addressOf(ctx)];
  const is_theirs = await db.tx(async (tx) => {
    const linked = await linkSignIn(tx, { user_id: user.id, issuer, identity }, moment);
    const details = { issuer: issuer.name, email: identity.email };
    const audit_entry = { user, action: 'person.link_sign_in', subject: user.id, details, address, now: moment };
    if (!linked) return false;
    await audit(tx, audit_entry);
    await takeEmail(tx, user, identity, moment);
    return true;
  });
  if (!is_theirs) throw new SignInProblem('linked_elsewhere', 'the person there is connected with somebody else here');
  const subject = `${issuer.name} signs you in to Medley from now on`;
  if (!user.emailVerified) return;
  const { password: has_passwords } = sign_in();
  mailer.post(securityMail(user.email, { subject, now: moment, address, has_passwords, base_url: base_url() }));
}

/** Whoever came by a link has no address of their own before. */
async function takeEmail(
  tx: Queryable,
  user: { id: string; email: string },
  { email, email_verified }: Identity,
  now: Date,
): Promise<void> {
  if (email === undefined || !email_verified || !user.email.endsWith(`@${no_mail_domain}`)) return;
  if (!(await freeEmail(tx, email, user.id, now))) return;
  await tx.query('update auth."user" set email = $2, "emailVerified" = true, "updatedAt" = $3 where id = $1', [
    user.id,
    email,
    now,
  ]);
}
