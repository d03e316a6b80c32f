import type { ApiError } from '../errors.ts';
import { NotStarted } from '../providers/provider.ts';
import { Unfinished } from '../styles/codec.ts';
import type { AttemptTimeouts, Phase } from './attempt-timeouts.ts';
import type { ChatOutcome } from './outcome.ts';

/** Results of the attempts of routes. */

/** The failure of a route before any content: the next one may be tried. */
export type RouteFailure = {
  cause: 'timeout' | 'upstream_error';
  reason: string;
  retry_after_ms?: number | undefined;
  rejected_credentials?: boolean;
  /** The model has done its work, or all that it had time for: a repeat would take and cost as much. */
  is_spent?: boolean;
  /** It says nothing about the route. */
  is_not_route_fault?: boolean;
  simulated?: boolean | undefined;
  /** It was asked, and nobody knows whether it charges for that. */
  may_cost?: boolean;
  /** Its reason as the caller may read it. */
  public_message?: string;
  /** Set if the request cannot be translated for this upstream; another one may take it. */
  refusal?: ApiError;
};

/**
 * `answered`: content came, or a complete answer without any; whatever went wrong later is in the outcome.
 * `is_not_route_fault`: that says nothing about the route.
 */
export type AttemptResult =
  | { answered: true; whole?: Buffer; is_not_route_fault?: boolean }
  | { answered: false; failure: RouteFailure };

export function failed(failure: RouteFailure): AttemptResult {
  return { answered: false, failure };
}

/** Returns the result of an attempt that we cancelled when the upstream had it: it bills its work. Undefined for others. */
export function abandoned(error: unknown, timeouts: AttemptTimeouts, outcome: ChatOutcome): AttemptResult | undefined {
  if (!timeouts.is_abandoned || error instanceof NotStarted) return undefined;
  outcome.is_abandoned = true;
  return { answered: true };
}

/** Returns the route failure of an error. */
export function failureOf(error: unknown, timeouts: AttemptTimeouts): RouteFailure {
  const { timed_out } = timeouts;
  if (timed_out) {
    const is_spent = timed_out === 'total';
    return { cause: 'timeout', reason: lateness(timed_out), is_spent, may_cost: true };
  }
  if (error instanceof Unfinished) return unfinished(error.message);
  if (!(error instanceof NotStarted)) return { cause: 'upstream_error', reason: String(error), may_cost: true };
  return {
    cause: error.reason === 'timeout' ? 'timeout' : 'upstream_error',
    reason: `${error.reason}: ${error.message}`,
    retry_after_ms: error.retry_after_ms,
    rejected_credentials: error.reason === 'rejected_credentials',
    is_not_route_fault: error.is_not_route_fault,
    simulated: error.simulated,
  };
}

/** Returns the failure of a model that has worked, but has not finished its answer. */
export function unfinished(message: string): RouteFailure {
  return {
    cause: 'upstream_error',
    reason: message,
    public_message: message,
    is_not_route_fault: true,
    is_spent: true,
    may_cost: true,
  };
}

/** Returns the reason of a failure by time. */
export function lateness(phase: Phase): string {
  return `no answer in time (${phase})`;
}
