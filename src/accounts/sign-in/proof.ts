import { ApiError } from '../../errors.ts';

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
  throw new ApiError('forbidden', 'Confirm that it is you: your last proof is too old.', { code: proof_required });
}

/** By which the dashboard knows that only a passkey helps. */
const passkey_required = 'passkey_required';

/**
 * Throws ApiError 403 for a change of second factors by somebody who has passkeys and signed in without one: a stolen
 * password must not be good for another factor.
 */
export function checkFactorChange(person: { user: { has_passkeys: boolean }; has_two_factors: boolean }): void {
  if (!person.user.has_passkeys || person.has_two_factors) return;
  const message =
    'Confirm that it is you with a passkey of yours. If you have lost it, ask the operator for a sign-in link.';
  throw new ApiError('forbidden', message, { code: passkey_required });
}
