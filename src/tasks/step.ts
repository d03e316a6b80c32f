import type { App } from '../app.ts';
import type { Model, Route } from '../catalog/model.ts';
import { mapInput } from '../catalog/input.ts';
import type { Job, Outcome } from '../engine/engine.ts';
import type { Json, Provider, RunRequest, RunState } from '../providers/provider.ts';
import { failpoint } from '../lib/failpoint.ts';
import { InputRefused, NotStarted } from '../providers/provider.ts';
import { routeName } from '../routing/health.ts';
import { acceptAttempt, closeAttempt, openAttempt } from './attempts.ts';
import { finish, type Ending } from './finish.ts';
import { storeOutputs } from './outputs.ts';
import { listAttempts, loadTask, readRef, refOf, type Attempt, type Task, type TaskRef } from './task.ts';

/** A job that its worker lost, or that failed, this often is given up: the task fails, refunded. */
const tries_max = 10;

const storage_pause_ms = 2_000;
const poll_timeout_ms = 15_000;

/**
 * The job `task.start`: tries the routes in order until one takes the run. Each try is written down
 * before the upstream is called, so that a crash leaves an open attempt and never a blind repeat.
 */
export async function startTask(app: App, job: Job): Promise<Outcome> {
  const ref = readRef(job.data);
  const task = await loadTask(app.db, ref);
  if (!task || task.completed_at) return 'done';
  if (job.attempt >= tries_max) return giveUp(app, ref);
  const attempts = await listAttempts(app.db, ref);
  const open = attempts.find((attempt) => attempt.ended_at === null);
  if (open?.state === 'accepted') return 'done'; // its poll job was sent in the same transaction
  const model = app.catalog.current.models.get(task.model);
  if (!model) return routeGone(app, ref);
  if (open) {
    const resumed = await resume(app, task, model, open, job.signal);
    if (resumed !== 'next') return resumed;
  }
  const tried = new Set(attempts.map((attempt) => attempt.route));
  const untried = model.routes.map((route) => routeName(model.id, route.id)).filter((name) => !tried.has(name));
  let number = attempts.length;
  for (const name of untried.length > 0 ? await app.health.order(untried) : []) {
    const route = model.routes.find((candidate) => routeName(model.id, candidate.id) === name);
    if (!route) continue;
    number += 1;
    if (!(await openAttempt(app, ref, { number, route: name, provider: route.provider }))) return 'done';
    const result = await submit(app, task, model, route, number, job.signal);
    if (result !== 'next') return result;
  }
  return noRouteLeft(app, ref);
}

/** A worker died, or was stopped, between writing the attempt down and its outcome. */
async function resume(
  app: App,
  task: Task,
  model: Model,
  open: Attempt,
  signal: AbortSignal,
): Promise<Outcome | 'next'> {
  const route = model.routes.find((candidate) => routeName(model.id, candidate.id) === open.route);
  const provider = route && app.providers.get(route.provider);
  if (route && provider?.idempotent) return submit(app, task, model, route, open.number, signal);
  return ambiguous(app, task, route, open.number, 'the worker died while submitting');
}

/** Calls the upstream once and acts on what it says. `next`: not started there, try another route. */
async function submit(
  app: App,
  task: Task,
  model: Model,
  route: Route,
  number: number,
  stopped: AbortSignal,
): Promise<Outcome | 'next'> {
  const name = routeName(model.id, route.id);
  const provider = app.providers.get(route.provider);
  if (!provider)
    return notStarted(app, task, number, name, new NotStarted('unavailable', 'the provider is not configured'));
  const run = runRequest(app, task, route);
  const time_limit = AbortSignal.timeout(route.timeout_ms.start);
  // A submit that cannot be repeated is not broken off by our own stop: its answer would be lost.
  const signal = provider.idempotent ? AbortSignal.any([stopped, time_limit]) : time_limit;
  const submitted_at = new Date(app.clock.now());
  let state: RunState;
  await failpoint('task.opened');
  try {
    state = await provider.start(run, signal);
  } catch (error) {
    if (error instanceof NotStarted) return notStarted(app, task, number, name, error);
    if (error instanceof InputRefused) {
      return end(app, task, { ...failure(error.type, error.message), counts: false, attempt: 'not_started' });
    }
    if (stopped.aborted && provider.idempotent) throw error; // given back: the next worker submits again
    await app.health.failed(name, { cause: isTimeout(error) ? 'timeout' : 'upstream_error' });
    return ambiguous(app, task, route, number, String(error));
  }
  await failpoint('task.submitted');
  await app.health.succeeded(name);
  if (state.phase === 'done' || state.phase === 'failed') return settle(app, task, state, submitted_at);
  const accepted = await acceptAttempt(app, refOf(task), number, state, { poll_after_ms: state.poll_after_ms });
  await failpoint('task.accepted');
  if (accepted) app.engine.wake('task.poll', state.poll_after_ms);
  else await stopOrphan(app, provider, run, state.ref);
  return 'done';
}

/** The job `task.poll`: asks the upstream how the run is going, at the adapter's pace. */
export async function pollTask(app: App, job: Job): Promise<Outcome> {
  const ref = readRef(job.data);
  const task = await loadTask(app.db, ref);
  if (!task || task.completed_at) return 'done';
  if (job.attempt >= tries_max) return giveUp(app, ref);
  const attempt = (await listAttempts(app.db, ref)).find((candidate) => candidate.state === 'accepted');
  if (!attempt || attempt.run_ref === null) return 'done';
  const run_ref: Json = JSON.parse(attempt.run_ref);
  const model = app.catalog.current.models.get(task.model);
  const route = model?.routes.find((candidate) => routeName(task.model, candidate.id) === attempt.route);
  const provider = route && app.providers.get(route.provider);
  if (!route || !provider) return routeGone(app, ref);
  const run = runRequest(app, task, route);
  const now_ms = app.clock.now();
  const late = overdue(task, attempt, route, now_ms);
  let state: RunState;
  try {
    state = await provider.poll(run, run_ref, AbortSignal.any([job.signal, AbortSignal.timeout(poll_timeout_ms)]));
  } catch (error) {
    if (late) return expire(app, task, attempt, route, provider, run, late);
    app.log.debug({ task_id: task.id, error: String(error) }, 'poll failed, will ask again');
    return { again_after_ms: route.poll.max_ms };
  }
  const started_at = state.phase === 'waiting' ? undefined : new Date(now_ms);
  if (state.phase === 'done' || state.phase === 'failed') return settle(app, task, state, started_at);
  if (late) return expire(app, task, attempt, route, provider, run, late);
  const news = JSON.stringify(state.ref) !== attempt.run_ref || (state.phase === 'running' && task.started_at === null);
  if (news && !(await acceptAttempt(app, ref, attempt.number, state))) return 'done';
  return { again_after_ms: state.poll_after_ms };
}

/** Which limit of the route a run has passed: it did not start in time, or did not end in time. */
function overdue(task: Task, attempt: Attempt, route: Route, now_ms: number): 'start' | 'total' | undefined {
  const age_ms = now_ms - attempt.created_at.getTime();
  if (age_ms >= route.timeout_ms.total) return 'total';
  if (task.started_at === null && age_ms >= route.timeout_ms.start) return 'start';
  return undefined;
}

/** A run that is too late is stopped upstream; one that never started may go to the next route. */
async function expire(
  app: App,
  task: Task,
  attempt: Attempt,
  route: Route,
  provider: Provider,
  run: RunRequest,
  late: 'start' | 'total',
): Promise<Outcome> {
  const stopped = await stopRun(app, provider, run, JSON.parse(attempt.run_ref ?? 'null'));
  const name = routeName(task.model, route.id);
  await app.health.failed(name, { cause: 'timeout' });
  if (late === 'start' && stopped === 'stopped') {
    const reason = { state: 'not_started', reason: 'timeout', message: 'not started in time' } as const;
    const closed = await closeAttempt(app, refOf(task), attempt.number, reason, { send_start: true });
    if (closed) app.engine.wake('task.start');
    return 'done';
  }
  const started = task.started_at !== null;
  return end(app, task, {
    ...failure('timeout', 'The model did not finish in time.'),
    counts: started,
    attempt: 'failed',
  });
}

/** A run is over: its files are kept and measured and the task succeeds, or it fails. */
async function settle(
  app: App,
  task: Task,
  state: RunState & { phase: 'done' | 'failed' },
  started_at: Date | undefined,
): Promise<Outcome> {
  if (state.phase === 'failed') {
    return end(app, task, { ...failure(state.type, state.message), counts: true, attempt: 'failed' }, started_at);
  }
  let outputs;
  try {
    outputs = await storeOutputs(app, task, state.files);
  } catch (error) {
    // Ours, not the upstream's: the run is paid, so it is asked for its result again, until the deadline.
    app.log.error({ task_id: task.id, error: String(error) }, 'output could not be stored, will try again');
    return { again_after_ms: storage_pause_ms };
  }
  if (!outputs.ok) {
    app.log.warn({ task_id: task.id, problem: outputs.problem }, 'unusable output');
    const message = 'The model returned no usable output.';
    return end(
      app,
      task,
      { ...failure('upstream_error', message), reason: outputs.problem, counts: true, attempt: 'failed' },
      started_at,
    );
  }
  const { files, units } = outputs;
  await failpoint('task.stored');
  await finish(app, refOf(task), { status: 'succeeded', files, units, upstream_cost: state.upstream_cost }, started_at);
  return 'done';
}

async function notStarted(
  app: App,
  task: Task,
  number: number,
  name: string,
  error: NotStarted,
): Promise<'next' | 'done'> {
  if (!error.simulated) {
    const pause_ms = error.reason === 'rejected_credentials' ? 60_000 : error.retry_after_ms;
    await app.health.failed(name, {
      cause: error.reason === 'timeout' ? 'timeout' : 'upstream_error',
      ...(pause_ms !== undefined && { pause_ms }),
    });
  }
  const closed = await closeAttempt(app, refOf(task), number, {
    state: 'not_started',
    reason: error.reason,
    message: error.message,
  });
  return closed ? 'next' : 'done';
}

/** Nobody knows whether the upstream took the run: never repeated there, the operator decides. */
async function ambiguous(
  app: App,
  task: Task,
  route: Route | undefined,
  number: number,
  detail: string,
): Promise<'next' | 'done'> {
  app.log.warn({ task_id: task.id, route: route?.id, detail }, 'ambiguous submit');
  if (route?.on_ambiguous_submit === 'failover') {
    const closed = await closeAttempt(app, refOf(task), number, {
      state: 'ambiguous',
      reason: 'unknown',
      message: detail,
    });
    return closed ? 'next' : 'done';
  }
  const message =
    'It is not known whether the model provider accepted the task; it was not repeated and costs nothing.';
  return end(app, task, { ...failure('upstream_error', message), reason: detail, counts: false, attempt: 'ambiguous' });
}

function noRouteLeft(app: App, ref: TaskRef): Promise<'done'> {
  const message = 'The model could not be started on any route. Try again later.';
  return endRef(app, ref, {
    ...failure('upstream_error', message),
    reason: 'no route started',
    counts: false,
    attempt: 'not_started',
  });
}

function routeGone(app: App, ref: TaskRef): Promise<'done'> {
  const message = 'The model was taken out of service before the task could finish.';
  return endRef(app, ref, {
    ...failure('internal_error', message),
    reason: 'model, route or provider removed',
    counts: false,
    attempt: 'canceled',
  });
}

function giveUp(app: App, ref: TaskRef): Promise<'done'> {
  const message = 'The service could not finish the task; it costs nothing.';
  return endRef(app, ref, {
    ...failure('internal_error', message),
    reason: `given up after ${tries_max} tries`,
    counts: false,
    attempt: 'failed',
  });
}

type Failure = Extract<Ending, { status: 'failed' }>;

function failure(type: Failure['type'], message: string): Pick<Failure, 'status' | 'type' | 'message' | 'reason'> {
  return { status: 'failed', type, message, reason: message };
}

function end(app: App, task: Task, ending: Ending, started_at?: Date): Promise<'done'> {
  return endRef(app, refOf(task), ending, started_at);
}

async function endRef(app: App, ref: TaskRef, ending: Ending, started_at?: Date): Promise<'done'> {
  await finish(app, ref, ending, started_at);
  return 'done';
}

/** What the adapter is told: the caller's input in the upstream's names. */
export function runRequest(app: App, task: Task, route: Route): RunRequest {
  return {
    task_id: task.id,
    kind: task.kind,
    model: route.upstream_model,
    input: mapInput(route, JSON.parse(task.input)),
    options: route.options,
    now_ms: app.clock.now(),
  };
}

/** Asks the upstream to stop a run; `billed` if it cannot, or does not say that it did. */
export async function stopRun(app: App, provider: Provider, run: RunRequest, ref: Json): Promise<'stopped' | 'billed'> {
  if (!provider.cancel) return 'billed';
  try {
    return await provider.cancel(run, ref, AbortSignal.timeout(poll_timeout_ms));
  } catch (error) {
    app.log.warn({ task_id: run.task_id, error: String(error) }, 'upstream did not confirm the cancel');
    return 'billed';
  }
}

/** The task was ended while its submit was under way: the run that came of it is nobody's. */
async function stopOrphan(app: App, provider: Provider, run: RunRequest, ref: Json): Promise<void> {
  const stopped = await stopRun(app, provider, run, ref);
  if (stopped === 'billed') app.log.error({ task_id: run.task_id, ref }, 'an upstream run goes on without its task');
}

function isTimeout(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'TimeoutError';
}
