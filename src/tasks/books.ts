import { live_keys } from '../queue/pgboss-tables.ts';
import { holdOf, open_holds, upstreamCostOf } from '../money/books.ts';
import type { Rule, TableScan } from '../money/rule.ts';
import { delivery_rules, deliveryOf, unpublished } from '../webhooks/books.ts';

const scan: TableScan = { table: 'tasks', time: 'completed_at', rows: 20_000 };

/** Tasks that ended within the part that is read, and with the last part those that have not ended. */
const tasks_of_part = `(
  select * from tasks where completed_at > $1::timestamptz and completed_at <= $2::timestamptz
  union all select * from tasks where completed_at is null and $2 = 'infinity')`;

/** Rules between tasks, money and deliveries (ARCHITECTURE.md, The data), for `medley books`. */
export const task_rules: readonly Rule[] = [
  {
    name: 'what upstreams charge for a task is what the ledger has',
    scan,
    sql: `select t.account_id || ' ' || t.id as subject, 'attempts and ledger differ' as detail,
                 abs(coalesce(a.cost, 0) - coalesce(u.cost, 0)) as off_by
            from ${tasks_of_part} t
            left join lateral (select sum(upstream_amount) as cost from attempts a
              where a.account_id = t.account_id and a.task_id = t.id offset 0) a on true
            left join ${upstreamCostOf('t.account_id', 't.id')} u on true
           where coalesce(a.cost, 0) <> coalesce(u.cost, 0)`,
  },
  {
    name: 'a task is final exactly when its hold is closed, at its cost',
    scan,
    sql: `select t.account_id || ' ' || t.id as subject,
                 t.status || ', hold ' || coalesce(h.state, 'missing') as detail,
                 abs(t.cost - coalesce(h.cost, 0)) as off_by
            from ${tasks_of_part} t left join ${holdOf('t.account_id', 't.id')} h on true
           where h.state is null or h.amount <> t.estimate
              or h.state <> case t.status when 'succeeded' then 'settled' when 'failed' then 'released' else 'open' end
              or coalesce(h.cost, 0) <> t.cost`,
  },
  {
    name: 'an open hold of a media kind belongs to an unfinished task',
    sql: `select h.account_id || ' ' || h.ref as subject, 'open hold without an unfinished task' as detail, h.amount as off_by
            from ${open_holds} h left join tasks t on t.account_id = h.account_id and t.id = h.ref
           where h.kind in ('image', 'video', 'audio') and (t.id is null or t.completed_at is not null)`,
  },
  {
    name: 'a final task has no open attempt',
    sql: `select t.account_id || ' ' || t.id as subject, 'attempt ' || a.number || ' is ' || a.state as detail, 0 as off_by
            from attempts a join tasks t on a.account_id = t.account_id and a.task_id = t.id
           where t.completed_at is not null and a.ended_at is null`,
  },
  {
    name: 'an unfinished task has a job, or waits for a full provider',
    sql: `select t.account_id || ' ' || t.id as subject, 'no live job, the sweep will send one' as detail, 0 as off_by
            from tasks t
           where t.completed_at is null and not exists (select from ${live_keys} live where live.key = t.id)
             and not exists (select from throttled_tasks k
               where k.account_id = t.account_id and k.task_id = t.id and k.promoted_at is null)`,
  },
  {
    name: 'a final task with a webhook has its delivery, of the same moment and the same bytes',
    scan,
    sql: `select t.account_id || ' ' || t.id as subject,
                 case when d.url is null then 'no delivery' else 'the delivery tells something else' end as detail, 0 as off_by
            from (select * from ${tasks_of_part} w where completed_at is not null and webhook_url is not null) t
            left join ${deliveryOf('t.account_id', 't.id')} d on true
           where d.url is null or d.body <> t.body or d.created_at <> t.completed_at
              or d.url <> t.webhook_url or d.event <> 'task.' || t.status`,
  },
  {
    name: 'no delivery tells of a task that is not final',
    scan,
    sql: `select t.account_id || ' ' || t.id as subject, 'sent before its task was final' as detail, 0 as off_by
            from (select * from ${tasks_of_part} w where completed_at is null or webhook_url is null) t
            join ${deliveryOf('t.account_id', 't.id')} d on true`,
  },
  {
    name: 'a final task is published to the endpoints of its account that ask for it',
    scan,
    sql: `select t.account_id || ' ' || t.id as subject, 'no event' as detail, 0 as off_by
            from (select * from ${tasks_of_part} w where completed_at is not null) t where ${unpublished('t')}`,
  },
  ...delivery_rules,
];
