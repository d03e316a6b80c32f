import type { RouteHealth } from '../routing/health.ts';
import type { CostRow } from '../catalog/model.ts';
import type { Units } from '../catalog/price.ts';
import { upstreamCharge } from '../catalog/upstream-cost.ts';
import type { RunState, UpstreamCost } from '../providers/provider.ts';
import type { AttemptClaim } from './attempts.ts';
import { removeStrays, type TaskFileParts } from './files.ts';
import { finish, type Completion, type FinishParts, type Preconditions } from './finish.ts';
import { storeOutputs, type Origin, type OutputParts } from './outputs.ts';
import { failpoint } from '../lib/failpoint.ts';
import { attempts_max } from './run.ts';
import { inSpan, type Tracer } from '../tracing/tracer.ts';
import { unitsOfRun } from './run-files.ts';
import { refOf, type Task, type TaskRef } from './task.ts';

/** The parts of the app that settling a run takes. */
export type EndingParts = FinishParts &
  OutputParts &
  TaskFileParts & {
    readonly health: RouteHealth;
    readonly tracer: Tracer | undefined;
  };

type Failure = Extract<Completion, { status: 'failed' }>;

/** A failure as the caller is told of it; the operator's reason is the same unless there is another. */
export function failure(
  type: Failure['type'],
  message: string,
): Pick<Failure, 'status' | 'type' | 'message' | 'reason'> {
  return { status: 'failed', type, message, reason: message };
}

/** Ends a task of which this worker knows the row and what became of its attempt. */
export async function end(
  parts: EndingParts,
  task: Task,
  completion: Completion,
  preconditions: Preconditions,
): Promise<'done'> {
  await finish(parts, refOf(task), completion, { task, ...preconditions });
  return 'done';
}

/**
 * A run is over: its files are kept and measured and the task succeeds, or it fails. Else nothing is
 * decided, since the run is paid: `unstored` if our storage failed, `unfetched` if a result link did.
 */
export async function settleRun(
  parts: EndingParts,
  task: Task,
  attempt: AttemptClaim & Origin & { cost: readonly CostRow[] },
  state: RunState & { phase: 'done' | 'failed' },
  started_at: Date | undefined,
): Promise<'done' | 'unstored' | 'unfetched'> {
  const preconditions = { attempt, started_at };
  if (state.phase === 'failed') {
    const completion = { ...failure(state.type, state.message), ...costOf(parts, task, attempt, state.upstream_cost) };
    const { upstream_words } = state;
    return end(parts, task, { ...completion, upstream_words, counts: true, attempt: 'failed' }, preconditions);
  }
  let outputs;
  try {
    outputs = await inSpan({ name: 'store outputs' }, () => storeOutputs(parts, task, state.files, attempt));
  } catch (error) {
    parts.log.error({ task_id: task.id, err: error }, 'output could not be stored, will try again');
    return 'unstored';
  }
  if (outputs.state !== 'stored') {
    const { problem } = outputs;
    parts.log.warn({ task_id: task.id, problem }, `${outputs.state} output`);
    if (outputs.state === 'unfetched') return 'unfetched';
    const cost = costOf(parts, task, attempt, state.upstream_cost);
    const failed = { ...failure('upstream_error', 'The model returned no usable output.'), ...cost };
    return end(parts, task, { ...failed, reason: problem, counts: true, attempt: 'failed' }, preconditions);
  }
  const { files } = outputs;
  const units = unitsOfRun(state.units, task.pricing, files);
  await failpoint('task.stored');
  const succeeded: Completion = {
    status: 'succeeded',
    files,
    units,
    ...costOf(parts, task, attempt, state.upstream_cost, units),
  };
  const finished = await finish(parts, refOf(task), succeeded, { task, ...preconditions });
  if (finished === 'final') await removeStrays(parts, refOf(task));
  return 'done';
}

/** Returns the upstream's charge: as reported; else by the route's cost rows, if there are measured units. */
function costOf(
  parts: EndingParts,
  task: Task,
  { cost }: { cost: readonly CostRow[] },
  reported: UpstreamCost | undefined,
  units?: Units,
) {
  const { pricing, held_units } = task;
  const cost_facts = { reported, rows: cost, units, held_units, rate: pricing.rate };
  const upstream = upstreamCharge(parts.catalog.current.settings, cost_facts);
  if (reported && upstream.basis === 'unknown') {
    parts.log.error(
      { task_id: task.id, reported },
      'what the upstream says that it charges is no amount: its cost is unknown',
    );
  }
  return { upstream, upstream_cost: reported };
}

/** The run is over, and its result link has given nothing until there was no time left. */
export async function outOfReach(
  parts: EndingParts,
  task: Task,
  attempt: AttemptClaim & { route: string },
  started_at: Date,
) {
  await parts.health.noteFailure(attempt.route, task.account_id, { cause: 'upstream_error' });
  const completion = failure('upstream_error', 'The model finished, but its output could not be fetched.');
  return end(parts, task, { ...completion, counts: true, attempt: 'failed' }, { attempt, started_at });
}

/** Every route stayed full for as long as the task may wait for its start. */
export async function giveUpWaiting(parts: FinishParts, ref: TaskRef): Promise<'done'> {
  const completion = failure('timeout', 'No model provider had room for the task in time; it costs nothing.');
  const ending = { ...completion, reason: 'every route was full', counts: false, attempt: 'not_started' } as const;
  await finish(parts, ref, ending, { attempt: 'none' });
  return 'done';
}

/** The job was lost or failed so often that the next time would be no better. */
export function giveUp(parts: EndingParts, task: Task): Promise<'done'> {
  const completion = failure('internal_error', 'The service could not finish the task; it costs nothing.');
  const reason = `given up after ${attempts_max} tries`;
  return end(parts, task, { ...completion, reason, counts: false, attempt: 'failed' }, {});
}
