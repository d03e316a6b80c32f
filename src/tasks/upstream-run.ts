import type { Route } from '../catalog/model.ts';
import type { Json, Provider, RunContext } from '../providers/provider.ts';

/** A run as its upstream sees it: for tasks, and for test calls of operators, which have none. */

/** A cancel. */
const cancel_timeout_ms = 15_000;

/**
 * A poll with all the files that may be in its answer: as long as the download of a result link may take. An upstream
 * that does not answer at all, or stops sending, is given up by the adapter's own limits.
 */
export const poll_timeout_ms = 600_000;

/** Returns the facts about a run that exists, for the adapter. */
export function runContext(task: { id: string; kind: RunContext['kind'] }, route: Route, now_ms: number): RunContext {
  return {
    task_id: task.id,
    kind: task.kind,
    model: route.upstream_model,
    options: route.options,
    output: route.output,
    start_limit_ms: route.timeout_ms.start,
    total_limit_ms: route.timeout_ms.total,
    now_ms,
  };
}

const poll_after_min_ms = 20;

/** An adapter's pace as it can be kept: an upstream's word for it may be anything, also NaN. */
export function pollDelay(route: Route, poll_after_ms: number): number {
  const { max_ms } = route.poll;
  if (!(poll_after_ms < max_ms)) return max_ms;
  return Math.ceil(Math.max(poll_after_ms, poll_after_min_ms));
}

/** Tells whether a run has passed a limit of its route: it did not start in time, or did not end in time. */
export function isLate(route: Route, run: { age_ms: number; has_started: boolean }): boolean {
  const { start, total } = route.timeout_ms;
  return run.age_ms >= (run.has_started ? total : start);
}

/** Asks the upstream to stop a run; `billed` if it cannot, or does not say that it did. `warn` is told of an error. */
export async function stopRun(
  provider: Provider,
  run: RunContext,
  ref: Json,
  warn: (error: unknown) => void,
): Promise<'stopped' | 'billed'> {
  if (!provider.cancel) return 'billed';
  try {
    return await provider.cancel(run, ref, AbortSignal.timeout(cancel_timeout_ms));
  } catch (error) {
    warn(error);
    return 'billed';
  }
}
