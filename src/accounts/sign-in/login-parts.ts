import type { Logger } from 'pino';
import type { Db } from '../../db/database.ts';
import { isRecord } from '../../lib/is-record.ts';
import type { Issuers } from './issuers.ts';
import { client_address_header, no_mail_domain, password_length } from './login-rules.ts';
import type { Mailer } from '../mailer.ts';
import type { SignInSettings } from './settings.ts';
import { weaknessOf, type Owner } from './weak-passwords.ts';

/** Parts of our own endpoints in the login library. */

export type EndpointOptions = {
  db: Db;
  secret: string;
  now(): Date;
  base_url(): string;
  mailer: Pick<Mailer, 'post' | 'ready'>;
  log: Pick<Logger, 'error' | 'warn'>;
  issuers: Issuers;
  sign_in(): SignInSettings;
  /** Of accounts that new people get. */
  base_currency(): string;
};

/** Parts of the endpoints. The login library is loaded at its first use. */
export type Parts = Awaited<ReturnType<typeof loadParts>> & EndpointOptions;

export async function loadParts() {
  const { createAuthEndpoint, getSessionFromCtx, APIError } = await import('better-auth/api');
  const { expireCookie, setSessionCookie } = await import('better-auth/cookies');
  const { generateRandomString } = await import('better-auth/crypto');
  return { createAuthEndpoint, getSessionFromCtx, APIError, expireCookie, setSessionCookie, generateRandomString };
}

export const factor_wait_s = 600;

type Challenges = { createVerificationValue(row: { value: string; identifier: string; expiresAt: Date }): unknown };

/** A sign-in that waits for its code, as the library begins one after a password. Returns what its cookie says. */
export async function beginChallenge(
  { generateRandomString }: Parts,
  rows: Challenges,
  user_id: string,
): Promise<string> {
  const identifier = `2fa-${generateRandomString(20)}`;
  const expiresAt = new Date(Date.now() + factor_wait_s * 1000); // the library reads its own clock
  await rows.createVerificationValue({ value: user_id, identifier, expiresAt });
  await rows.createVerificationValue({ value: '0', identifier: `2fa-attempts-${identifier}`, expiresAt });
  return identifier;
}

/** Fields of a body that may be anything; each throws what the library answers as a 400. */
export function makeReader(APIError: Parts['APIError'], body: unknown) {
  const refuse = (param: string, message: string) => new APIError('BAD_REQUEST', { message, param });
  const text = (field: string, length_max: number): string => {
    const value = isRecord(body) ? body[field] : undefined;
    const fits = typeof value === 'string' && value.trim() !== '' && value.length <= length_max;
    if (fits && !value.includes('\0')) return value;
    throw refuse(field, `${field} is required, and at most ${length_max} characters long.`);
  };
  return {
    text,
    password: (owner: Owner) => {
      const value = text('password', password_length.max);
      const is_long = value.length >= password_length.min;
      const problem = is_long
        ? weaknessOf(value, owner)
        : `The password needs at least ${password_length.min} characters.`;
      if (problem !== undefined) throw refuse('password', problem);
      return value;
    },
    email: () => {
      const value = text('email', 254).trim().toLowerCase();
      if (/^[^\s@]+@[^\s@]+\.[^\s@]+$/.test(value) && !value.endsWith(`@${no_mail_domain}`)) return value;
      throw refuse('email', 'email must be an e-mail address.');
    },
  };
}

/** The address of whoever makes this request. */
export function addressOf({ headers }: { headers?: Headers | undefined }): string {
  return headers?.get(client_address_header) ?? 'unknown';
}
