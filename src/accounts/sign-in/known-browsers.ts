import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/**
 * A browser in which somebody has given the right password before: its tries are counted by themselves, so that nobody
 * is kept out of their account by strangers who try their address. The cookie opens nothing.
 */

const year_s = 365 * 86_400;

/** Bound to the host where that is possible, as the login library's own cookies are. */
function nameFor(is_secure: boolean): string {
  return is_secure ? '__Host-medley.browser' : 'medley.browser';
}

function signatureOf(secret: string, email: string, id: string): string {
  return createHmac('sha256', secret).update(`known browser\0${email}\0${id}`).digest('base64url');
}

/** A `Set-Cookie` for a browser in which this address has just signed in. */
export function knownBrowserCookie(secret: string, email: string, is_secure: boolean): string {
  const id = randomBytes(12).toString('base64url');
  const cookie = `${nameFor(is_secure)}=${id}.${signatureOf(secret, email, id)}`;
  return `${cookie}; Max-Age=${year_s}; Path=/; HttpOnly; SameSite=Lax${is_secure ? '; Secure' : ''}`;
}

/** The id of the browser with these cookies, if this address has signed in there before. */
export function knownBrowserOf(cookies: string | undefined, secret: string, email: string): string | undefined {
  const value = /(?:^|;\s*)(?:__Host-)?medley\.browser=([^;]*)/.exec(cookies ?? '')?.[1] ?? '';
  const [id = '', signature = ''] = value.split('.');
  const [sent, expected] = [Buffer.from(signature), Buffer.from(signatureOf(secret, email, id))];
  return sent.length === expected.length && timingSafeEqual(sent, expected) ? id : undefined;
}
