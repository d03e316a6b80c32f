import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Queryable } from '../db/database.ts';
import { sha256 } from '../lib/sha256.ts';

/**
 * Challenges that passkeys sign. Each is for one purpose and one holder, ends after minutes and counts once. It carries
 * its own end and a MAC of the service, so that a page of signing in that is opened writes nothing; the database has
 * those that were answered rightly.
 */

/** `sign_in` is held by a browser; the others by a session. */
export type ChallengePurpose = 'sign_in' | 'add' | 'prove';

export type ChallengeScope = { purpose: ChallengePurpose; holder: string };

/** One that belongs to its scope and has not ended. */
export type Challenge = { hash: Buffer; expires_at: Date };

export const challenge_ms = 5 * 60_000;

const [nonce_bytes, time_bytes, mac_bytes] = [16, 8, 32];

function macOf(secret: string, { purpose, holder }: ChallengeScope, head: Buffer): Buffer {
  return createHmac('sha256', secret).update(`passkey challenge\0${purpose}\0${holder}\0`).update(head).digest();
}

/** Returns a new challenge. */
export function makeChallenge(secret: string, scope: ChallengeScope, now: Date): Buffer {
  const head = Buffer.alloc(nonce_bytes + time_bytes);
  randomBytes(nonce_bytes).copy(head);
  head.writeBigUInt64BE(BigInt(now.getTime() + challenge_ms), nonce_bytes);
  return Buffer.concat([head, macOf(secret, scope, head)]);
}

/** Reads a challenge. Undefined if it is of another scope or of nobody here, or has ended. */
export function readChallenge(secret: string, scope: ChallengeScope, bytes: Buffer, now: Date): Challenge | undefined {
  if (bytes.length !== nonce_bytes + time_bytes + mac_bytes) return undefined;
  const head = bytes.subarray(0, nonce_bytes + time_bytes);
  if (!timingSafeEqual(bytes.subarray(head.length), macOf(secret, scope, head))) return undefined;
  const expires_at = new Date(Number(head.readBigUInt64BE(nonce_bytes)));
  if (expires_at <= now) return undefined;
  return { hash: sha256(bytes), expires_at };
}

/** Uses a challenge up. False if it was used before. */
export async function spendChallenge(db: Queryable, { hash, expires_at }: Challenge): Promise<boolean> {
  const rows = await db.query(
    'insert into used_challenges (hash, expires_at) values ($1, $2) on conflict (hash) do nothing returning hash',
    [hash, expires_at],
  );
  return rows.length === 1;
}

/** Removes those that their time alone refuses. */
export async function removeOldChallenges(db: Queryable, now: Date): Promise<void> {
  await db.query('delete from used_challenges where expires_at < $1', [now]);
}
