import type { Caller } from '../accounts/authenticate.ts';
import { ApiError } from '../errors.ts';

/** A blocked account reads what it has, but starts nothing new: 403. */
export function refuseBlocked(caller: Caller): void {
  if (caller.account.status !== 'blocked') return;
  throw new ApiError('account_blocked', 'This account is blocked. Ask the operator of this service.', {
    code: 'account_blocked',
    refusal: { reason: 'account_blocked', key_id: caller.key.id },
  });
}
