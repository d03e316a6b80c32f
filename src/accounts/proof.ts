import { ApiError } from '../errors.ts';

/**
 * Acts that a stolen session must not be good for ask who is there once more: for the password, or for another sign-in
 * by a link.
 */

const proof_lasts_ms = 15 * 60_000;

/** By which the dashboard knows that a password would help. */
const proof_required = 'proof_required';

/** Throws ApiError 403 if the last proof is too old. */
export function checkProof(proved_at: Date, now_ms: number): void {
  if (now_ms - proved_at.getTime() < proof_lasts_ms) return;
  throw new ApiError('forbidden', 'Confirm that it is you: enter your password again.', { code: proof_required });
}
