import { live_keys } from '../queue/queue.ts';
import { failpoint } from '../lib/failpoint.ts';
import { removeAll } from '../storage/remove-all.ts';
import { removeFiles, type TaskFileParts } from './files.ts';
import { giveUpWaiting } from './completion.ts';
import { finish, type FinishParts } from './finish.ts';
import type { Task, TaskRef } from './task.ts';
import { listGivenUp } from './throttled.ts';

/** The parts of the app that sweeping takes. */
export type SweepParts = FinishParts & TaskFileParts;

/** Counts of one sweep, for the log and for tests. */
export type Swept = { resent: number; expired: number; files_removed: number; tasks_removed: number };

const batch_max = 500;
const at_once = 8; // removing a file waits for the disk, not for the processor
const resend_after_ms = 5_000;
const temporary_files_ms = 3_600_000;

/** Time in which one sweep removes old rows and files, before the next one goes on. */
const removing_ms_max = 20_000;

/** The net under everything: unfinished tasks go on or end, and what is old is removed. */
export async function sweepTasks(parts: SweepParts): Promise<Swept> {
  return { ...(await rescueTasks(parts)), ...(await removeOld(parts)) };
}

/**
 * Unfinished tasks without a live job, but for those that wait for a full provider, get one again, and tasks past their deadline end. A few seconds of grace:
 * a job may have been taken while this node looks at older rows. None is needed where no worker runs.
 */
export async function rescueTasks(
  parts: SweepParts,
  grace_ms = resend_after_ms,
): Promise<Pick<Swept, 'resent' | 'expired'>> {
  return { resent: await resendJobs(parts, grace_ms), expired: await endOverdue(parts) };
}

async function resendJobs(parts: SweepParts, grace_ms: number): Promise<number> {
  const now = new Date(parts.clock.now());
  const resent = await parts.db.tx(async (tx) => {
    const rows = await tx.query<{ account_id: string; task_id: string; accepted: boolean }>(
      `select t.account_id, t.id as task_id, a.number is not null as accepted
         from tasks t left join attempts a on a.account_id = t.account_id and a.task_id = t.id and a.state = 'accepted'
        where t.completed_at is null and t.created_at < $1
          and not exists (select from ${live_keys} live where live.key = t.id)
          and not exists (select from throttled_tasks k
            where k.account_id = t.account_id and k.task_id = t.id and k.promoted_at is null) limit ${batch_max}`,
      [new Date(now.getTime() - grace_ms)],
    );
    for (const { account_id, task_id, accepted } of rows) {
      await parts.engine.send(tx, accepted ? 'task.poll' : 'task.start', { account_id, task_id }, { key: task_id });
    }
    await failpoint('sweep.resending');
    return rows.length;
  });
  if (resent > 0) {
    parts.log.warn({ resent }, 'unfinished tasks without a job: sent again');
    parts.engine.wake('task.start');
    parts.engine.wake('task.poll');
  }
  return resent;
}

/** Gives room that is free to tasks that wait for it, and ends those that have waited for too long. */
export async function serveWaiting(parts: SweepParts): Promise<void> {
  await parts.throttle.promote();
  const now = new Date(parts.clock.now());
  await eachOf(parts, await listGivenUp(parts.db, now, batch_max), async (ref) => {
    await giveUpWaiting(parts, ref);
  });
}

/**
 * Ends tasks that outlived their deadline, whatever became of their workers. It lies an hour behind
 * all time limits of the routes, which a poll enforces, so this is our own outage and does not count.
 */
async function endOverdue(parts: SweepParts): Promise<number> {
  const rows = await parts.db.query<TaskRef>(
    `select account_id, id as task_id from tasks where completed_at is null and deadline_at < $1 limit ${batch_max}`,
    [new Date(parts.clock.now())],
  );
  return eachOf(parts, rows, async (ref) => {
    await failpoint('sweep.ending');
    await finish(parts, ref, {
      status: 'failed',
      type: 'timeout',
      message: 'The task did not finish in time.',
      counts: false,
      attempt: 'abandoned',
      reason: 'past its deadline',
    });
  });
}

/** Removes files past their time, then tasks past theirs: all there are, or what 20 s suffice for. */
export async function removeOld(
  parts: SweepParts,
  stopped?: AbortSignal,
): Promise<Pick<Swept, 'files_removed' | 'tasks_removed'>> {
  const stop_at_ms = performance.now() + removing_ms_max;
  const hasTime = () => performance.now() < stop_at_ms && !stopped?.aborted;
  const files_removed = await inBatches(hasTime, (after) => removeOldFiles(parts, after));
  const tasks_removed = await inBatches(hasTime, (after) => removeOldTasks(parts, after));
  await parts.storage.sweepTemporaryFiles(temporary_files_ms);
  return { files_removed, tasks_removed };
}

type Old = Pick<Task, 'account_id' | 'id'> & { completed_at: Date };
type Batch = { old: Old[]; removed: number };

/** Goes on behind the last one found, so that tasks whose files cannot be removed hold up no others. */
async function inBatches(hasTime: () => boolean, remove: (after: Old) => Promise<Batch>): Promise<number> {
  let after: Old = { account_id: '', id: '', completed_at: new Date(0) };
  for (let removed = 0; ;) {
    const batch = await remove(after);
    removed += batch.removed;
    const last = batch.old.at(-1);
    if (!last || batch.old.length < batch_max || !hasTime()) return removed;
    after = last;
  }
}

async function removeOldFiles(parts: SweepParts, after: Old): Promise<Batch> {
  const { keep_ms } = parts.catalog.current.settings.outputs;
  const old = await parts.db.query<Old>(
    `select account_id, id, completed_at from tasks
      where completed_at < $1 and (completed_at, id) > ($2, $3) and files_removed_at is null and files <> '[]'
      order by completed_at, id limit ${batch_max}`,
    [new Date(parts.clock.now() - keep_ms), after.completed_at, after.id],
  );
  return { old: old, removed: await eachOf(parts, old, (task) => removeFiles(parts, task)) };
}

/** The ledger stays; what it refers to may go after its time. Idempotency keys are kept a day. */
async function removeOldTasks(parts: SweepParts, after: Old): Promise<Batch> {
  const now_ms = parts.clock.now();
  const { keep_ms } = parts.catalog.current.settings.tasks;
  await parts.db.query('delete from idempotency_keys where created_at < $1', [new Date(now_ms - 86_400_000)]);
  const old = await parts.db.query<Old>(
    `select account_id, id, completed_at from tasks
      where completed_at < $1 and (completed_at, id) > ($2, $3) and (files = '[]' or files_removed_at is not null)
      order by completed_at, id limit ${batch_max}`,
    [new Date(now_ms - keep_ms), after.completed_at, after.id],
  );
  // A worker that died between storing and failing may have left files that no row tells of.
  const without_files: Old[] = [];
  await eachOf(parts, old, async (task) => {
    await removeAll(parts.storage, task.account_id, task.id);
    without_files.push(task);
  });
  if (old.length > 0) await failpoint('sweep.deleting');
  await parts.db.query(
    'delete from tasks where (account_id, id) in (select * from unnest($1::text[], $2::text[])) and completed_at is not null',
    [without_files.map((task) => task.account_id), without_files.map((task) => task.id)],
  );
  return { old: old, removed: without_files.length };
}

/** Does it to each, a few at once; what fails is logged and left for the next time. Answers how many times it worked. */
async function eachOf<T extends TaskRef | Old>(
  parts: SweepParts,
  items: readonly T[],
  work: (item: T) => Promise<void>,
) {
  let done = 0;
  for (let i = 0; i < items.length; i += at_once) {
    const part = items.slice(i, i + at_once);
    const results = await Promise.allSettled(part.map(work));
    for (const [k, result] of results.entries()) {
      if (result.status === 'fulfilled') done += 1;
      else parts.log.error({ task: part[k], err: result.reason }, 'the sweep could not deal with a task');
    }
  }
  return done;
}
