import { setTimeout as sleep } from 'node:timers/promises';
import type { Model, Route } from '../catalog/model.ts';
import { startableRoutes } from '../catalog/overrides.ts';
import { fitCosts } from '../catalog/upstream-cost.ts';
import type { Job, Outcome } from '../queue/queue.ts';
import { failpoint } from '../lib/failpoint.ts';
import { InputRefused, NotStarted, type Provider, type RunState } from '../providers/provider.ts';
import { withoutWords } from '../lib/without-words.ts';
import { routeName } from '../routing/health.ts';
import { StorageUnavailable } from '../storage/storage.ts';
import {
  acceptAttempt,
  claimAttempt,
  closeAttempt,
  loadAtWork,
  type TaskAtWork,
  openAttempt,
  routeOf,
  type AttemptClaim,
} from './attempts.ts';
import { end, failure, giveUp, giveUpWaiting, outOfReach, settleRun, type EndingParts } from './completion.ts';
import { runRequest, stopOrphan, storage_pause_ms, attempts_max, refusalOf, troubleOf, type RunParts } from './run.ts';
import { withInput, type PreparedInput, type RunMediaParts } from './run-media.ts';
import { inSpan, inTraceOf } from '../tracing/tracer.ts';
import { clientSpan, spanFacts } from './trace.ts';
import { listAttempts, loadInput, readRef, refOf, type Attempt, type Task } from './task.ts';
import { full_reason, giveUpAt, isFull, noteFullRoute, throttleTask, type FullRoute } from './throttled.ts';
import { pollDelay, runContext } from './upstream-run.ts';

/** The parts of the app that starting takes. */
type StartParts = EndingParts & RunParts & RunMediaParts;

/** One try of a route by this worker. */
type RouteAttempt = AttemptClaim & {
  name: string;
  route: Route;
  provider: Provider;
  /** By performance.now(): the time limit of the submit counts from here, stops of the process included. */
  begun_at_ms: number;
  /** By the clock, when the try was written down, perhaps by another worker. */
  opened_at_ms: number;
};

/** An answer to a submit that came at the last moment may still be on its way into the database. */
const grace_ms = 1_000;

/** A submit that may be repeated is, after this time, until the try is as old as a submit may take. */
const resubmit_after_ms = 1_000;

/** Time that a result which cannot be had again is kept while its link gives nothing, or our storage fails. */
const result_patience_ms = { unfetched: 60_000, unstored: 900_000 };
const result_pause_ms = 1_000;

/**
 * The job `task.start`: tries the routes in order until one takes the run. Each try is written down
 * before the upstream is called, so that a crash leaves an open attempt and never a blind repeat.
 */
export async function startTask(parts: StartParts, job: Job): Promise<Outcome> {
  try {
    return await start(parts, job);
  } catch (error) {
    if (!(error instanceof StorageUnavailable)) throw error;
    parts.log.error({ task: job.data, err: error }, 'a file of an input cannot be read now, will try again');
    return { again_after_ms: storage_pause_ms };
  }
}

async function start(parts: StartParts, job: Job): Promise<Outcome> {
  const at_work = await loadAtWork(parts.db, readRef(job.data));
  if (!at_work || at_work.task.completed_at) return 'done';
  const { task } = at_work;
  const options = { name: `start ${task.model}`, kind: 'consumer', attributes: spanFacts(task) } as const;
  return inTraceOf(parts.tracer, task, options, () => goOn(parts, at_work, job));
}

async function goOn(parts: StartParts, { task, open }: TaskAtWork, job: Job): Promise<Outcome> {
  if (open?.state === 'accepted') return 'done'; // its poll job was sent in the same transaction
  if (job.attempt >= attempts_max) return giveUp(parts, task);
  if (open) {
    const resumed = await resume(parts, task, open, job.signal);
    if (resumed !== 'next' && resumed !== 'full') return resumed;
  }
  const { models, retired } = parts.catalog.current;
  const model = models.get(task.model) ?? retired.get(task.model);
  if (!model) return modelGone(parts, task);
  // A run whose result cannot be kept is better not begun: some upstreams give it only once.
  if (!(await parts.storage.ready())) return { again_after_ms: storage_pause_ms };
  return tryRoutes(parts, task, model, job.signal);
}

async function tryRoutes(parts: StartParts, task: Task, model: Model, stopped: AbortSignal): Promise<Outcome> {
  const ref = refOf(task);
  const attempts = await listAttempts(parts.db, ref);
  const refused = attempts.filter(({ reason }) => reason !== full_reason); // where it was full there may be room by now
  const tried = new Set(refused.map((attempt) => attempt.route));
  const routes = new Map(startableRoutes(model).map((route) => [routeName(model.id, route.id), route]));
  const untried = [...routes.keys()].filter((name) => !tried.has(name));
  const input = await loadInput(parts.db, ref);
  const full: FullRoute[] = [];
  let number = attempts.length;
  for (const name of await parts.health.healthyFirst(untried, task.account_id)) {
    const offered = routes.get(name);
    const provider = offered && parts.providers.get(offered.provider);
    if (!provider) continue; // taken away since the catalogue was read
    const route = { ...offered, cost: fitCosts(offered.cost, () => JSON.parse(input)) };
    const attempt = { number: number + 1, name, route };
    const result = await withInput(parts, task, input, { route, provider, stopped }, async (prepared) => {
      const begun = { begun_at_ms: performance.now(), opened_at_ms: parts.clock.now() };
      const claimed = await openAttempt(parts, ref, attempt, parts.catalog.current.providers.get(route.provider));
      if (!claimed) return 'done';
      if (claimed === 'full' && prepared instanceof InputRefused)
        return inputRefused(parts, task, name, prepared, 'none');
      if (claimed === 'full') return 'full';
      number = attempt.number;
      return submit(parts, task, { ...attempt, ...claimed, ...begun, provider }, prepared, stopped);
    });
    if (result === 'full') full.push({ route: name, provider: route.provider });
    else if (result !== 'next') return result;
  }
  return full.length === 0 ? noRouteLeft(parts, task) : waitForRoom(parts, task, model, full);
}

/** Every route that is left is full: the task stays queued, without a job, as long as it may wait for its start. */
async function waitForRoom(parts: StartParts, task: Task, model: Model, full: readonly FullRoute[]): Promise<'done'> {
  const give_up_at = giveUpAt(model, task.created_at);
  if (give_up_at.getTime() <= parts.clock.now()) return giveUpWaiting(parts, refOf(task));
  if (await throttleTask(parts.db, refOf(task), full, give_up_at)) parts.throttle.promoteSoon();
  return 'done';
}

/**
 * Another worker wrote the try down, and died, or was stopped and may go on. Where a repeated submit
 * is the same run, it is repeated; else that worker has until the submit's time limit to tell more.
 */
async function resume(
  parts: StartParts,
  task: Task,
  open: Attempt,
  stopped: AbortSignal,
): Promise<Outcome | NextRoute> {
  const ref = refOf(task);
  const route = routeOf(open);
  const provider = parts.providers.get(open.provider);
  const left_ms = open.created_at.getTime() + route.timeout_ms.start + grace_ms - parts.clock.now();
  if (!provider?.idempotent && left_ms > 0) return { again_after_ms: Math.min(left_ms, route.timeout_ms.start) };
  const begun_at_ms = performance.now();
  const claimed = await claimAttempt(parts, ref, open);
  if (!claimed) return 'done'; // that worker has told more, or a third one took over
  await failpoint('task.claimed');
  const attempt = { ...claimed, name: open.route, route, begun_at_ms, opened_at_ms: open.created_at.getTime() };
  if (!provider?.idempotent) return ambiguous(parts, task, attempt, 'the worker was lost while submitting');
  return withInput(parts, task, await loadInput(parts.db, ref), { route, provider, stopped }, (prepared) =>
    submit(parts, task, { ...attempt, provider }, prepared, stopped),
  );
}

/** Not started there: another route is tried. `full`: and this one again later. */
type NextRoute = 'next' | 'full';

/** Calls the upstream once and acts on what it says. */
async function submit(
  parts: StartParts,
  task: Task,
  attempt: RouteAttempt,
  input: PreparedInput,
  stopped: AbortSignal,
): Promise<Outcome | NextRoute> {
  const { name, route, provider } = attempt;
  await failpoint('task.opened');
  if (input instanceof Error) return submitFailed(parts, task, attempt, input, stopped);
  const run = runRequest(parts, task, attempt, input);
  const left_ms = route.timeout_ms.start - (performance.now() - attempt.begun_at_ms);
  // Beyond the limit others hold the try for lost: a process that was stopped must not submit now.
  if (left_ms <= 0)
    return notStarted(parts, task, attempt, new NotStarted('timeout', 'this worker was held up', our_own));
  const time_limit = AbortSignal.timeout(Math.ceil(left_ms));
  // A submit that cannot be repeated is not broken off by our own stop: its answer would be lost.
  const signal = provider.idempotent ? AbortSignal.any([stopped, time_limit]) : time_limit;
  const submitted_at = new Date(parts.clock.now());
  let state: RunState;
  try {
    state = await inSpan(clientSpan('submit', task, { route: name, provider: route.provider }), () =>
      provider.start(run, signal),
    );
  } catch (error) {
    return submitFailed(parts, task, attempt, error, stopped);
  }
  await failpoint('task.submitted');
  parts.metrics.route_attempts.add({ route: name, outcome: 'answered' });
  await parts.health.noteSuccess(name, task.account_id);
  if (state.phase === 'done' || state.phase === 'failed') {
    return settleAtOnce(parts, task, attempt, { state, submitted_at, stopped });
  }
  return accept(parts, task, attempt, state);
}

/** For a NotStarted that is our own fault: health does not count it. */
const our_own = { simulated: true };

async function submitFailed(
  parts: StartParts,
  task: Task,
  attempt: RouteAttempt,
  error: unknown,
  stopped: AbortSignal,
): Promise<Outcome | NextRoute> {
  if (error instanceof NotStarted) return notStarted(parts, task, attempt, error);
  if (error instanceof InputRefused) return inputRefused(parts, task, attempt.name, error, attempt);
  const { idempotent = false } = attempt.provider;
  if (stopped.aborted && idempotent) throw error; // given back: the next worker submits again
  await parts.health.noteFailure(attempt.name, task.account_id, {
    cause: isTimeout(error) ? 'timeout' : 'upstream_error',
  });
  const in_time = parts.clock.now() - attempt.opened_at_ms + resubmit_after_ms < attempt.route.timeout_ms.start;
  if (idempotent && in_time) return { again_after_ms: resubmit_after_ms };
  return ambiguous(parts, task, attempt, String(error));
}

/** No route would take such an input, so that the task does not wait for room anywhere. */
async function inputRefused(
  parts: StartParts,
  task: Task,
  route: string,
  error: InputRefused,
  attempt: AttemptClaim | 'none',
): Promise<'done'> {
  await parts.health.releaseProbe(route, task.account_id);
  const completion = failure(error.type, error.message);
  return end(parts, task, { ...completion, counts: false, attempt: 'not_started' }, { attempt });
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}

/** The upstream has the run and goes on with it. */
async function accept(
  parts: StartParts,
  task: Task,
  attempt: RouteAttempt,
  state: RunState & { phase: 'waiting' | 'running' },
): Promise<'done'> {
  const { route, provider } = attempt;
  const ref = refOf(task);
  const poll_after_ms = pollDelay(route, state.poll_after_ms);
  const accepted = await acceptAttempt(parts, ref, { ...attempt, seen_ref: null }, state, poll_after_ms);
  await failpoint('task.accepted');
  if (accepted) {
    parts.engine.wake('task.poll', poll_after_ms);
    return 'done';
  }
  const now = await loadAtWork(parts.db, ref);
  const same_run = provider.idempotent === true && now?.open?.number === attempt.number;
  if (!same_run) await stopOrphan(parts, provider, runContext(task, route, parts.clock.now()), state.ref, attempt);
  return 'done';
}

type EndedState = RunState & { phase: 'done' | 'failed' };

/** The upstream answered with the result itself: nobody else has it, and mostly it is given only once. */
async function settleAtOnce(
  parts: StartParts,
  task: Task,
  attempt: RouteAttempt,
  { state, submitted_at, stopped }: { state: EndedState; submitted_at: Date; stopped: AbortSignal },
): Promise<Outcome> {
  const begun_at_ms = performance.now();
  for (let pause_ms = result_pause_ms; ; pause_ms = Math.min(2 * pause_ms, storage_pause_ms)) {
    const files_from = { ...attempt, provider: attempt.route.provider, cost: attempt.route.cost, stopped };
    const settled = await settleRun(parts, task, files_from, state, submitted_at);
    if (settled === 'done') return 'done';
    if (attempt.provider.idempotent && (settled === 'unstored' || stopped.aborted))
      return { again_after_ms: storage_pause_ms };
    if (stopped.aborted) break;
    if (performance.now() - begun_at_ms > result_patience_ms[settled]) {
      if (settled === 'unstored') break;
      return outOfReach(parts, task, { ...attempt, route: attempt.name }, submitted_at);
    }
    await sleep(settled === 'unstored' ? pause_ms : result_pause_ms, undefined, { signal: stopped }).catch(
      () => undefined,
    );
  }
  const completion = failure('internal_error', 'The output could not be stored; it costs nothing.');
  return end(parts, task, { ...completion, counts: false, attempt: 'failed' }, { attempt });
}

async function notStarted(
  parts: StartParts,
  task: Task,
  attempt: RouteAttempt,
  error: NotStarted,
): Promise<NextRoute | 'done'> {
  await failpoint('task.refused');
  const is_full = isFull(error);
  parts.metrics.route_attempts.add({ route: attempt.name, outcome: is_full ? 'full' : 'failed' });
  if (error.simulated || is_full || error.is_not_route_fault)
    await parts.health.releaseProbe(attempt.name, task.account_id);
  else await parts.health.noteFailure(attempt.name, task.account_id, troubleOf(error));
  if (is_full) await noteFullRoute(parts, { route: attempt.name, provider: attempt.route.provider }, error);
  const closed = await closeAttempt(parts, refOf(task), attempt, refusalOf(error));
  parts.throttle.promoteSoon();
  await failpoint('task.routed');
  if (!closed) return 'done';
  return is_full ? 'full' : 'next';
}

/** Nobody knows whether the upstream took the run: never repeated there, the operator decides. */
async function ambiguous(
  parts: StartParts,
  task: Task,
  attempt: AttemptClaim & { name: string; route: Route },
  detail: string,
): Promise<'next' | 'done'> {
  parts.log.warn({ task_id: task.id, route: attempt.name, detail: withoutWords(detail) }, 'ambiguous submit');
  parts.metrics.route_attempts.add({ route: attempt.name, outcome: 'ambiguous' });
  if (attempt.route.on_ambiguous_submit === 'failover') {
    const completion = { state: 'ambiguous', reason: 'unknown', message: detail } as const;
    const closed = await closeAttempt(parts, refOf(task), attempt, completion);
    parts.throttle.promoteSoon();
    return closed ? 'next' : 'done';
  }
  const failed = failure(
    'upstream_error',
    'It is not known whether the model provider accepted the task; it was not repeated and costs nothing.',
  );
  return end(parts, task, { ...failed, reason: detail, counts: false, attempt: 'ambiguous' }, { attempt });
}

function noRouteLeft(parts: StartParts, task: Task): Promise<'done'> {
  const completion = failure('upstream_error', 'The model could not be started on any route. Try again later.');
  const preconditions = { attempt: 'none' } as const;
  return end(
    parts,
    task,
    { ...completion, reason: 'no route started', counts: false, attempt: 'not_started' },
    preconditions,
  );
}

function modelGone(parts: StartParts, task: Task): Promise<'done'> {
  const completion = failure('internal_error', 'The model was taken out of service before the task could start.');
  const preconditions = { attempt: 'none' } as const;
  return end(
    parts,
    task,
    { ...completion, reason: 'the model was removed', counts: false, attempt: 'not_started' },
    preconditions,
  );
}
