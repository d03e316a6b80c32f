import { createHmac } from 'node:crypto';
import { vi } from 'vitest';

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const step_ms = 30_000;

/**
 * Returns the code of an authenticator now for this secret in base32 (RFC 6238, six digits); `steps` later, if
 * another code is needed at once: a clock that is one step ahead is believed.
 */
export function totpOf(secret: string, steps = 0): string {
  const bits = [...secret].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('');
  const key = Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => Number.parseInt(byte, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / step_ms) + steps));
  const hash = createHmac('sha1', key).update(counter).digest();
  const number = hash.readUInt32BE((hash.at(-1) ?? 0) & 15) & 0x7fffffff;
  return String(number % 1_000_000).padStart(6, '0');
}

/** A code of the step before stays good for so long at least: a slow machine needs seconds to give it. */
const room_ms = 15_000;

/** Returns the code of the step before this one, which is believed to the end of this one: waits for the next if that is near. */
export async function earlierTotp(secret: string): Promise<string> {
  await vi.waitUntil(() => step_ms - (Date.now() % step_ms) > room_ms, { timeout: step_ms, interval: 50 });
  return totpOf(secret, -1);
}

/** The secret in the address that a QR code carries. */
export function secretOf(totp_uri: string): string {
  return new URL(totp_uri).searchParams.get('secret') ?? '';
}
