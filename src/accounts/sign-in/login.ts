import type { IncomingHttpHeaders } from 'node:http';
import type { BetterAuthOptions } from 'better-auth';
import type { Logger } from 'pino';
import type { Db, Queryable } from '../../db/database.ts';
import type { Windows } from '../../limits/window.ts';
import { customer_bits } from '../../net/address.ts';
import { openHashing, passwordsOf, type Hashing, type HashingOptions } from './hashing.ts';
import { openLoginDatabase, type LoginDatabase } from './login-database.ts';
import { loginEndpoints } from './login-endpoints.ts';
import { voidLinks } from './login-links.ts';
import type { Issuers } from './issuers.ts';
import { client_address_header, password_length } from './login-rules.ts';
import type { Mailer } from '../mailer.ts';
import { passwordMail, securityMail } from '../mails.ts';
import { passkeyHostOf } from '../relying-party.ts';
import type { SignInSettings } from './settings.ts';

/**
 * Sign-in to the dashboard: people, their passwords, second factors and sessions, and their accounts. The
 * login library does the work; this file configures it and lists its requests that are let through.
 */

/** A person who has signed in. */
export type User = {
  id: string;
  name: string;
  email: string;
  /** Followed a link that was mailed to it. */
  email_proved: boolean;
  /** Another address, whose proof is waited for. */
  email_claim: string | null;
  /** Runs this service: sees the pages of operators, and every account's as a viewer. */
  is_operator: boolean;
  two_factor: boolean;
  /** Came by a link and has no way to sign in yet. */
  is_new: boolean;
  /** And may give it: this service takes passwords. */
  has_password: boolean;
  /** Has passkeys that sign in at this address. */
  has_passkeys: boolean;
  /** The language of the dashboard; null follows the browser. */
  language: string | null;
};

export type Session = {
  user: User;
  id: string;
  expires_at: Date;
  /** Time of the last password entry, here or at an issuer that says when, or of the sign-in. */
  proved_at: Date;
  /** Its person gives a second factor at each sign-in, or it began with one elsewhere. */
  has_two_factors: boolean;
};

export type LoginOptions = {
  db: Db;
  /** Signs cookies and encrypts second factors. */
  secret: string;
  /** The address at which browsers reach the service; https makes the cookies secure. */
  base_url(): string;
  now(): Date;
  /** Takes mails and returns at once, so that nobody can tell by the time whether an address is known. */
  mailer: Pick<Mailer, 'post' | 'ready'>;
  /** Count what comes from one address: the library's own counts are one map for all services of a process. */
  windows: Windows;
  log: Pick<Logger, 'error' | 'warn'>;
  /** Asks the issuers of `sign_in`. */
  issuers: Issuers;
  sign_in(): SignInSettings;
  /** The currency of accounts that new people get. */
  base_currency(): string;
  hashing?: HashingOptions;
};

const day_s = 86_400;
const session_s = 7 * day_s;
const reset_s = 15 * 60;

/** One request to the login, as it came; `path` is behind /auth, `query` what follows it. */
export type LoginRequest = {
  method: string;
  path: string;
  query: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
  address: string;
};

export type LoginAnswer = { status: number; headers: Record<string, string | string[]>; body: Buffer };

/** Gives the browser these cookies, whatever the answer is. */
export type SetCookies = (values: string[]) => void;

export type Login = {
  /** Answers one of `login_paths`. Throws where the database was away (isUnavailable), as sessionOf does. */
  answer(request: LoginRequest): Promise<LoginAnswer>;
  /**
   * Returns the session of these headers; undefined if nobody is signed in. `setCookies` gives the browser its cookie
   * anew when the session is extended, once a day; without it none is, as the browser would forget it earlier.
   */
  sessionOf(headers: IncomingHttpHeaders, setCookies?: SetCookies): Promise<Session | undefined>;
  close(): Promise<void>;
};

/** Opens the login. The library is loaded when somebody first opens the dashboard: that takes a fifth of a second. */
export function openLogin(options: LoginOptions): Login {
  const database = openLoginDatabase(options.db);
  const hashing = openHashing(options.hashing);
  let loaded: { origin: string; library: Promise<Library> } | undefined;
  const library = () => {
    const { origin } = new URL(options.base_url());
    if (loaded?.origin !== origin) loaded = { origin, library: loadLibrary(options, { database, hashing }, origin) };
    return loaded.library;
  };
  return {
    answer: async (request) => {
      const { origin, handler } = await library();
      const response = await database.run(() => handler(toRequest(origin, request)), hasFailed);
      return answerOf(response);
    },
    sessionOf: async (headers, setCookies) => {
      if (!hasSessionCookie(headers.cookie)) return undefined;
      const { api } = await library();
      const call = {
        headers: toHeaders(headers),
        query: { disableRefresh: !setCookies },
        returnHeaders: true,
      } as const;
      const { response: session, headers: answered } = await database.run(() => api.getSession(call), isNobody);
      if (!session) return undefined;
      setCookies?.(answered.getSetCookie());
      return readSession(options, session);
    },
    close: async () => {
      await hashing.close();
      await database.pool.end();
    },
  };
}

type LoginSession = { session: { id: string; expiresAt: Date }; user: { id: string; name: string; email: string } };

/** It knows one origin for good: a reload that names another has it opened anew. */
type Library = {
  origin: string;
  handler(request: Request): Promise<Response>;
  api: {
    getSession(call: {
      headers: Headers;
      query: { disableRefresh: boolean };
      returnHeaders: true;
    }): Promise<{ response: LoginSession | null; headers: Headers }>;
  };
};

type LoginParts = { database: LoginDatabase; hashing: Hashing };

async function loadLibrary(options: LoginOptions, parts: LoginParts, origin: string): Promise<Library> {
  const { betterAuth } = await import('better-auth');
  const { handler, api } = betterAuth(await settings(options, parts, origin));
  return { origin, handler, api };
}

function hasFailed({ status }: Response): boolean {
  return status >= 400;
}

function isNobody({ response }: { response: LoginSession | null }): boolean {
  return response === null;
}

function hasSessionCookie(header = ''): boolean {
  return header.includes('medley.session_token=');
}

async function readSession(
  { db, base_url, sign_in, now }: LoginOptions,
  { session, user }: LoginSession,
): Promise<Session | undefined> {
  const rows = await db.query<Omit<User, 'id'> & Pick<Session, 'proved_at' | 'has_two_factors'>>(
    `select coalesce(s."provedAt", s."createdAt") as proved_at, u.name, u.email, u."emailVerified" as email_proved,
            (select email from email_claims c where c.user_id = u.id and expires_at > $2) as email_claim,
            coalesce(u."twoFactorEnabled", false) or coalesce(s."hasTwoFactors", false) as has_two_factors,
            u."isOperator" as is_operator, u.language, coalesce(u."twoFactorEnabled", false) as two_factor,
            not exists (select from auth.account a where a."userId" = u.id) as is_new,
            $5 and exists (select from auth.account a where a."userId" = u.id and a."providerId" = 'credential') as has_password,
            exists (select from passkeys p where p.user_id = u.id and p.host = $4) as has_passkeys
       from auth."user" u join auth.session s on s."userId" = u.id where u.id = $1 and s.id = $3`,
    [user.id, now(), session.id, passkeyHostOf(base_url(), sign_in()) ?? '', sign_in().password],
  );
  if (!rows[0]) return undefined; // ended in this very moment
  const { proved_at, has_two_factors, ...person } = rows[0];
  return {
    id: session.id,
    expires_at: session.expiresAt,
    proved_at,
    has_two_factors,
    user: { id: user.id, ...person },
  };
}

/** Returns whether this hash is somebody's: salted, it is of one person and one password. */
async function isStored(db: Queryable, hash: string): Promise<boolean> {
  return (await db.query('select 1 from auth.account where password = $1', [hash])).length > 0;
}

/**
 * Whoever has set a password by a mailed link reads that mailbox. Not so where a second factor is asked for: that may be
 * of somebody who took the address, and its owner gets it back by an invitation or a claim of their own.
 */
async function proveByReset(db: Queryable, user_id: string): Promise<void> {
  await db.query(
    'update auth."user" set "emailVerified" = true where id = $1 and "twoFactorEnabled" is distinct from true',
    [user_id],
  );
}

function toRequest(origin: string, { method, path, query, headers, body, address }: LoginRequest): Request {
  const all = toHeaders(headers);
  all.set(client_address_header, address);
  const has_body = method !== 'GET' && body.length > 0;
  return new Request(`${origin}/auth${path}${query}`, {
    method,
    headers: all,
    ...(has_body && { body: new Uint8Array(body) }),
  });
}

/** Only what the library has to know. */
const passed = [
  'cookie',
  'origin',
  'referer',
  'user-agent',
  'content-type',
  'sec-fetch-site',
  'sec-fetch-mode',
  'sec-fetch-dest',
];

function toHeaders(headers: IncomingHttpHeaders): Headers {
  const all = new Headers();
  for (const name of passed) for (const value of [headers[name] ?? []].flat()) all.append(name, value);
  return all;
}

async function answerOf(response: Response): Promise<LoginAnswer> {
  const headers: LoginAnswer['headers'] = {};
  for (const name of ['content-type', 'x-retry-after', 'location']) {
    const value = response.headers.get(name);
    if (value !== null) headers[name === 'x-retry-after' ? 'retry-after' : name] = value;
  }
  const set_cookies = response.headers.getSetCookie();
  if (set_cookies.length > 0) headers['set-cookie'] = set_cookies;
  return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) };
}

async function settings(
  options: LoginOptions,
  { database, hashing }: LoginParts,
  origin: string,
): Promise<BetterAuthOptions> {
  const { organization, twoFactor } = await import('better-auth/plugins');
  const { secret, mailer } = options;
  const secure = origin.startsWith('https:');
  return {
    appName: 'Medley',
    baseURL: origin, // with a path of its own it would look for everything there
    basePath: '/auth',
    secret,
    database: database.pool,
    telemetry: { enabled: false },
    logger: { disabled: true },
    onAPIError: { throw: true }, // surprises: else it prints them past the log, and answers 500 without a request id
    trustedOrigins: [origin],
    user: { additionalFields: { isOperator: { type: 'boolean', input: false, defaultValue: false } } },
    session: { expiresIn: session_s, updateAge: day_s, freshAge: 0 },
    emailAndPassword: {
      enabled: true,
      password: await passwordsOf(hashing, (hash) => isStored(options.db, hash)),
      disableSignUp: true, // people come by invitation or by a link
      minPasswordLength: password_length.min,
      maxPasswordLength: password_length.max,
      revokeSessionsOnPasswordReset: true,
      resetPasswordTokenExpiresIn: reset_s,
      sendResetPassword: async ({ user, token }) => {
        mailer.post(passwordMail(user.email, `${options.base_url()}/reset-password?token=${token}`));
      },
      onPasswordReset: async ({ user }, request) => {
        await proveByReset(options.db, user.id);
        await voidLinks(options.db, user.id);
        const address = request?.headers.get(client_address_header) ?? 'unknown';
        const subject = 'Your password on Medley has changed';
        const [now, base_url] = [options.now(), options.base_url()];
        mailer.post(securityMail(user.email, { subject, now, address, base_url, has_passwords: true }));
      },
    },
    rateLimit: { enabled: true, window: 60, max: 300, customRules: limits, customStorage: countedIn(options.windows) },
    advanced: {
      cookiePrefix: 'medley',
      useSecureCookies: false, // would add __Secure-; these are named below
      cookies: cookies(secure),
      defaultCookieAttributes: { httpOnly: true, sameSite: 'lax', path: '/', secure },
      ipAddress: { ipAddressHeaders: [client_address_header], ipv6Subnet: customer_bits },
    },
    plugins: [
      organization({ allowUserToCreateOrganization: false, disableOrganizationDeletion: true, ...(await roles()) }),
      twoFactor({ issuer: 'Medley', allowPasswordless: true }), // those without a password prove themselves before,
      await loginEndpoints(options),
    ],
  };
}

/** The roles of roles.ts for the library, which asks only who may invite and remove others. */
async function roles() {
  const { createAccessControl } = await import('better-auth/plugins/access');
  const { defaultStatements, ownerAc } = await import('better-auth/plugins/organization/access');
  const ac = createAccessControl(defaultStatements);
  const nothing = ac.newRole({ organization: [], member: [], invitation: [] });
  return {
    ac,
    creatorRole: 'owner',
    roles: { owner: ac.newRole(ownerAc.statements), developer: nothing, billing: nothing, viewer: nothing },
  };
}

/** Guesses of passwords and codes, per client address. */
const limits = {
  '/sign-in/email': { window: 60, max: 10 },
  '/sign-in/link': { window: 60, max: 60 },
  '/sign-in/mail': { window: 60, max: 3 },
  '/prove': { window: 60, max: 10 },
  '/join': { window: 60, max: 10 },
  '/email': { window: 60, max: 5 },
  '/confirm-email': { window: 60, max: 10 },
  '/request-password-reset': { window: 60, max: 3 },
  '/reset-password': { window: 60, max: 10 },
  '/change-password': { window: 60, max: 5 },
  '/two-factor/*': { window: 60, max: 10 },
  '/passkey/start': { window: 60, max: 60 },
  '/sign-in/passkey': { window: 60, max: 20 },
  '/issuer/start': { window: 60, max: 30 },
  '/issuer/link': { window: 60, max: 10 },
  '/issuer/callback/*': { window: 60, max: 30 },
};

type Counts = NonNullable<NonNullable<BetterAuthOptions['rateLimit']>['customStorage']>;

function countedIn(windows: Windows): Counts {
  return {
    consume: async (key, { max }) => {
      const { ok, retry_after_ms } = await windows.take('other', `sign-in ${key}`, max, performance.now());
      return { allowed: ok, retryAfter: ok ? null : Math.ceil(retry_after_ms / 1000) };
    },
    get: async () => null, // the library asks for these only where there is no `consume`
    set: async () => undefined,
  };
}

/** `__Host-` binds a cookie to this very host, over https only (RFC 6265bis, 4.1.3.2). */
function cookies(secure: boolean): NonNullable<NonNullable<BetterAuthOptions['advanced']>['cookies']> {
  const prefix = secure ? '__Host-medley.' : 'medley.';
  const named = [
    'session_token',
    'session_data',
    'dont_remember',
    'two_factor',
    'trust_device',
    'issuer_state',
    'passkey_browser',
  ];
  return Object.fromEntries(named.map((name) => [name, { name: prefix + name }]));
}

/**
 * Paths of the library that are reachable from outside. Our own endpoints do the rest: the library's list of
 * sessions, for one, contains their tokens.
 */
const login_paths: ReadonlySet<string> = new Set([
  'POST /sign-in/email',
  'POST /sign-in/link',
  'POST /sign-in/mail',
  'POST /sign-in/passkey',
  'POST /passkey/start',
  'POST /prove',
  'POST /set-up',
  'POST /join',
  'POST /email',
  'POST /confirm-email',
  'POST /sign-out',
  'POST /change-password',
  'POST /request-password-reset',
  'POST /reset-password',
  'POST /update-user',
  'POST /two-factor/enable',
  'POST /two-factor/disable',
  'POST /two-factor/verify-totp',
  'POST /two-factor/verify-backup-code',
  'POST /two-factor/generate-backup-codes',
  'POST /issuer/start',
  'POST /issuer/link',
]);

/** Tells whether a request of this method for this path, behind /auth, is let through to the library. */
export function isLoginPath(method: string, path: string): boolean {
  return login_paths.has(`${method} ${path}`) || (method === 'GET' && isIssuerAnswer(path));
}

/** The path to which an issuer sends people back. */
export function isIssuerAnswer(path: string): boolean {
  return /^\/issuer\/callback\/[a-z0-9-]{1,32}$/.test(path);
}
