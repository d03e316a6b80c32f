import { createHash } from 'node:crypto';
import type { Backoff } from '../../limits/backoff.ts';
import type { Windows } from '../../limits/window.ts';
import { knownBrowserOf } from '../../accounts/sign-in/known-browsers.ts';
import type { Session } from '../../accounts/sign-in/login.ts';
import type { PublicCall } from '../../http/endpoint.ts';
import { ApiError } from '../../errors.ts';
import { networkOf } from '../../net/address.ts';

/** The parts of the app that counting tries takes. */
export type SignInParts = {
  readonly secret: string;
  readonly sign_in_backoff: Backoff;
  readonly windows: Windows;
};

/**
 * Guesses of one person's password. They are counted by where they come from, so that nobody is kept out by somebody
 * who only knows their e-mail address; and from everywhere together, which a browser that signed in before and a link
 * by mail get past.
 */

const from_everywhere_per_minute = 100;

/** Mails that anybody can have sent to an address. */
const mails_per_minute = 3;

/** A try that was let through. */
type Attempt = {
  /** Says how it was answered: what was right holds nothing against the next ones. Never rejects. */
  end(status: number): Promise<void>;
};

/** Reads the address in lower case, as addresses are stored; empty if the body has none. */
export function emailIn(body: Record<string, unknown> | undefined): string {
  const { email } = body ?? {};
  return typeof email === 'string' ? email.trim().toLowerCase() : '';
}

/** Paths on which a person who is signed in gives their password. */
const asks_password: ReadonlySet<string> = new Set([
  '/prove',
  '/change-password',
  '/two-factor/enable',
  '/two-factor/disable',
  '/two-factor/generate-backup-codes',
]);

/** Not /set-up: it mails once for each person, and whoever enters a weak password there comes back at once. */
const sends_mail: ReadonlySet<string> = new Set(['/sign-in/mail', '/request-password-reset', '/email']);

/** Counts a try of this path. Rejects with ApiError 429 for one too many; undefined where there is nothing to guess. */
export async function takeAttempt(
  app: SignInParts,
  path: string,
  call: PublicCall,
  about: Session | undefined,
): Promise<Attempt | undefined> {
  if (about && asks_password.has(path)) return waitFor(app, `password of ${about.user.id} in session`);
  const email = emailIn(call.body);
  const who = createHash('sha256').update(email).digest('base64');
  if (sends_mail.has(path)) await takeWindow(app, `mail to ${who}`, mails_per_minute);
  if (path !== '/sign-in/email') return undefined;
  const browser = knownBrowserOf(call.headers.cookie, app.secret, email);
  if (browser !== undefined) return waitFor(app, `password in browser ${browser}`);
  const attempt = await waitFor(app, `password of ${who} from ${networkOf(call.address)}`);
  try {
    await takeWindow(app, `login ${who}`, from_everywhere_per_minute);
  } catch (error) {
    await attempt.end(429);
    throw error;
  }
  return attempt;
}

async function waitFor({ sign_in_backoff }: { sign_in_backoff: Backoff }, name: string): Promise<Attempt> {
  const wait_ms = await sign_in_backoff.take(name);
  if (wait_ms > 0) throw tooManyTries(wait_ms);
  return {
    end: async (status) => {
      if (status === 400 || status === 401) return;
      // Else nobody looked at the password. What cannot be written now counts as one wrong try, and the answer stands.
      const ending = status < 300 ? sign_in_backoff.forgive(name) : sign_in_backoff.undo(name);
      await ending.catch(() => undefined);
    },
  };
}

async function takeWindow({ windows }: { windows: Windows }, name: string, limit: number): Promise<void> {
  const taken = await windows.take('other', name, limit, performance.now());
  if (!taken.ok) throw tooManyTries(taken.retry_after_ms);
}

function tooManyTries(wait_ms: number): ApiError {
  const seconds = Math.ceil(wait_ms / 1000);
  const headers = { 'retry-after': String(seconds) };
  return new ApiError('rate_limit', `Too many attempts. Try again in ${seconds} s.`, { headers });
}
