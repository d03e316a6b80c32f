import type { App } from '../app.ts';
import { mapInput } from '../catalog/input.ts';
import type { JsonObject, Route } from '../catalog/model.ts';
import type { Json, NotStarted, Provider, RunContext, RunRequest } from '../providers/provider.ts';
import { credentials_pause_ms, type Trouble } from '../routing/health.ts';
import { routeOf, type Claimed } from './attempts.ts';
import { eventsUrl } from './event-token.ts';
import { refOf, type Attempt, type Task } from './task.ts';

/** One call to an upstream about a run that exists. */
export const call_timeout_ms = 15_000;

/** Our storage failed: a run that was paid is not given up for that. */
export const storage_pause_ms = 5_000;

/** A job that its worker lost, or that failed, this often is given up: the task fails, refunded. */
export const tries_max = 10;

/** What the adapter is told of a run that exists. */
export function runContext(app: App, task: Task, route: Route): RunContext {
  return {
    task_id: task.id,
    kind: task.kind,
    model: route.upstream_model,
    options: route.options,
    output: route.output,
    start_limit_ms: route.timeout_ms.start,
    total_limit_ms: route.timeout_ms.total,
    now_ms: app.clock.now(),
  };
}

/** What the adapter is told to start: the caller's input in the upstream's names. */
export function runRequest(
  app: App,
  task: Task,
  attempt: Pick<Attempt, 'number'> & { route: Route },
  input: JsonObject,
): RunRequest {
  const { route, number } = attempt;
  const events_url = eventsUrl(app.secret, app.base_url(), { ...refOf(task), number });
  return {
    ...runContext(app, task, route),
    input: mapInput(route, input),
    ...(events_url !== undefined && { events_url }),
  };
}

const poll_after_min_ms = 20;

/** An adapter's pace as the engine can keep it: an upstream's word for it may be anything, also NaN. */
export function pace(route: Route, poll_after_ms: number): number {
  const { max_ms } = route.poll;
  if (!(poll_after_ms < max_ms)) return max_ms;
  return Math.ceil(Math.max(poll_after_ms, poll_after_min_ms));
}

/** What a run that was not started tells of its route. */
export function troubleOf({ reason, retry_after_ms }: NotStarted): Trouble {
  const pause_ms = reason === 'rejected_credentials' ? credentials_pause_ms : retry_after_ms;
  return { cause: reason === 'timeout' ? 'timeout' : 'upstream_error', ...(pause_ms !== undefined && { pause_ms }) };
}

/** Asks the upstream to stop a run; `billed` if it cannot, or does not say that it did. */
async function stopRun(app: App, provider: Provider, run: RunContext, ref: Json): Promise<'stopped' | 'billed'> {
  if (!provider.cancel) return 'billed';
  try {
    return await provider.cancel(run, ref, AbortSignal.timeout(call_timeout_ms));
  } catch (error) {
    app.log.warn({ task_id: run.task_id, error: String(error) }, 'upstream did not confirm the cancel');
    return 'billed';
  }
}

/** The same for the run of an attempt, whose provider may be configured no more. */
export async function stopAttempt(app: App, task: Task, attempt: Attempt): Promise<'stopped' | 'billed'> {
  const provider = app.providers.get(attempt.provider);
  if (!provider || attempt.run_ref === null) return 'billed';
  return stopRun(app, provider, runContext(app, task, routeOf(attempt)), JSON.parse(attempt.run_ref));
}

/** A run that nobody waits for any more is stopped, or told to the operator, who pays for it. */
export async function stopOrphan(
  app: App,
  provider: Provider,
  run: RunContext,
  ref: Json,
  attempt: Claimed,
): Promise<void> {
  if ((await stopRun(app, provider, run, ref)) === 'stopped') return;
  app.log.error({ task_id: run.task_id, attempt: attempt.number, ref }, 'an upstream run goes on without its task');
}
