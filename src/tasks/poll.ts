import type { Route } from '../catalog/model.ts';
import { freeOfCharge } from '../catalog/upstream-cost.ts';
import type { Job, Outcome } from '../queue/queue.ts';
import { failpoint } from '../lib/failpoint.ts';
import { withoutWords } from '../lib/without-words.ts';
import { NotStarted, type Json, type Provider, type RunState } from '../providers/provider.ts';
import { acceptAttempt, closeAttempt, listAbandoned, loadAtWork, routeOf, setStopped } from './attempts.ts';
import { end, failure, giveUp, outOfReach, settleRun, type EndingParts } from './completion.ts';
import { stopAttempt, storage_pause_ms, attempts_max, refusalOf, troubleOf, type RunParts } from './run.ts';
import { inTraceOf } from '../tracing/tracer.ts';
import { clientSpan } from './trace.ts';
import { readRef, refOf, type Attempt, type Task } from './task.ts';
import { isFull, noteFullRoute } from './throttled.ts';
import { poll_timeout_ms, isLate, pollDelay, runContext } from './upstream-run.ts';

/** The parts of the app that polling takes. */
type PollParts = EndingParts & RunParts;

/** A run that its upstream has accepted. */
type Accepted = { task: Task; attempt: Attempt; run_ref: string; route: Route };

/** The job `task.poll`: asks the upstream how the run is going, at the adapter's pace. */
export async function pollTask(parts: PollParts, job: Job): Promise<Outcome> {
  const at_work = await loadAtWork(parts.db, readRef(job.data));
  if (!at_work) return 'done';
  const { task, open } = at_work;
  if (task.completed_at) return stopAbandoned(parts, task);
  if (open?.state !== 'accepted' || open.run_ref === null) return 'done';
  const accepted = { task, attempt: open, run_ref: open.run_ref, route: routeOf(open) };
  if (job.attempt >= attempts_max) {
    await stopAttempt(parts, task, open);
    return giveUp(parts, task);
  }
  const provider = parts.providers.get(open.provider);
  if (!provider) return withoutProvider(parts, accepted);
  const options = clientSpan('poll', task, open);
  return inTraceOf(parts.tracer, task, options, () => pollUpstream(parts, accepted, provider, job.signal));
}

async function pollUpstream(
  parts: PollParts,
  accepted: Accepted,
  provider: Provider,
  stopped: AbortSignal,
): Promise<Outcome> {
  const { task, attempt, run_ref, route } = accepted;
  const now_ms = parts.clock.now();
  const ref: Json = JSON.parse(run_ref);
  let state: RunState | NotStarted | undefined;
  try {
    const signal = AbortSignal.any([stopped, AbortSignal.timeout(poll_timeout_ms)]);
    state = await provider.poll(runContext(task, route, parts.clock.now()), ref, signal);
  } catch (error) {
    if (error instanceof NotStarted) state = error;
    else parts.log.debug({ task_id: task.id, error: withoutWords(String(error)) }, 'poll failed, will ask again');
  }
  await failpoint('task.polled');
  if (state instanceof NotStarted) return dropped(parts, accepted, state);
  if (state?.phase === 'done' || state?.phase === 'failed') {
    const settled = await settleRun(parts, task, { ...attempt, cost: route.cost, stopped }, state, new Date(now_ms));
    if (settled === 'unfetched') return fetchAgain(parts, accepted, stopped);
    return settled === 'done' ? 'done' : { again_after_ms: storage_pause_ms };
  }
  const started_at = task.started_at ?? (state?.phase === 'running' ? new Date(now_ms) : null);
  if (isLateNow(accepted, started_at, now_ms)) return expire(parts, accepted, started_at, state?.simulated === true);
  if (!state) return { again_after_ms: route.poll.max_ms };
  const again_after_ms = pollDelay(route, state.poll_after_ms);
  const is_news = JSON.stringify(state.ref) !== run_ref || (state.phase === 'running' && task.started_at === null);
  if (is_news) await acceptAttempt(parts, refOf(task), { ...attempt, seen_ref: run_ref }, state, again_after_ms);
  return { again_after_ms };
}

function isLateNow({ attempt, route }: Accepted, started_at: Date | null, now_ms: number): boolean {
  return isLate(route, { age_ms: now_ms - attempt.created_at.getTime(), has_started: started_at !== null });
}

/** The next poll names the link anew, which may work, until the route's time is over. */
async function fetchAgain(parts: PollParts, accepted: Accepted, stopped: AbortSignal): Promise<Outcome> {
  const { task, attempt, route } = accepted;
  const now_ms = parts.clock.now();
  const started_at = task.started_at ?? new Date(now_ms);
  if (stopped.aborted || !isLateNow(accepted, started_at, now_ms)) return { again_after_ms: route.poll.max_ms };
  return outOfReach(parts, task, attempt, started_at);
}

/** A run that is too late is stopped upstream; one that never started may go to the next route. */
async function expire(
  parts: PollParts,
  { task, attempt }: Accepted,
  started_at: Date | null,
  simulated: boolean,
): Promise<Outcome> {
  const stopped = await stopAttempt(parts, task, attempt);
  await failpoint('task.expired');
  if (!simulated) await parts.health.noteFailure(attempt.route, task.account_id, { cause: 'timeout' });
  if (started_at === null && stopped === 'stopped') {
    const completion = { state: 'not_started', reason: 'timeout', message: 'not started in time' } as const;
    if (await closeAttempt(parts, refOf(task), attempt, completion, { send_start: true }))
      parts.engine.wake('task.start');
    parts.throttle.promoteSoon();
    return 'done';
  }
  const failed = failure('timeout', 'The model did not finish in time.');
  const preconditions = { attempt, started_at: started_at ?? undefined };
  const upstream = stopped === 'stopped' ? freeOfCharge(parts.catalog.current.settings) : undefined;
  return end(parts, task, { ...failed, upstream, counts: 'if started', attempt: 'failed' }, preconditions);
}

/** The upstream took the run and dropped it before its start, as far as we have seen: the next route may have it. */
async function dropped(parts: PollParts, { task, attempt }: Accepted, error: NotStarted): Promise<'done'> {
  if (isFull(error)) await noteFullRoute(parts, attempt, error);
  else if (!error.simulated) await parts.health.noteFailure(attempt.route, task.account_id, troubleOf(error));
  await failpoint('task.dropped');
  if (task.started_at !== null) {
    const task_completion = failure('upstream_error', 'The model provider could not finish the run.');
    return end(
      parts,
      task,
      { ...task_completion, reason: error.message, counts: true, attempt: 'failed' },
      { attempt },
    );
  }
  if (await closeAttempt(parts, refOf(task), attempt, refusalOf(error), { send_start: true }))
    parts.engine.wake('task.start');
  parts.throttle.promoteSoon();
  return 'done';
}

/** A mistake in the configuration may be mended: the run is given up only when its time is over. */
async function withoutProvider(parts: PollParts, accepted: Accepted): Promise<Outcome> {
  const { task, attempt, route } = accepted;
  if (!isLateNow(accepted, task.started_at, parts.clock.now())) return { again_after_ms: route.poll.max_ms };
  const completion = failure('internal_error', 'The model was taken out of service before the task could finish.');
  const reason = `the provider ${attempt.provider} is not configured any more`;
  return end(parts, task, { ...completion, reason, counts: false, attempt: 'abandoned' }, { attempt });
}

/** The sweep or the operator ended the task; its run may still go on, and cost. */
async function stopAbandoned(parts: PollParts, task: Task): Promise<'done'> {
  for (const attempt of await listAbandoned(parts.db, refOf(task))) {
    const stopped = (await stopAttempt(parts, task, attempt)) === 'stopped';
    await failpoint('task.abandoned');
    if (stopped) await setStopped(parts, refOf(task), attempt);
    else parts.log.error({ task_id: task.id, run_ref: attempt.run_ref }, 'an upstream run goes on without its task');
  }
  return 'done';
}
