import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Queryable } from '../../db/database.ts';

/** Codes of an authenticator (RFC 6238, 5.2): each counts once, though the login library would take it for a minute. */

const step_ms = 30_000;
const digits = 6;
/** Clocks may differ by so many steps, as the library has it. */
const steps_around = 1;

/** The code of one time step; `secret` is the key itself. */
function codeAt(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const hash = createHmac('sha1', secret).update(counter).digest();
  const number = hash.readUInt32BE((hash.at(-1) ?? 0) & 15) & 0x7fffffff;
  return String(number % 10 ** digits).padStart(digits, '0');
}

/** The latest time step whose code this is; undefined if it is a wrong one. */
function stepOf(secret: string, code: string, now_ms: number): number | undefined {
  const present = Math.floor(now_ms / step_ms);
  const sent = Buffer.from(code);
  for (let step = present + steps_around; step >= present - steps_around; step--) {
    const expected = Buffer.from(codeAt(secret, step));
    if (sent.length === expected.length && timingSafeEqual(sent, expected)) return step;
  }
  return undefined;
}

/**
 * Uses this code up: it and all before it count no more. False if one of them has been used already. A wrong code uses
 * nothing up, and is for the library to refuse and to count.
 */
export async function useUpCode(
  db: Queryable,
  { factor_id, secret, code }: { factor_id: string; secret: string; code: string },
  now_ms: number,
): Promise<boolean> {
  const step = stepOf(secret, code, now_ms);
  if (step === undefined) return true;
  const rows = await db.query(
    `update auth."twoFactor" set "lastStep" = $2 where id = $1 and coalesce("lastStep", 0) < $2 returning id`,
    [factor_id, step],
  );
  return rows.length === 1;
}
