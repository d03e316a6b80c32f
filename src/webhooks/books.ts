import { live_keys } from '../queue/pgboss-tables.ts';
import type { Rule, TableScan } from '../money/rule.ts';

/** SQL for the rules of tasks: event, url, body and created_at of a task's delivery. */
export const deliveryOf = (account_id: string, task_id: string) => `lateral (
  select d.event, d.url, d.body, d.created_at from deliveries d
   where d.account_id = ${account_id} and d.task_id = ${task_id} offset 0)`;

/**
 * SQL for the rules of tasks: nothing was published of the final task `t`, and an endpoint asked for it long before its
 * end. Endpoints of projects are left out: nobody knows in which project the key was.
 */
export const unpublished = (t: string) => `exists (
  select from webhook_endpoints w
   where w.account_id = ${t}.account_id and w.enabled and w.project_ids is null and w.changed_at < ${t}.completed_at - interval '1 minute'
     and endpoint_wants(w, case ${t}.error_type when 'canceled' then 'task.canceled' else 'task.' || ${t}.status end,
       ${t}.model, ${t}.key_id, ${t}.metadata))
  and not exists (select from webhook_events e where e.account_id = ${t}.account_id and e.task_id = ${t}.id)`;

const event_scan: TableScan = { table: 'webhook_events', time: 'created_at', rows: 20_000 };

const scan: TableScan = { table: 'deliveries', time: 'ended_at', rows: 20_000 };

/** Rules about deliveries for `medley books`. */
export const delivery_rules: readonly Rule[] = [
  {
    name: 'a delivery that waits has a job, a slot or a place in the backlog',
    sql: `select d.account_id || ' ' || d.id as subject, 'forgotten, the sweep will send it' as detail, 0 as off_by
            from deliveries d
           where d.state = 'waiting' and not exists (select from ${live_keys} live where live.key = d.id)
             and not exists (select from delivery_slots p where p.account_id = d.account_id and p.delivery_id = d.id)
             and not exists (select from throttled_deliveries k where k.account_id = d.account_id and k.delivery_id = d.id)`,
  },
  {
    name: 'a delivery has as many attempts as it tells of',
    scan,
    sql: `select d.account_id || ' ' || d.id as subject, d.attempts || ' attempts told' as detail, 0 as off_by
            from (select * from deliveries where state <> 'waiting' and ended_at > $1::timestamptz and ended_at <= $2::timestamptz
                  union all select * from deliveries where state = 'waiting' and $2 = 'infinity') d
            cross join lateral (
              select count(*) as made, coalesce(bool_or(status between 200 and 299), false) as arrived from delivery_attempts a
               where a.account_id = d.account_id and a.delivery_id = d.id offset 0) a
           where d.attempts <> a.made or (d.delivered_at is not null) <> a.arrived`,
  },
  {
    name: 'an event of the last day has a delivery to each endpoint that asks for it',
    scan: event_scan,
    sql: `select e.account_id || ' ' || e.id as subject, 'none to ' || w.id as detail, 0 as off_by
            from webhook_events e
            join webhook_endpoints w on w.account_id = e.account_id and w.enabled
             and w.changed_at < e.created_at - interval '1 minute'
             and endpoint_takes(w, e)
           where e.created_at > $1::timestamptz and e.created_at <= $2::timestamptz and e.created_at > now() - interval '1 day'
             and not exists (select from deliveries d
               where d.account_id = e.account_id and d.event_id = e.id and d.endpoint_id = w.id)`,
  },
  {
    name: 'a delivery that waits for an endpoint has its event',
    sql: `select d.account_id || ' ' || d.id as subject, 'no event ' || d.event_id as detail, 0 as off_by
            from deliveries d
           where d.state = 'waiting' and d.event_id is not null
             and not exists (select from webhook_events e where e.account_id = d.account_id and e.id = d.event_id)`,
  },
  {
    name: 'no slot and no place in the backlog is held for a delivery that does not wait',
    sql: `select x.account_id || ' ' || x.delivery_id as subject, 'a slot or a place in the backlog is left' as detail, 0 as off_by
            from (select account_id, delivery_id from delivery_slots
                  union all select account_id, delivery_id from throttled_deliveries) x
            left join deliveries d on d.account_id = x.account_id and d.id = x.delivery_id and d.state = 'waiting'
           where d.id is null`,
  },
];
