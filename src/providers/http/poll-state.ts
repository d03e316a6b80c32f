import { isObject, type Json, type JsonObject } from '../../catalog/model.ts';
import { assert } from '../../lib/assert.ts';
import type { RunState } from '../provider.ts';

/** Poll state: members of every `ref` of a polled run, beside those of its adapter. */
export type PollState = JsonObject & {
  started_at_ms: number;
  /** The upstream was seen working on it: from then on no other route may have it. */
  seen_running?: boolean;
  /** Since when the upstream says that it knows no such run. */
  missing_since_ms?: number;
};

export type PollInterval = { min_ms: number; max_ms: number };

/** A run as its `ref` holds it. */
export function readPollState(ref: Json): PollState {
  assert(isObject(ref), 'a run has a ref');
  const { started_at_ms, seen_running, missing_since_ms } = ref;
  assert(typeof started_at_ms === 'number', 'a run has its time');
  return {
    ...ref,
    started_at_ms,
    ...(seen_running === true && { seen_running }),
    ...(typeof missing_since_ms === 'number' && { missing_since_ms }),
  };
}

/** Seen waiting or running: is asked again after a quarter of its age, within the pace. */
export function goingOn(
  state: PollState,
  phase: 'waiting' | 'running',
  now_ms: number,
  interval: PollInterval,
): RunState {
  const { missing_since_ms: _, ...ref } = state;
  const seen_running = state.seen_running === true || phase === 'running';
  return {
    phase: seen_running ? 'running' : 'waiting',
    ref: seen_running ? { ...ref, seen_running } : ref,
    poll_after_ms: pollAfter(state, now_ms, interval),
  };
}

const age_share = 0.25;

function pollAfter({ started_at_ms }: PollState, now_ms: number, { min_ms, max_ms }: PollInterval): number {
  return Math.min(Math.max((now_ms - started_at_ms) * age_share, min_ms), max_ms);
}

/** A run may be unknown for a moment: right after its submit, or where the upstream's parts disagree. */
const missing_max_ms = 120_000;

/** The upstream says that it knows no such run. */
export function unknownRun(
  state: PollState,
  now_ms: number,
  interval: PollInterval,
  patience_ms = missing_max_ms,
): RunState {
  const missing_since_ms = state.missing_since_ms ?? now_ms;
  if (now_ms - missing_since_ms >= patience_ms) {
    return { phase: 'failed', type: 'upstream_error', message: 'The model provider lost the run.' };
  }
  return {
    phase: state.seen_running === true ? 'running' : 'waiting',
    ref: { ...state, missing_since_ms },
    poll_after_ms: pollAfter(state, now_ms, interval),
  };
}
