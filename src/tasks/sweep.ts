import type { App } from '../app.ts';
import { live_keys } from '../engine/engine.ts';
import { removeFiles } from './files.ts';
import { finish } from './finish.ts';
import type { StoredFile, TaskRef } from './task.ts';

/** What one sweep did, for the log and for tests. */
export type Swept = { resent: number; expired: number; files_removed: number; tasks_removed: number };

const batch_max = 500;
const resend_after_ms = 5_000;
const temporary_files_ms = 3_600_000;

/**
 * The net under everything: unfinished tasks without a live job get one again, tasks past their
 * deadline end, files and rows past their time go. Each part is bounded; what is left comes next time.
 */
export async function sweepTasks(app: App): Promise<Swept> {
  return {
    resent: await resendJobs(app),
    expired: await endOverdue(app),
    files_removed: await removeOldFiles(app),
    tasks_removed: await removeOldTasks(app),
  };
}

/** A few seconds of grace: a job may have been taken while this node looks at older rows. */
async function resendJobs(app: App): Promise<number> {
  const now = new Date(app.clock.now());
  const resent = await app.db.tx(async (tx) => {
    const rows = await tx.query<{ account_id: string; task_id: string; accepted: boolean }>(
      `select t.account_id, t.id as task_id, a.number is not null as accepted
         from tasks t left join attempts a on a.account_id = t.account_id and a.task_id = t.id and a.state = 'accepted'
        where t.completed_at is null and t.created_at < $1
          and not exists (select from ${live_keys} live where live.key = t.id) limit ${batch_max}`,
      [new Date(now.getTime() - resend_after_ms)],
    );
    for (const { account_id, task_id, accepted } of rows) {
      await app.engine.send(tx, accepted ? 'task.poll' : 'task.start', { account_id, task_id }, { key: task_id });
    }
    return rows.length;
  });
  if (resent > 0) {
    app.log.warn({ resent }, 'unfinished tasks without a job: sent again');
    app.engine.wake('task.start');
    app.engine.wake('task.poll');
  }
  return resent;
}

/** Ends tasks that outlived their deadline, whatever became of their workers. */
async function endOverdue(app: App): Promise<number> {
  const rows = await app.db.query<TaskRef & { started: boolean }>(
    `select account_id, id as task_id, started_at is not null as started
       from tasks where completed_at is null and deadline_at < $1 limit ${batch_max}`,
    [new Date(app.clock.now())],
  );
  for (const { started, ...ref } of rows) {
    await finish(app, ref, {
      status: 'failed',
      type: 'timeout',
      message: 'The task did not finish in time.',
      counts: started,
      attempt: 'failed',
      reason: 'past its deadline',
    });
  }
  return rows.length;
}

async function removeOldFiles(app: App): Promise<number> {
  const { keep_ms } = app.catalog.current.settings.outputs;
  const rows = await app.db.query<{ account_id: string; id: string; files: StoredFile[] }>(
    `select account_id, id, files from tasks
      where completed_at < $1 and files_removed_at is null and files <> '[]' limit ${batch_max}`,
    [new Date(app.clock.now() - keep_ms)],
  );
  for (const task of rows) await removeFiles(app, task);
  await app.storage.sweepTemporaryFiles(temporary_files_ms);
  return rows.length;
}

/** The ledger stays; what it refers to may go after its time. Idempotency keys are kept a day. */
async function removeOldTasks(app: App): Promise<number> {
  const now_ms = app.clock.now();
  const { keep_ms } = app.catalog.current.settings.tasks;
  await app.db.query('delete from idempotency_keys where created_at < $1', [new Date(now_ms - 86_400_000)]);
  const rows = await app.db.query(
    `delete from tasks where (account_id, id) in (
       select account_id, id from tasks where completed_at < $1 and (files = '[]' or files_removed_at is not null) limit ${batch_max})
     returning id`,
    [new Date(now_ms - keep_ms)],
  );
  return rows.length;
}
