import { createHash } from 'node:crypto';
import { audit } from '../accounts/audit.ts';
import { login_paths } from '../accounts/login.ts';
import { checkOrigin } from '../accounts/person.ts';
import type { Endpoint, PublicCall, RequestHead } from '../http/endpoint.ts';
import type { App } from '../app.ts';
import { ApiError } from '../errors.ts';
import { readGiven, wrong } from './given.ts';

/**
 * Passwords of one person that may be tried in a minute: from one address, so that nobody is kept out by somebody who
 * only knows their e-mail, and from all together. The login library counts per address alone.
 */
const tries_per_minute = { from_one: 10, from_all: 100 };

/** A name, an address and two passwords: everybody may send one. */
const body_limit_bytes = 8_000;

/** What the login library answers itself: signing in and out, passwords, second factors. */
export const login_endpoints: Endpoint<App>[] = (['GET', 'POST'] as const).map((method) => ({
  method,
  path: '/auth/{+path}',
  format: 'service',
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

function checkHead(app: App, { method, params, headers }: RequestHead): void {
  if (!login_paths.has(`${method} ${pathOf(params)}`)) throw new ApiError('not_found', 'There is nothing here.');
  if (method === 'POST') checkOrigin(headers, new URL(app.base_url()).origin);
}

/** Behind /auth. */
function pathOf(params: PublicCall['params']): string {
  return `/${params['path'] ?? ''}`;
}

async function handleLogin(app: App, call: PublicCall) {
  const path = pathOf(call.params);
  if (path === '/sign-in/email') await takeTry(app, call);
  const { method, headers, address } = call;
  const deed = deeds.get(path);
  const session = deed && (await app.login.sessionOf(headers)); // before it is replaced
  const answer = await app.login.answer({ method, path, headers, body: checkedBody(path, call), address });
  if (deed && session && answer.status < 300) {
    const { user } = session;
    await audit(app.db, { user, action: deed, subject: user.id, address, now: new Date(app.clock.now()) });
  }
  return { status: answer.status, headers: { ...answer.headers, 'cache-control': 'no-store' }, body: answer.body };
}

/** What the library does for somebody who is signed in, as it is written down. */
const deeds: ReadonlyMap<string, string> = new Map([
  ['/set-up', 'person.set_up'],
  ['/update-user', 'person.rename'],
  ['/change-password', 'person.change_password'],
  ['/two-factor/enable', 'person.begin_two_factor'],
  ['/two-factor/verify-totp', 'person.confirm_two_factor'],
  ['/two-factor/disable', 'person.end_two_factor'],
  ['/two-factor/generate-backup-codes', 'person.new_backup_codes'],
]);

/** What the library would store, or ask its tables for, without a look at it. */
function checkedBody(path: string, { body, body_bytes }: PublicCall): Buffer {
  for (const [name, value] of Object.entries(body ?? {}))
    if (typeof value === 'string' && value.includes('\0')) throw wrong(name, `${name} must not have NUL in it.`);
  if (path !== '/update-user') return body_bytes;
  return Buffer.from(JSON.stringify({ name: readGiven(body).text('name', 100) }));
}

async function takeTry(app: App, { body, address }: PublicCall): Promise<void> {
  const email = String(body?.['email'] ?? '').toLowerCase();
  const who = createHash('sha256').update(email).digest('base64');
  const take = (name: string, limit: number) => app.windows.take('other', name, limit, performance.now());
  const from_one = take(`login ${who} ${address}`, tries_per_minute.from_one);
  const taken = from_one.ok ? take(`login ${who}`, tries_per_minute.from_all) : from_one;
  if (taken.ok) return;
  const seconds = Math.ceil(taken.retry_after_ms / 1000);
  const headers = { 'retry-after': String(seconds) };
  throw new ApiError('rate_limit', `Too many tries to sign in. Try again in ${seconds} s.`, { headers });
}
