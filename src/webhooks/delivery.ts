import { createHash } from 'node:crypto';
import { conditionsOf } from '../db/conditions.ts';
import type { Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import type { GrowingTable } from '../db/tables.ts';
import { assert } from '../lib/assert.ts';
import { firstIdSince, newId } from '../lib/ids.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import type { EventType } from './events.ts';

/** Names a delivery everywhere inside; the account leads because it will be the distribution key. */
export type DeliveryRef = { account_id: string; id: string };

export type DeliveryState = 'waiting' | 'delivered' | 'dropped';

/** Events of alerts. */
export type AlertEvent = 'alert.opened' | 'alert.raised' | 'alert.reminder' | 'alert.closed' | 'alert.test';

/** One event for one URL, without its body. */
export type Delivery = DeliveryRef & {
  /** Null for an alert and a test payload, and for events that are of no task. */
  task_id: string | null;
  event: EventType | AlertEvent;
  url: string;
  /** The endpoint of its account that the delivery goes to; null for a `webhook_url`. The endpoint may be gone. */
  endpoint_id: string | null;
  /** The event that is delivered to an endpoint; null for a test. */
  event_id: string | null;
  state: DeliveryState;
  attempts: number;
  next_at: Date | null;
  created_at: Date;
  delivered_at: Date | null;
  ended_at: Date | null;
};

/** One try of a delivery. `status` is null when there was no answer; then `error` says why. */
export type DeliveryAttempt = {
  number: number;
  started_at: Date;
  ended_at: Date;
  duration_ms: number;
  status: number | null;
  error: string | null;
  /** The first 2 kB, for the account's eyes; never to be rendered as HTML. */
  answer: string | null;
};

/**
 * The endpoint of a delivery: one account's URL without the query, which usually tells receivers apart no more
 * than their tasks; its host, with the port, is shared by all accounts.
 */
export type Target = { endpoint: string; host: string };

export function targetOf(account_id: string, url: string): Target {
  const { origin, pathname, host } = new URL(url);
  const endpoint = createHash('sha256').update(`${account_id} ${origin}${pathname}`).digest('base64url').slice(0, 22);
  return { endpoint, host };
}

/** The delivery of a task that ends, for `end_task`, which writes it in its transaction. */
export function newDelivery(
  { account_id, traceparent }: { account_id: string; traceparent: string | null },
  url: string,
  now_ms: number,
) {
  const { endpoint, host } = targetOf(account_id, url);
  return { id: newId('dlv', now_ms), lane: endpoint, host, traceparent };
}

/** Writes the delivery of an alert in the caller's transaction. Call `wake` for `delivery.send` after the commit. */
export async function addAlertDelivery(
  tx: Queryable,
  { account_id, event, url, body }: { account_id: string; event: AlertEvent; url: string; body: string },
  now_ms: number,
): Promise<void> {
  const delivery = { account_id, task_id: null, event, url, body };
  const record = { ...delivery, ...newDelivery({ account_id, traceparent: null }, url, now_ms) };
  await tx.query('select add_delivery($1, $2)', [new Date(now_ms), recordText(record)]);
}

/**
 * For backups: the delivery of a task is there from the end of its hold on. One that has ended waits again only if it
 * was sent again by hand since: at the moment it was over, and nothing there would send it.
 */
export const growing_deliveries: GrowingTable = {
  name: 'public.deliveries',
  keys: ['id'],
  changing: `(select * from deliveries where state = 'waiting')`,
  is_later: `case when r.task_id is null then r.created_at > m.at or exists (select from webhook_events v
      where v.account_id = r.account_id and v.id = r.event_id and ${hasLaterEntry('v.task_id', ['close', 'late'])})
    else ${hasLaterEntry('r.task_id', ['close', 'late'])} end`,
  values: {
    state: `case when r.state <> 'waiting' then r.state when r.delivered_at is null then 'dropped' else 'delivered' end`,
    by_hand: `r.by_hand and r.state <> 'waiting'`,
    next_at: 'null::timestamptz',
    ended_at: 'coalesce(r.ended_at, r.next_at)',
  },
  bytes: 'pg_column_size(r.body)',
  parts: { name: 'public.delivery_attempts', keys: ['delivery_id'] },
};

/** For backups: the event of a task is there from the end of its hold on. Read before its deliveries, since it outlives them. */
export const growing_events: GrowingTable = {
  name: 'public.webhook_events',
  keys: ['id'],
  is_later: `case when r.task_id is null then r.created_at > m.at else ${hasLaterEntry('r.task_id', ['close', 'late'])} end`,
  bytes: 'pg_column_size(r.body)',
};

const columns = `d.account_id, d.id, coalesce(d.task_id, (select e.task_id from webhook_events e
    where e.account_id = d.account_id and e.id = d.event_id)) as task_id, d.event, d.url, d.endpoint_id, d.event_id, d.state,
  d.attempts, d.next_at, d.created_at, d.delivered_at, d.ended_at`;

export async function findDelivery(db: Queryable, id: string): Promise<Delivery | undefined> {
  const rows = await db.query<Delivery>(`select ${columns} from deliveries d where d.id = $1`, [id]);
  return rows[0];
}

/** The delivery to a task's own `webhook_url`; undefined if it has none or is not final. */
export async function deliveryOfTask(
  db: Queryable,
  task: { account_id: string; task_id: string },
): Promise<Delivery | undefined> {
  const rows = await db.query<Delivery>(
    `select ${columns} from deliveries d where d.account_id = $1 and d.task_id = $2`,
    [task.account_id, task.task_id],
  );
  return rows[0];
}

/** Returns the place in a trace of the task that a delivery is about; null where it is in none. */
export async function traceparentOf(db: Queryable, { account_id, id }: DeliveryRef): Promise<string | null> {
  const rows = await db.query<{ traceparent: string | null }>(
    'select traceparent from deliveries where account_id = $1 and id = $2',
    [account_id, id],
  );
  return rows[0]?.traceparent ?? null;
}

/** The state of a delivery for people: a waiting one has failed before, or not. */
export type DeliveryStanding = 'waiting' | 'retrying' | 'delivered' | 'dropped';

export type DeliveryFilter = {
  /** Without it, those of every account. */
  account_id?: string;
  limit: number;
  /** Deliveries made before this one. */
  after?: string;
  standing?: DeliveryStanding;
  /** Only those that tell of this task; needs an account. */
  task_id?: string;
  event?: string;
  endpoint_id?: string;
  /** A part of the address, in any case. */
  url_part?: string;
};

const standings: { readonly [standing in DeliveryStanding]: string } = {
  waiting: `d.attempts = 0`,
  retrying: `d.attempts > 0`,
  delivered: `d.state = 'delivered'`,
  dropped: `d.state = 'dropped'`,
};

/** As one line of a list, with how the last attempt was answered. */
export type DeliveryLine = Delivery & { last_status: number | null; last_error: string | null };

/** Deliveries, newest first: ids sort by time, so they are the cursor. */
export async function listDeliveries(
  db: Queryable,
  { account_id, limit, after, standing, task_id, event, endpoint_id, url_part }: DeliveryFilter,
): Promise<{ lines: DeliveryLine[]; has_more: boolean }> {
  const { text, values } = conditionsOf([
    ['d.account_id = ?', account_id],
    ['d.id < ?', after],
    ['d.id = any(?)', task_id === undefined ? undefined : await deliveriesAbout(db, account_id ?? '', task_id)],
    ['d.event = ?', event],
    ['d.endpoint_id = ?', endpoint_id],
    ['strpos(lower(d.url), lower(?)) > 0', url_part],
  ]);
  // Those that wait are found by their own index, whatever is believed of their number: never on the way through all.
  const is_waiting = standing === 'waiting' || standing === 'retrying';
  const from = is_waiting ? `(select * from deliveries where state = 'waiting' offset 0) d` : 'deliveries d';
  const where = [text, standing === undefined ? '' : standings[standing]].filter((each) => each !== '').join(' and ');
  const rows = await db.query<DeliveryLine>(
    `select d.*, a.status as last_status, a.error as last_error
       from (select ${columns} from ${from} ${where && `where ${where}`} order by d.id desc limit $${values.length + 1}) d
       left join delivery_attempts a on a.account_id = d.account_id and a.delivery_id = d.id and a.number = d.attempts
      order by d.id desc`,
    [...values, limit + 1],
  );
  return { lines: rows.slice(0, limit), has_more: rows.length > limit };
}

/** The ids of the deliveries that tell of a task: to its own address, and to endpoints. */
async function deliveriesAbout(db: Queryable, account_id: string, task_id: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from deliveries where account_id = $1 and task_id = $2
     union all select d.id from webhook_events e join deliveries d on d.account_id = e.account_id and d.event_id = e.id
      where e.account_id = $1 and e.task_id = $2`,
    [account_id, task_id],
  );
  return rows.map(({ id }) => id);
}

/** A delivery of this account. */
export async function deliveryOf(db: Queryable, { account_id, id }: DeliveryRef): Promise<Delivery | undefined> {
  const rows = await db.query<Delivery>(`select ${columns} from deliveries d where d.account_id = $1 and d.id = $2`, [
    account_id,
    id,
  ]);
  return rows[0];
}

/** Returns the body of every attempt, byte for byte. Empty if it is gone. */
export async function bodyOfDelivery(db: Queryable, { account_id, id }: DeliveryRef): Promise<string> {
  const rows = await db.query<{ body: string }>(
    `select coalesce(e.body, d.body) as body from deliveries d
       left join webhook_events e on e.account_id = d.account_id and e.id = d.event_id
      where d.account_id = $1 and d.id = $2`,
    [account_id, id],
  );
  return rows[0]?.body ?? '';
}

/** Deliveries that were dropped, and those whose attempts failed so far and that are sent again. */
export type UndeliveredCounts = { dropped: number; retrying: number };

/** Counts the deliveries of an account, made since then, that have not arrived. */
export async function countUndelivered(db: Queryable, account_id: string, since: Date): Promise<UndeliveredCounts> {
  const [row] = await db.query<UndeliveredCounts>(
    `select (select count(*) from deliveries
              where account_id = $1 and state = 'dropped' and id > $3 and created_at >= $2)::integer as dropped,
            (select count(*) from (select account_id, created_at from deliveries
              where state = 'waiting' and attempts > 0 offset 0) w
              where account_id = $1 and created_at >= $2)::integer as retrying`,
    [account_id, since, firstIdSince('dlv', since.getTime() - id_slack_ms)],
  );
  return row ?? { dropped: 0, retrying: 0 };
}

/**
 * Webhooks of an account's tasks since a time: those that failed twice or were dropped, and those that arrived, of which
 * no more are counted than one above the failing ones.
 */
export type DeliveryOutcomes = { account_id: string; delivered: number; failing: number };

/** Time in which a webhook arrives, or hardly ever. */
const retried_ms = 86_400_000;

/** Returns the accounts of which at least `failing_min` webhooks of tasks fail. Of others, reads none that arrived. */
export async function failingDeliveries(
  db: Queryable,
  { since, failing_min }: { since: Date; failing_min: number },
): Promise<DeliveryOutcomes[]> {
  const rows = await db.query<{ account_id: string; delivered: bigint; failing: bigint }>(
    `select account_id, failing,
            (select count(*) from (select from deliveries d
               where d.account_id = f.account_id and d.id >= $3 and d.state = 'delivered' and d.ended_at > $1
                 and d.task_id is not null
               order by d.id desc limit f.failing + 1) x) as delivered
       from (select account_id, count(*) as failing
               from (select account_id from deliveries where state = 'dropped' and ended_at > $1 and task_id is not null
                     union all
                     select account_id from (select * from deliveries where state = 'waiting' offset 0) w
                      where attempts >= 2 and task_id is not null) d
              group by account_id having count(*) >= $2) f
      order by account_id`,
    [since, failing_min, firstIdSince('dlv', since.getTime() - retried_ms)],
  );
  return rows.map(({ account_id, delivered, failing }) => {
    return { account_id, delivered: Number(delivered), failing: Number(failing) };
  });
}

/** Ids are made about when their delivery is. */
const id_slack_ms = 3_600_000;

/** Counts the waiting deliveries of all accounts. */
export async function countWaiting(db: Queryable): Promise<number> {
  const rows = await db.query<{ waiting: bigint }>(
    `select count(*) as waiting from deliveries where state = 'waiting'`,
  );
  return Number(rows[0]?.waiting ?? 0);
}

/** Tells whether any webhook of the account has ever arrived. */
export async function hasDelivered(db: Queryable, account_id: string): Promise<boolean> {
  const rows = await db.query(`select 1 from deliveries where account_id = $1 and state = 'delivered' limit 1`, [
    account_id,
  ]);
  return rows.length > 0;
}

/** Oldest first. */
export async function listDeliveryAttempts(db: Queryable, ref: DeliveryRef): Promise<DeliveryAttempt[]> {
  return db.query<DeliveryAttempt>(
    `select number, started_at, ended_at, duration_ms, status, error, answer from delivery_attempts
      where account_id = $1 and delivery_id = $2 order by number`,
    [ref.account_id, ref.id],
  );
}

/** An attempt that is due, as its job names it; only the newest job of a delivery may make it. */
export type DueAttempt = DeliveryRef & { job: number };

export function readDue(data: Record<string, unknown>): DueAttempt {
  const { account_id, delivery_id, job } = data;
  assert(
    typeof account_id === 'string' && typeof delivery_id === 'string' && typeof job === 'number',
    'a delivery job names its delivery',
  );
  return { account_id, id: delivery_id, job };
}
