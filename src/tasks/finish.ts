import type { Db } from '../db/database.ts';
import type { Engine } from '../queue/queue.ts';
import type { Notifier } from '../db/notify.ts';
import { removeAll } from '../storage/remove-all.ts';
import type { Storage } from '../storage/storage.ts';
import { chargeAmount, measuredCost, type Units } from '../catalog/price.ts';
import { failpoint } from '../lib/failpoint.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { exact } from '../money/money.ts';
import { lockedBy } from '../money/locked.ts';
import { useRecord, type UpstreamCharge } from '../money/upstream.ts';
import type { UpstreamCost } from '../providers/provider.ts';
import { inSpan } from '../tracing/tracer.ts';
import { withoutWords } from '../lib/without-words.ts';
import { newId } from '../lib/ids.ts';
import { newDelivery } from '../webhooks/delivery.ts';
import type { AttemptClaim } from './attempts.ts';
import { dropInputs, type InputParts } from './inputs.ts';
import { linkOutputs, type LinkParts } from './outputs.ts';
import {
  loadTask,
  refOf,
  renderTask,
  tidyText,
  type AttemptState,
  type StoredFile,
  type Task,
  type TaskErrorType,
  type TaskRef,
} from './task.ts';
import type { Throttle } from './throttled.ts';
import { makeBatcher, type Batcher } from '../db/batcher.ts';
import { recordText } from '../db/record.ts';
import { retryWhileUnavailable } from '../db/retry-while-unavailable.ts';

/** The parts of the app that ending a task takes. */
export type FinishParts = InputParts &
  LinkParts & {
    readonly db: Db;
    readonly engine: Engine;
    readonly notifier: Notifier;
    readonly storage: Storage;
    readonly finisher: Finisher;
    readonly throttle: Throttle;
    readonly metrics: Metrics;
  };

/** The end of a task. Nothing else may end one. */
export type Completion =
  | ({ status: 'succeeded'; files: StoredFile[]; units: Units } & UpstreamSide)
  | ({
      status: 'failed';
      type: TaskErrorType;
      message: string;
      /** The run had started and then failed: it counts toward `limits.failed_per_24h`. */
      counts: boolean | 'if started';
      /** The final state of the open attempt and its reason, for operators. */
      attempt: AttemptState;
      reason: string;
      /** The upstream's own words, for operators. */
      upstream_words?: string | undefined;
    } & UpstreamSide);

/** The upstream's charge for the open attempt, and the charge as it reported it. Absent: unknown. */
type UpstreamSide = { upstream?: UpstreamCharge | undefined; upstream_cost?: UpstreamCost | undefined };

/** Preconditions of the end. Without them the task ends in whatever state it is in. */
export type Preconditions = {
  /** The open attempt that ends with the task, or that there is none. */
  attempt?: AttemptClaim | 'none' | undefined;
  /** The row as the caller knows it: spares reading it again. */
  task?: Task | undefined;
  /** Start of the run, if the row does not have it yet. */
  started_at?: Date | undefined;
};

/** `final`: somebody else was first. `taken`: the open attempt is no longer that of the preconditions. */
export type FinishOutcome = 'finished' | 'final' | 'taken';

/** Results of `end_task`. `published`: finished, and endpoints of the account are to hear of it. */
type EndOutcome = FinishOutcome | 'published' | 'changed';

/** The channel on which every node learns that a task is final; the payload is the task's id. */
export const finished_channel = 'task_finished';

/**
 * Ends a task: status, output, money and webhook in one call of the database, once. With any answer but
 * `finished` nothing happened.
 */
export async function finish(
  parts: FinishParts,
  ref: TaskRef,
  completion: Completion,
  preconditions: Preconditions = {},
): Promise<FinishOutcome> {
  let task = preconditions.task ?? (await loadTask(parts.db, ref));
  for (;;) {
    if (!task || task.completed_at) return 'final';
    await failpoint('task.finishing');
    const outcome = await tryFinish(parts, task, completion, preconditions);
    if (outcome === 'changed') {
      task = await loadTask(parts.db, ref);
      continue;
    }
    if (outcome === 'finished' || outcome === 'published') {
      await failpoint('task.finished');
      parts.notifier.notify(finished_channel, task.id);
      parts.throttle.promoteSoon();
      if (task.webhook_url !== null || outcome === 'published') parts.engine.wake('delivery.send');
      logCompletion(parts, task, completion);
      countEnd(parts, task, completion, preconditions);
      if (completion.status === 'failed') await removeStored(parts, ref);
      await dropInputs(parts, task.model, ref);
      return 'finished';
    }
    return outcome;
  }
}

/** A worker may have copied files before the task failed; what cannot be removed goes with its row. */
async function removeStored(parts: FinishParts, ref: TaskRef): Promise<void> {
  try {
    await removeAll(parts.storage, ref.account_id, ref.task_id);
  } catch (error) {
    parts.log.warn({ ...ref, err: error }, 'files of a failed task could not be removed');
  }
}

async function tryFinish(
  parts: FinishParts,
  task: Task,
  completion: Completion,
  preconditions: Preconditions,
): Promise<EndOutcome> {
  const completed_at = new Date(parts.clock.now());
  const started_at = task.started_at ?? preconditions.started_at ?? null;
  const succeeded = completion.status === 'succeeded';
  const cost = succeeded ? chargeAmount(task.pricing, completion.units, task.held_units) : 0n;
  const error_message = succeeded ? null : tidyText(completion.message);
  const body = renderTask({
    ...task,
    status: completion.status,
    output: succeeded ? linkOutputs(parts, completion.files, completed_at) : [],
    cost,
    error_type: succeeded ? null : completion.type,
    error_message,
    started_at,
    completed_at,
  });
  const end = {
    account_id: task.account_id,
    id: task.id,
    claim: preconditions.attempt === 'none' ? '' : (preconditions.attempt?.claim ?? null),
    seen_started_at: task.started_at,
    started_at,
    status: completion.status,
    cost,
    error_message,
    ...(succeeded ? endOfSuccess(task, completion) : endOfFailure(completion, started_at !== null)),
    upstream: useRecord(completion.upstream),
    upstream_cost: costText(completion),
    delivery: task.webhook_url === null ? null : newDelivery(task, task.webhook_url, completed_at.getTime()),
    event_id: newId('evt', completed_at.getTime()),
  };
  const values = [completed_at, recordText(end), body];
  const write = () => retryWhileUnavailable(() => parts.finisher({ account_id: task.account_id, values }));
  return inSpan({ name: 'end task', attributes: { 'medley.status': completion.status } }, write);
}

function endOfSuccess(task: Task, { units, files }: Completion & { status: 'succeeded' }) {
  const measured = measuredCost(task.pricing, units, task.held_units);
  return { measured, units, files, counts_as_failure: false, attempt_state: 'done' };
}

function endOfFailure(
  { type, counts, attempt, reason, upstream_words }: Completion & { status: 'failed' },
  has_started: boolean,
) {
  return {
    error_type: type,
    files: [],
    counts_as_failure: counts === 'if started' ? has_started : counts,
    attempt_state: attempt,
    attempt_reason: tidyText(reason),
    attempt_message: upstream_words === undefined ? null : tidyText(upstream_words),
  };
}

type Finish = { account_id: string; values: readonly unknown[] };

/** Writes the ends of tasks. */
export type Finisher = Batcher<Finish, EndOutcome>;

/** Each has a connection. */
const finishes_max = 6;

/** Writes each end by itself: those of an account whose balance somebody else has locked take no connection. */
export function makeFinisher(db: Db): Finisher {
  return makeBatcher<Finish, EndOutcome>({
    together: (finishes) => Promise.all(finishes.map(({ values }) => callFinish(db, values))),
    groups: lockedBy(db, ({ account_id }: Finish) => account_id),
    batch_max: 1,
    slow_ms: 0,
    calls_max: finishes_max,
  });
}

async function callFinish(db: Db, values: readonly unknown[]): Promise<EndOutcome> {
  const rows = await db.query<{ outcome: EndOutcome }>(finish_statement, values, 'brief');
  const outcome = rows[0]?.outcome;
  if (outcome === undefined) throw new Error('end_task answered nothing');
  return outcome;
}

const finish_statement = 'select end_task($1, $2, $3) as outcome';

/** For the operator's eyes: as the upstream said it, else as its cost rows come to. */
function costText({ upstream, upstream_cost }: UpstreamSide): string | null {
  if (upstream_cost) return tidyText(`${upstream_cost.amount} ${upstream_cost.currency}`);
  if (!upstream || upstream.basis === 'unknown') return null;
  return `${exact(upstream.base)} ${upstream.currency}`;
}

/** Adds an ended task to what this process counts. */
function countEnd(
  { metrics, clock }: Pick<FinishParts, 'metrics' | 'clock'>,
  task: Task,
  completion: Completion,
  preconditions: Preconditions,
): void {
  const { model } = task;
  const { status } = completion;
  const started_at = task.started_at ?? preconditions.started_at;
  const since = (from: Date, to_ms: number) => Math.max(0, (to_ms - from.getTime()) / 1000);
  metrics.tasks_ended.add({ model, status, error: completion.status === 'failed' ? completion.type : '' });
  metrics.task_seconds.observe({ model, status }, since(task.created_at, clock.now()));
  if (started_at) metrics.task_wait_seconds.observe({ model }, since(task.created_at, started_at.getTime()));
  if (completion.status === 'failed') return;
  const cost = chargeAmount(task.pricing, completion.units, task.held_units);
  metrics.spend.add({ model, currency: task.currency }, Number(cost) / 1e6);
}

function logCompletion(parts: FinishParts, task: Task, completion: Completion): void {
  const facts = { ...refOf(task), model: task.model, status: completion.status };
  if (completion.status === 'failed') {
    return void parts.log.info(
      { ...facts, error: completion.type, reason: completion.reason && withoutWords(completion.reason) },
      'task failed',
    );
  }
  parts.log.debug(facts, 'task finished');
  const loss = measuredCost(task.pricing, completion.units, task.held_units) - task.estimate;
  if (loss <= 0n) return;
  const money = { loss: exact(loss), currency: task.currency, units: completion.units, held_units: task.held_units };
  parts.log.error({ ...facts, ...money }, 'an output is worth more than was held: the difference is lost');
}
