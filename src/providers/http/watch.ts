import { isObject, type Json, type JsonObject } from '../../catalog/model.ts';
import { assert } from '../../lib/assert.ts';
import type { RunState } from '../provider.ts';

/** Poll state: members of every `ref` of a polled run, beside those of its adapter. */
export type Watch = JsonObject & {
  started_at_ms: number;
  /** The upstream was seen working on it: from then on no other route may have it. */
  seen_running?: boolean;
  /** Since when the upstream says that it knows no such run. */
  missing_since_ms?: number;
};

export type PollPace = { min_ms: number; max_ms: number };

/** A run as its `ref` holds it. */
export function readWatch(ref: Json): Watch {
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
export function goingOn(watch: Watch, phase: 'waiting' | 'running', now_ms: number, pace: PollPace): RunState {
  const { missing_since_ms: _, ...ref } = watch;
  const seen_running = watch.seen_running === true || phase === 'running';
  return {
    phase: seen_running ? 'running' : 'waiting',
    ref: seen_running ? { ...ref, seen_running } : ref,
    poll_after_ms: pollAfter(watch, now_ms, pace),
  };
}

const age_share = 0.25;

function pollAfter({ started_at_ms }: Watch, now_ms: number, { min_ms, max_ms }: PollPace): number {
  return Math.min(Math.max((now_ms - started_at_ms) * age_share, min_ms), max_ms);
}

/** A run may be unknown for a moment: right after its submit, or where the upstream's parts disagree. */
const missing_max_ms = 120_000;

/** The upstream says that it knows no such run. */
export function unknownRun(watch: Watch, now_ms: number, pace: PollPace, patience_ms = missing_max_ms): RunState {
  const missing_since_ms = watch.missing_since_ms ?? now_ms;
  if (now_ms - missing_since_ms >= patience_ms) {
    return { phase: 'failed', type: 'upstream_error', message: 'The model provider has lost the run.' };
  }
  return {
    phase: watch.seen_running === true ? 'running' : 'waiting',
    ref: { ...watch, missing_since_ms },
    poll_after_ms: pollAfter(watch, now_ms, pace),
  };
}
