import type { Clock } from '../../lib/clock.ts';
import { isUnavailable, type Db } from '../../db/database.ts';
import type { Mailer } from '../../accounts/mailer.ts';
import { audit } from '../../accounts/audit.ts';
import { knownBrowserCookie, knownBrowserOf } from '../../accounts/sign-in/known-browsers.ts';
import {
  isIssuerAnswer,
  isLoginPath,
  type LoginAnswer,
  type Session,
  type Login,
} from '../../accounts/sign-in/login.ts';
import type { SignInSettings } from '../../accounts/sign-in/settings.ts';
import { checkOrigin } from '../../accounts/person.ts';
import { checkFactorChange, checkProof } from '../../accounts/sign-in/proof.ts';
import type { Answer, Endpoint, PublicCall, RequestHead } from '../../http/endpoint.ts';
import { ApiError, invalidField } from '../../errors.ts';
import { isRecord } from '../../lib/is-record.ts';
import { readBodyFields } from '../body-fields.ts';
import { emailIn, takeAttempt, type SignInParts } from './login-tries.ts';
import { tellByMail } from './security-mail.ts';

/** The parts of the app that signing in takes. */
type Parts = SignInParts & {
  readonly db: Db;
  readonly clock: Clock;
  readonly login: Login;
  readonly mailer: Mailer;
  readonly catalog: { readonly current: { readonly settings: { readonly sign_in: SignInSettings } } };
  base_url(): string;
};

/** A name, an address and two passwords: everybody may send one. */
const body_limit_bytes = 8_000;

/** Endpoints that the login library answers: signing in and out, passwords, second factors. */
export const login_endpoints: Endpoint<Parts>[] = (['GET', 'POST'] as const).map((method) => ({
  method,
  path: '/auth/{+path}',
  public: true,
  per_minute_per_address: 300,
  body_limit_bytes,
  lenient_query: true,
  docs: {
    tag: 'Dashboard',
    summary: 'Sign in',
    hidden: true,
    ...(method === 'POST' && { body: { schema: { type: 'object' }, required: false } }),
    responses: { 200: { description: 'ok' } },
  },
  admit: checkHead,
  handle: handleLogin,
}));

function checkHead({ base_url, catalog }: Parts, { method, params, headers }: RequestHead): void {
  const path = pathOf(params);
  if (!isLoginPath(method, path)) throw new ApiError('not_found', 'There is nothing here.');
  if (method === 'POST') checkOrigin(headers, new URL(base_url()).origin);
  const { password, passkeys, issuers } = catalog.current.settings.sign_in;
  if (!passkeys && by_passkey.has(path)) {
    throw new ApiError('forbidden', 'Sign-in with passkeys is switched off on this service.', { code: 'no_passkeys' });
  }
  if (password || !needs_passwords.has(path)) return;
  const names = issuers.map(({ name }) => name).join(' or ');
  throw new ApiError('forbidden', `Sign-in with passwords is switched off on this service. Sign in with ${names}.`, {
    code: 'no_passwords',
  });
}

const by_passkey: ReadonlySet<string> = new Set(['/passkey/start', '/sign-in/passkey']);

/** Paths for those who have a password, or get one. */
const needs_passwords: ReadonlySet<string> = new Set([
  '/sign-in/email',
  '/prove',
  '/set-up',
  '/join',
  '/change-password',
  '/request-password-reset',
  '/reset-password',
]);

/** After /auth. */
function pathOf(params: PublicCall['params']): string {
  return `/${params['path'] ?? ''}`;
}

async function handleLogin(app: Parts, call: PublicCall) {
  const path = pathOf(call.params);
  const { method, headers, address } = call;
  const about = needs_session.has(path) ? await app.login.sessionOf(headers) : undefined; // before it is replaced
  if (about && asksProof(path, about)) checkProof(about.proved_at, app.clock.now());
  if (about && bringsFactor(path, about)) checkFactorChange(about);
  if (path === '/two-factor/enable' && about?.user.two_factor === true) {
    throw new ApiError('conflict', 'The second factor is on already. Turn it off first.'); // it would be replaced
  }
  const attempt = await takeAttempt(app, path, call, about);
  const query = queryOf(call);
  const request = { method, path, query, headers, body: checkedBody(path, call), address };
  const answer = await app.login.answer(request).catch(async (error: unknown) => {
    await attempt?.end(503);
    if (isIssuerAnswer(path) && isUnavailable(error)) return away;
    throw error;
  });
  if (isIssuerAnswer(path) && answer.status !== 302) return toPage(app, answer.status);
  await attempt?.end(answer.status);
  if (about && answer.status < 300) await auditAndMail(app, { path, session: about, address });
  if (path === '/sign-in/email' && answer.status < 300) rememberBrowser(app, call, answer);
  if (path === '/two-factor/verify-backup-code' && answer.status < 300) tellOfBackupCode(app, answer, address);
  return { status: answer.status, headers: { ...answer.headers, 'cache-control': 'no-store' }, body: answer.body };
}

/** Actions of the library for a signed-in person: the audit log's name, and the subject of the mail about it. */
const audited_actions: ReadonlyMap<string, { action: string; subject?: string }> = new Map([
  ['/set-up', { action: 'person.set_up' }],
  ['/update-user', { action: 'person.rename' }],
  ['/change-password', { action: 'person.change_password', subject: 'Your password on Medley has changed' }],
  ['/two-factor/enable', { action: 'person.begin_two_factor' }],
  [
    '/two-factor/verify-totp',
    { action: 'person.confirm_two_factor', subject: 'The second factor of your sign-in on Medley is on' },
  ],
  [
    '/two-factor/disable',
    { action: 'person.end_two_factor', subject: 'The second factor of your sign-in on Medley is off' },
  ],
  [
    '/two-factor/generate-backup-codes',
    { action: 'person.new_backup_codes', subject: 'You have new backup codes for Medley' },
  ],
]);

/** By these one changes the way in itself, which a stolen session must not be enough for. */
const needs_proof: ReadonlySet<string> = new Set(['/email', '/issuer/link']);

/** Paths on which whoever has a password gives it, and anybody else proves themselves. */
const changes_factor: ReadonlySet<string> = new Set([
  '/two-factor/enable',
  '/two-factor/disable',
  '/two-factor/generate-backup-codes',
]);

/** Paths that let somebody in with a second factor from then on, or without one. */
const brings_factors: ReadonlySet<string> = new Set([...changes_factor, '/issuer/link']);

/** A code turns on an authenticator that was begun before, maybe before there was a passkey; later codes change nothing. */
function bringsFactor(path: string, { user }: Session): boolean {
  return brings_factors.has(path) || (path === '/two-factor/verify-totp' && !user.two_factor);
}

function asksProof(path: string, { user }: Session): boolean {
  return needs_proof.has(path) || (changes_factor.has(path) && !user.has_password);
}

function queryOf({ query }: PublicCall): string {
  return query.size === 0 ? '' : `?${new URLSearchParams([...query]).toString()}`;
}

/** The database was away: nobody knows who comes. */
const away: LoginAnswer = { status: 503, headers: {}, body: Buffer.alloc(0) };

const problems: { readonly [status: number]: string } = { 429: 'too_many', 503: 'away' };

/** A browser has come from an issuer: whoever looks at it reads a page, not JSON. */
function toPage({ base_url }: Parts, status: number): Answer {
  const location = `${base_url()}/sign-in?problem=${problems[status] ?? 'answer'}`;
  return { status: 303, headers: { location, 'cache-control': 'no-store' }, body: '' };
}

const needs_session: ReadonlySet<string> = new Set([...audited_actions.keys(), ...needs_proof, '/prove']);

type Done = { path: string; session: Session; address: string };

async function auditAndMail(app: Parts, { path, session: { user }, address }: Done): Promise<void> {
  const audited = audited_actions.get(path);
  const is_unchanged = path === '/two-factor/verify-totp' && user.two_factor; // a code of a factor that was on changes nothing
  if (!audited || is_unchanged) return;
  const { action, subject } = audited;
  const now = new Date(app.clock.now());
  await audit(app.db, { user, action, subject: user.id, address, now });
  if (subject !== undefined) tellByMail(app, user, { subject, now, address });
}

/** Checks values that the library would store or look up unchecked. */
function checkedBody(path: string, { body, body_bytes }: PublicCall): Buffer {
  for (const [name, value] of Object.entries(body ?? {}))
    if (typeof value === 'string' && value.includes('\0')) throw invalidField(name, `${name} must not have NUL in it.`);
  const asBytes = (value: object) => Buffer.from(JSON.stringify(value));
  if (path === '/update-user') return asBytes({ name: readBodyFields(body).text('name', 100) });
  // A new password ends all sessions: with this the library begins a new one here.
  if (path === '/change-password') return asBytes({ ...body, revokeOtherSessions: true });
  return body_bytes;
}

/** Mails the person whose backup code was used: a stranger with the codes has half of the way in. */
function tellOfBackupCode(app: Parts, { body }: LoginAnswer, address: string): void {
  const answer: unknown = JSON.parse(body.toString());
  const user = isRecord(answer) ? answer['user'] : undefined;
  if (!isRecord(user) || typeof user['email'] !== 'string') return;
  const who = { email: user['email'], email_proved: user['emailVerified'] === true };
  const subject = 'A backup code was used to sign in to Medley';
  tellByMail(app, who, { subject, now: new Date(app.clock.now()), address });
}

/** By the right password of an address, which need not be the end of signing in. */
function rememberBrowser(
  { secret, base_url }: { secret: string; base_url(): string },
  { body, headers }: PublicCall,
  answer: LoginAnswer,
): void {
  const email = emailIn(body);
  if (knownBrowserOf(headers.cookie, secret, email) !== undefined) return;
  const cookie = knownBrowserCookie(secret, email, base_url().startsWith('https:'));
  answer.headers['set-cookie'] = [answer.headers['set-cookie'] ?? [], cookie].flat();
}
