import type { App } from '../app.ts';
import type { CostRow } from '../catalog/model.ts';
import type { Units } from '../catalog/price.ts';
import { upstreamCharge } from '../catalog/upstream-cost.ts';
import type { RunState, UpstreamCost } from '../providers/provider.ts';
import type { Claimed } from './attempts.ts';
import { removeStrays } from './files.ts';
import { finish, type Ending, type Grounds } from './finish.ts';
import { storeOutputs, type Origin } from './outputs.ts';
import { failpoint } from '../lib/failpoint.ts';
import { tries_max } from './run.ts';
import { unitsOfRun } from './run-files.ts';
import { refOf, type Task } from './task.ts';

type Failure = Extract<Ending, { status: 'failed' }>;

/** A failure as the caller is told of it; the operator's reason is the same unless there is another. */
export function failure(
  type: Failure['type'],
  message: string,
): Pick<Failure, 'status' | 'type' | 'message' | 'reason'> {
  return { status: 'failed', type, message, reason: message };
}

/** Ends a task of which this worker knows the row and what became of its attempt. */
export async function end(app: App, task: Task, ending: Ending, grounds: Grounds): Promise<'done'> {
  await finish(app, refOf(task), ending, { task, ...grounds });
  return 'done';
}

/**
 * A run is over: its files are kept and measured and the task succeeds, or it fails. Else nothing is
 * decided, since the run is paid: `unstored` if our storage failed, `unfetched` if a result link did.
 */
export async function settle(
  app: App,
  task: Task,
  attempt: Claimed & Origin & { cost: readonly CostRow[] },
  state: RunState & { phase: 'done' | 'failed' },
  started_at: Date | undefined,
): Promise<'done' | 'unstored' | 'unfetched'> {
  const grounds = { attempt, started_at };
  if (state.phase === 'failed') {
    const ending = { ...failure(state.type, state.message), ...costOf(app, task, attempt, state.upstream_cost) };
    return end(app, task, { ...ending, counts: true, attempt: 'failed' }, grounds);
  }
  let outputs;
  try {
    outputs = await storeOutputs(app, task, state.files, attempt);
  } catch (error) {
    app.log.error({ task_id: task.id, err: error }, 'output could not be stored, will try again');
    return 'unstored';
  }
  if (outputs.state !== 'stored') {
    const { problem } = outputs;
    app.log.warn({ task_id: task.id, problem }, `${outputs.state} output`);
    if (outputs.state === 'unfetched') return 'unfetched';
    const cost = costOf(app, task, attempt, state.upstream_cost);
    const ending = { ...failure('upstream_error', 'The model returned no usable output.'), ...cost };
    return end(app, task, { ...ending, reason: problem, counts: true, attempt: 'failed' }, grounds);
  }
  const { files } = outputs;
  const units = unitsOfRun(state.units, task.pricing, files);
  await failpoint('task.stored');
  const ending: Ending = {
    status: 'succeeded',
    files,
    units,
    ...costOf(app, task, attempt, state.upstream_cost, units),
  };
  const finished = await finish(app, refOf(task), ending, { task, ...grounds });
  if (finished === 'final') await removeStrays(app, refOf(task));
  return 'done';
}

/** Returns the upstream's charge: as reported; else by the route's cost rows, if there are measured units. */
function costOf(
  app: App,
  task: Task,
  { cost }: { cost: readonly CostRow[] },
  told: UpstreamCost | undefined,
  units?: Units,
) {
  const { pricing, held_units } = task;
  const grounds = { told, rows: cost, units, held_units, rate: pricing.rate };
  const upstream = upstreamCharge(app.catalog.current.settings, grounds);
  if (told && upstream.basis === 'unknown') {
    app.log.error(
      { task_id: task.id, told },
      'what the upstream says that it charges is no amount: its cost is unknown',
    );
  }
  return { upstream, upstream_cost: told };
}

/** The run is over, and its result link has given nothing until there was no time left. */
export async function outOfReach(app: App, task: Task, attempt: Claimed & { route: string }, started_at: Date) {
  await app.health.failed(attempt.route, task.account_id, { cause: 'upstream_error' });
  const ending = failure('upstream_error', 'The model finished, but its output could not be fetched.');
  return end(app, task, { ...ending, counts: true, attempt: 'failed' }, { attempt, started_at });
}

/** The job was lost or failed so often that the next time would be no better. */
export function giveUp(app: App, task: Task): Promise<'done'> {
  const ending = failure('internal_error', 'The service could not finish the task; it costs nothing.');
  const reason = `given up after ${tries_max} tries`;
  return end(app, task, { ...ending, reason, counts: false, attempt: 'failed' }, {});
}
