import package_json from '../package.json' with { type: 'json' };
import { removeOldAlerts } from './alerts/alert.ts';
import { runAccountAlerts, runServiceAlerts } from './alerts/watch.ts';
import { removeOldAudit } from './accounts/audit.ts';
import { removeOldChallenges } from './accounts/passkey-challenges.ts';
import { removeOldClaims } from './accounts/sign-in/email-claims.ts';
import { removeOldDeviceLogins } from './accounts/sign-in/device-logins.ts';
import { removeOldLoginLinks } from './accounts/sign-in/login-links.ts';
import { removeOldSessions } from './accounts/sign-in/sessions.ts';
import { removeOldInvitations } from './accounts/team.ts';
import type { App } from './app.ts';
import { runScheduledBackup } from './backup/scheduled.ts';
import { encryptKeysAgain } from './catalog/added/rows.ts';
import { invoiceTime, makeDueInvoices } from './billing/invoices.ts';
import { mailSpend } from './billing/mail-spend.ts';
import { mailInvoices } from './billing/notices.ts';
import { batch_queue, removeOldBatches } from './batches/batches.ts';
import { rescueBatches } from './batches/rescue.ts';
import { runBatch } from './batches/run.ts';
import type { Semaphore } from './concurrency/semaphore.ts';
import { isUnavailable, patient } from './db/database.ts';
import type { Handler } from './queue/queue.ts';
import { service_rules } from './chat/books.ts';
import { releaseForgotten, removeOldRecords } from './chat/sweep.ts';
import { run_queue } from './conversations/background.ts';
import { runBackground } from './conversations/background-run.ts';
import { rescueResponses } from './conversations/background-sweep.ts';
import { encryptFactorsAgain } from './accounts/sign-in/factor-secrets.ts';
import { encryptAgain, removeOldResponses } from './conversations/removal.ts';
import { removeOldPlayground } from './contents/playground.ts';
import { removeOldContents } from './contents/stored.ts';
import { removeOldFeedback } from './feedback/feedback.ts';
import { removeExpiredFiles } from './files/files.ts';
import { removeOldUploads } from './files/upload-sessions.ts';
import { removeEndedLeases } from './leases/leases.ts';
import { removeOldTries } from './limits/backoff.ts';
import { reconcile } from './money/reconciliation.ts';
import { runModelCheck } from './monitoring/model-check.ts';
import { addUpModelHours } from './monitoring/model-hours.ts';
import { removeOldRefusals } from './money/refusals.ts';
import { addUpUsage } from './money/usage.ts';
import { dropUnusedCircuits } from './routing/health.ts';
import { pollTask } from './tasks/poll.ts';
import { startTask } from './tasks/start.ts';
import { removeOld, rescueTasks, serveWaiting } from './tasks/sweep.ts';
import { FairQueue } from './tasks/fair-queue.ts';
import { removeOldTestCalls } from './test-calls/stored.ts';
import { removeOldDeliveries, rescueDeliveries } from './webhooks/rescue.ts';
import { publishInvoice } from './webhooks/events.ts';
import { sendDelivery } from './webhooks/send.ts';

/**
 * An attempt that hangs costs its slot for 10 s and nobody else anything, until this many do at once: 200
 * receivers that begin to hang have 800. First attempts and retries have slots of their own.
 */
const delivery_slots = 1024;

const rescue_every_ms = 10_000;
/** A minute of starts goes by, a full upstream may be asked again, or a node has died before it gave room on. */
const waiting_every_ms = 1_000;
const remove_every_ms = 60_000;
const invoices_every_ms = 600_000;
const alerts_every_ms = 60_000;

const add_up_every_ms = 15_000;
const add_up_all_every_ms = 120_000;

const model_hours_every_ms = 300_000;

const check_every_ms = 300_000;
/** The first check of a large service reads everything. */
const check_ms_max = 4 * 3_600_000;

/** Time between two looks at whether the daily check of models is due. */
const model_check_every_ms = 300_000;

/** Time between two looks at what is due. */
const backups_every_ms = 60_000;
const backup_ms_max = 24 * 3_600_000;

/** Every job of the service in one list. */
export async function startWorker(app: App): Promise<void> {
  const upkeep: App = { ...app, db: patient(app.db) }; // nobody waits for what a scheduled job asks the database
  workFairly(app, 'task.start', app.limits.start_slots, (job) => startTask(app, job));
  workFairly(app, 'task.poll', app.limits.poll_slots, (job) => pollTask(app, job));
  const runs = new AbortController();
  workFairly(app, run_queue, app.limits.response_slots, (job) => runBackground({ ...app, runs: runs.signal }, job));
  workFairly(app, batch_queue, app.limits.batch_slots, (job) => runBatch({ ...app, runs: runs.signal }, job));
  app.onStop(() => runs.abort(new Error('the worker stops')));
  app.engine.work('delivery.send', { slots: delivery_slots, handler: (job) => sendDelivery(app, job) });
  app.engine.work('delivery.retry', { slots: delivery_slots, handler: (job) => sendDelivery(app, job) });
  await app.engine.schedule('tasks.sweep', rescue_every_ms, async () => {
    await rescueTasks(upkeep);
    await rescueDeliveries(upkeep);
    await releaseForgotten(upkeep);
    await rescueResponses(upkeep);
    await rescueBatches(upkeep);
  });
  await app.engine.schedule('tasks.waiting', waiting_every_ms, () => serveWaiting(upkeep));
  await app.engine.schedule('tasks.removal', remove_every_ms, (stopped) => removeAllOld(upkeep, stopped));
  await app.engine.schedule('usage.sums', add_up_every_ms, async (stopped) => {
    await addUpUsage(upkeep.db, { stopped });
  });
  await app.engine.schedule('usage.all_sums', add_up_all_every_ms, async (stopped) => {
    await addUpUsage(upkeep.db, { behind: 1, stopped }); // reports over all accounts read what is behind
  });
  await app.engine.schedule('models.hours', model_hours_every_ms, () => addUpModelHours(upkeep));
  await app.engine.schedule('books.check', check_every_ms, (stopped) => checkAll(upkeep, stopped), {
    limit_ms: check_ms_max,
  });
  await app.engine.schedule(
    'backups',
    backups_every_ms,
    (stopped) => runScheduledBackup(upkeep, package_json.version, stopped),
    { limit_ms: backup_ms_max },
  );
  await app.engine.schedule('models.check', model_check_every_ms, (stopped) => runModelCheck(upkeep, stopped));
  await app.engine.schedule('invoices', invoices_every_ms, (stopped) => runInvoices(upkeep, stopped));
  await app.engine.schedule('spend.mails', invoices_every_ms, (stopped) => mailSpend(upkeep, stopped));
  // Nodes of the version before have one of this name, which mails low balances.
  await app.engine.schedule('balances.low', alerts_every_ms, (stopped) => runAccountAlerts(upkeep, stopped));
  await app.engine.schedule('alerts', alerts_every_ms, (stopped) => runServiceAlerts(upkeep, stopped));
}

/** Works on a queue of tasks in such a way that no account has all its slots. */
function workFairly(app: App, queue: string, slots: Semaphore, handler: Handler): void {
  const fair_queue = new FairQueue(app.engine, queue, slots, handler);
  app.engine.work(queue, { slots: slots.bound, handler: (job) => fair_queue.take(job) });
  app.onStop(() => fair_queue.stop());
}

/**
 * Removes what the configuration keeps no longer, in batches. What cannot be removed, such as a file that nobody may
 * touch, keeps nothing else: it throws what was in the way when it is through. A database that is away ends it.
 */
export async function removeAllOld(app: App, stopped: AbortSignal): Promise<void> {
  const errors: unknown[] = [];
  for (const remove of removals(app, stopped)) {
    if (stopped.aborted) return;
    try {
      await remove();
    } catch (error) {
      if (isUnavailable(error)) throw error;
      errors.push(error);
    }
  }
  if (errors.length > 0) throw new AggregateError(errors, 'not everything that is old could be removed');
}

function removals(app: App, stopped: AbortSignal): (() => Promise<unknown>)[] {
  const now = new Date(app.clock.now());
  const { retention, tasks, content } = app.catalog.current.settings;
  const { audit_ms, sessions_ms, invitations_ms, chat_records_ms, deliveries_ms } = retention;
  const before = (age_ms: number) => new Date(now.getTime() - age_ms);
  const content_bounds = {
    keep_ms: Math.min(content.keep_ms, chat_records_ms),
    account_bytes_max: content.account_bytes_max,
  };
  return [
    () => removeOld(app, stopped),
    () => removeExpiredFiles(app, now, stopped),
    () => removeOldUploads(app, now, stopped),
    () => removeOldBatches(app.db, before(chat_records_ms)),
    () => removeOldDeliveries(app, stopped),
    () => removeOldRecords(app, stopped),
    () => removeOldRefusals(app.db, before(chat_records_ms), stopped),
    () => removeOldFeedback(app.db, { calls: before(chat_records_ms), tasks: before(tasks.keep_ms) }, stopped),
    () => removeOldResponses(app, stopped),
    () => removeOldContents(app.db, now, content_bounds, stopped),
    () => removeOldPlayground(app.db, now, content.keep_ms, stopped),
    () => encryptAgain(app, stopped),
    () => encryptKeysAgain(app.db, app.content_keys),
    () => encryptFactorsAgain(app, stopped),
    () => removeOldLoginLinks(app.db, now),
    () => removeOldClaims(app.db, now),
    () => removeOldChallenges(app.db, now),
    () => removeOldDeviceLogins(app.db, now),
    () => dropUnusedCircuits(app.db, now),
    () => removeEndedLeases(app.db),
    () => removeOldTestCalls(app.db, now),
    () => removeOldTries(app.db, now),
    () => removeOldSessions(app.db, before(sessions_ms)),
    () => removeOldInvitations(app.db, before(invitations_ms)),
    () => removeOldAlerts(app.db, before(deliveries_ms)),
    async () => audit_ms !== undefined && (await removeOldAudit(app.db, before(audit_ms), stopped)),
  ];
}

async function checkAll(app: App, stopped: AbortSignal): Promise<void> {
  const { ok, difference, findings } = await reconcile(app.db, { clock: app.clock, more: service_rules, stopped });
  if (!ok) app.log.error({ difference, findings: findings.slice(0, 10) }, 'the books do not add up');
}

/** Without an issuer there are none. */
async function runInvoices(app: App, signal: AbortSignal): Promise<void> {
  const { issuer } = app.catalog.current.settings;
  if (!issuer) return;
  const now = await invoiceTime(app.db, new Date(app.clock.now()));
  const { created, failed } = await makeDueInvoices(app.db, { issuer, now, signal, onInvoice: publishInvoice });
  if (created.length > 0) app.log.info({ invoices: created.map(({ number }) => number) }, 'invoices were made');
  for (const { account_id, error } of failed) app.log.error({ account_id, err: error }, 'an invoice was not made');
  await mailInvoices(app, signal);
}
