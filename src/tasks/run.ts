import type { Logger } from 'pino';
import type { Clock } from '../lib/clock.ts';
import { withoutWords } from '../lib/without-words.ts';
import type { Providers } from '../providers/open.ts';
import { mapInput } from '../catalog/input.ts';
import type { JsonObject, Route } from '../catalog/model.ts';
import type { InputFiles, Json, NotStarted, Provider, RunContext, RunRequest } from '../providers/provider.ts';
import { credentials_pause_ms, type RouteTrouble } from '../routing/health.ts';
import { routeOf, type AttemptClaim } from './attempts.ts';
import { eventsUrl } from './event-token.ts';
import { refOf, type Attempt, type Task } from './task.ts';
import { full_reason, isFull } from './throttled.ts';
import { runContext, stopRun } from './upstream-run.ts';

/** The parts of the app that calls of an upstream about a run take. */
export type RunParts = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly providers: Providers;
  readonly secret: string;
  base_url(): string;
};

/** Our storage failed: a run that was paid is not given up for that. */
export const storage_pause_ms = 5_000;

/** A job that its worker lost, or that failed, this often is given up: the task fails, refunded. */
export const attempts_max = 10;

/** The caller's input with its files in the form that the provider takes. */
export type PreparedRun = { input: JsonObject; files?: InputFiles };

/** Returns the adapter's request for a run: the caller's input in the upstream's names. */
export function runRequest(
  parts: RunParts,
  task: Task,
  attempt: Pick<Attempt, 'number'> & { route: Route },
  { input, files }: PreparedRun,
): RunRequest {
  const { route, number } = attempt;
  const events_url = eventsUrl(parts.secret, parts.base_url(), { ...refOf(task), number });
  return {
    ...runContext(task, route, parts.clock.now()),
    input: mapInput(route, input),
    ...(files && { files }),
    ...(events_url !== undefined && { events_url }),
  };
}

/** Returns the health of a route whose run was not started. */
export function troubleOf({ reason, retry_after_ms }: NotStarted): RouteTrouble {
  const pause_ms = reason === 'rejected_credentials' ? credentials_pause_ms : retry_after_ms;
  return { cause: reason === 'timeout' ? 'timeout' : 'upstream_error', ...(pause_ms !== undefined && { pause_ms }) };
}

/** Returns the end of an attempt whose run was not started. */
export function refusalOf(error: NotStarted): { state: 'not_started'; reason: string; message: string } {
  return { state: 'not_started', reason: isFull(error) ? full_reason : error.reason, message: error.message };
}

/** Stops the run of an attempt, whose provider may be configured no more; `if unbilled`: else its task goes on. */
export async function stopAttempt(
  parts: RunParts,
  task: Task,
  attempt: Attempt,
  when: 'always' | 'if unbilled' = 'always',
): Promise<'stopped' | 'billed'> {
  const provider = parts.providers.get(attempt.provider);
  if (!provider || attempt.run_ref === null) return 'billed';
  const run = runContext(task, routeOf(attempt), parts.clock.now());
  const context: RunContext = when === 'always' ? { ...run, is_given_up: true } : run;
  return stopRun(provider, context, JSON.parse(attempt.run_ref), unconfirmed(parts, task.id));
}

/** Returns what stops the run of an attempt that is being submitted; undefined if its provider cannot. */
export function stopOfStart(parts: RunParts, task: Task, attempt: Attempt): (() => Promise<void>) | undefined {
  const provider = parts.providers.get(attempt.provider);
  if (!provider?.stopStart) return undefined;
  const run = runContext(task, routeOf(attempt), parts.clock.now());
  return async () => {
    const stopped = provider.stopStart?.(run, AbortSignal.timeout(stop_start_ms));
    await stopped?.catch(unconfirmed(parts, task.id));
  };
}

/** Whoever cancels waits for it. */
const stop_start_ms = 5_000;

/** A run that nobody waits for any more is stopped, or told to the operator, who pays for it. */
export async function stopOrphan(
  parts: RunParts,
  provider: Provider,
  run: RunContext,
  ref: Json,
  attempt: AttemptClaim,
): Promise<void> {
  if ((await stopRun(provider, run, ref, unconfirmed(parts, run.task_id))) === 'stopped') return;
  parts.log.error({ task_id: run.task_id, attempt: attempt.number, ref }, 'an upstream run goes on without its task');
}

function unconfirmed(parts: RunParts, task_id: string): (error: unknown) => void {
  return (error) =>
    parts.log.warn({ task_id, error: withoutWords(String(error)) }, 'upstream did not confirm the cancel');
}
