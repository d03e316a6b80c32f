import type { Logger } from 'pino';
import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db } from '../db/database.ts';
import type { Engine } from '../queue/queue.ts';
import type { Clock } from '../lib/clock.ts';

/** The parts of the app that looking after deliveries takes. */
export type RescueParts = {
  readonly db: Db;
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  readonly catalog: CatalogHolder;
};

const settled_after_ms = 5_000;
const batch_max = 500;

/**
 * The net under all deliveries: what waits without a job, a slot or a place in the backlog gets a
 * job, and a backlog that nobody moves goes on, after a few seconds of grace. Answers how many got a job.
 */
export async function rescueDeliveries(app: RescueParts, grace_ms = settled_after_ms): Promise<number> {
  const now_ms = app.clock.now();
  const now = new Date(now_ms);
  const rows = await app.db.query<{ sent: number }>('select rescue_deliveries($1, $2) as sent', [
    now,
    new Date(now_ms - grace_ms),
  ]);
  const hosts = await app.db.query<{ host: string }>('select distinct host from throttled_deliveries');
  for (const { host } of hosts) await app.db.query('select move_backlog($1, $2)', [host, now]);
  const sent = rows[0]?.sent ?? 0;
  if (sent > 0) app.log.warn({ resent: sent }, 'webhook deliveries without a job: sent again');
  app.engine.wake('delivery.send');
  app.engine.wake('delivery.retry');
  return sent;
}

/**
 * Removes deliveries that ended longer ago than they are kept, with their attempts, then events without a delivery, and
 * forgets which endpoints were slow then.
 */
export async function removeOldDeliveries(app: RescueParts, stopped?: AbortSignal): Promise<number> {
  const ended_before = new Date(app.clock.now() - app.catalog.current.settings.retention.deliveries_ms);
  await app.db.query('delete from slow_endpoints where since < $1', [ended_before]);
  for (let removed = 0; ;) {
    const rows = await app.db.query(
      `delete from deliveries where (account_id, id) in (
         select account_id, id from deliveries where state <> 'waiting' and ended_at < $1 order by ended_at limit ${batch_max})
         and state <> 'waiting' -- once more, for one that was sent again meanwhile
       returning id`,
      [ended_before],
    );
    removed += rows.length;
    if (rows.length === batch_max && !stopped?.aborted) continue;
    await removeOldEvents(app, ended_before, stopped);
    return removed;
  }
}

async function removeOldEvents({ db }: RescueParts, created_before: Date, stopped?: AbortSignal): Promise<void> {
  for (let removed = batch_max; removed === batch_max && !stopped?.aborted;) {
    const rows = await db.query(
      `delete from webhook_events where (account_id, id) in (
         select e.account_id, e.id from webhook_events e where e.created_at < $1 and not exists (select from deliveries d
             where d.account_id = e.account_id and d.event_id = e.id) order by e.created_at limit ${batch_max})
       returning id`,
      [created_before],
    );
    removed = rows.length;
  }
}
