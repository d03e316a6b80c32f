import type { Answer } from './http.ts';

/** Gateways say so when they waited for the upstream in vain, while it may go on and make what we pay for. */
const lost_statuses = [504, 524];

/**
 * For upstreams that answer a submit with its result: throws that nobody knows what became of it, if the answer
 * comes from a gateway that has not seen the result.
 */
export function assertNotLost({ status }: Answer): void {
  if (lost_statuses.includes(status)) throw new Error(`answered ${status}: the upstream may be at work on it`);
}
