import type { Route } from '../catalog/model.ts';
import type { ApiError } from '../errors.ts';
import type { Usage } from '../styles/conversation.ts';

/** One try of a route, for the record of the call. */
export type ChatAttempt = {
  route: string;
  /** In a record: only where it is another model than the call's. */
  model?: string;
  outcome: 'answered' | 'failed';
  reason?: string;
  upstream_id?: string;
  /** The reason for which this route was asked at this place. */
  why?: string;
  duration_ms: number;
};

/** The outcome of a call so far. */
export type ChatOutcome = {
  /** On the monotonic clock. */
  started_at_ms: number;
  attempts: ChatAttempt[];
  /** The one that answered. */
  route: Route | undefined;
  /** Usage reported by the upstream that gave content. */
  usage: Partial<Usage> | undefined;
  /** Some of the usage was counted here. */
  is_counted?: boolean;
  /** Types of the caller's tools that the upstream did not get. */
  tools_left_out: readonly string[];
  /** The upstream was asked to keep input in its cache for an hour. */
  writes_for_an_hour: boolean;
  /** The upstream said that its answer is complete. */
  is_complete: boolean;
  has_content: boolean;
  delivered: { ascii_bytes: number; other_bytes: number };
  finish: string | undefined;
  /** The upstream's id of its response. */
  upstream_id: string | undefined;
  /** Since the start of the call, whichever route it came from. */
  first_content_ms: number | undefined;
  /** The caller hung up before the upstream was done. */
  is_gone: boolean;
  /** The upstream had the request when we let it go, since nobody waited for its answer: it bills the input. */
  is_abandoned: boolean;
  /** The caller's error: the response, or the last event of a stream. */
  error: ApiError | undefined;
};

export function newOutcome(): ChatOutcome {
  return {
    started_at_ms: performance.now(),
    attempts: [],
    route: undefined,
    usage: undefined,
    tools_left_out: [],
    writes_for_an_hour: false,
    is_complete: false,
    has_content: false,
    delivered: { ascii_bytes: 0, other_bytes: 0 },
    finish: undefined,
    upstream_id: undefined,
    first_content_ms: undefined,
    is_gone: false,
    is_abandoned: false,
    error: undefined,
  };
}
