import { createHmac, timingSafeEqual } from 'node:crypto';
import { assert } from '../lib/assert.ts';
import { isId } from '../lib/ids.ts';
import type { SessionName } from './upload-sessions.ts';

/** Path of the addresses of uploads, which clients call without a key (decision 97). */
export const upload_path = '/upload/v1beta/files';

/** Returns the address of a session. Its signature allows to add to this file, to finish it and to cancel it, no more. */
export function uploadAddress(secret: string, base_url: string, session: SessionName): string {
  const { account_id, id } = session;
  return `${base_url.replace(/\/+$/, '')}${upload_path}/${account_id}/${id}?sig=${sign(secret, session)}`;
}

/** Tells whether a signature is the one of this session's address, in its only spelling. */
export function isUploadAddress(secret: string, session: SessionName, sig: string | undefined): boolean {
  if (!isId('acct', session.account_id) || !isId('upload', session.id)) return false;
  if (sig === undefined || !/^[\w-]{43}$/.test(sig)) return false;
  return timingSafeEqual(Buffer.from(sig), Buffer.from(sign(secret, session)));
}

/** The prefix keeps the signature apart from whatever else the same secret signs. */
function sign(secret: string, { account_id, id }: SessionName): string {
  assert(secret.length >= 16, 'addresses of uploads need a secret of at least 16 characters');
  return createHmac('sha256', secret).update(`medley upload\n${account_id}\n${id}`).digest('base64url');
}
