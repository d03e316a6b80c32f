import { live_keys } from '../queue/pgboss-tables.ts';
import { all_holds, all_upstream_costs, type Rule } from '../money/books.ts';
import { delivery_rules, task_deliveries } from '../webhooks/books.ts';

/** Rules between tasks, money and deliveries (DESIGN section 6), for `medley books`. */
export const task_rules: readonly Rule[] = [
  {
    name: 'what upstreams charge for a task is what the ledger has',
    sql: `select t.account_id || ' ' || t.id as subject, 'attempts and ledger differ' as detail,
                 abs(coalesce(a.cost, 0) - coalesce(u.cost, 0)) as off_by
            from tasks t
            left join (select account_id, task_id, sum(upstream_amount) as cost from attempts group by account_id, task_id) a
                 on a.account_id = t.account_id and a.task_id = t.id
            left join ${all_upstream_costs} u on u.account_id = t.account_id and u.ref = t.id
           where coalesce(a.cost, 0) <> coalesce(u.cost, 0)`,
  },
  {
    name: 'a task is final exactly when its hold is closed, at its cost',
    sql: `select t.account_id || ' ' || t.id as subject,
                 t.status || ', hold ' || coalesce(h.state, 'missing') as detail,
                 abs(t.cost - coalesce(h.cost, 0)) as off_by
            from tasks t left join ${all_holds} h on h.account_id = t.account_id and h.ref = t.id
           where h.ref is null or h.amount <> t.estimate
              or h.state <> case t.status when 'succeeded' then 'settled' when 'failed' then 'released' else 'open' end
              or coalesce(h.cost, 0) <> t.cost`,
  },
  {
    name: 'an open hold of a media kind belongs to an unfinished task',
    sql: `select h.account_id || ' ' || h.ref as subject, 'open hold without a task' as detail, h.amount as off_by
            from ${all_holds} h left join tasks t on t.account_id = h.account_id and t.id = h.ref
           where h.state = 'open' and h.kind not in ('chat', 'embedding') and t.id is null`,
  },
  {
    name: 'a final task has no open attempt',
    sql: `select t.account_id || ' ' || t.id as subject, 'attempt ' || a.number || ' is ' || a.state as detail, 0 as off_by
            from tasks t join attempts a on a.account_id = t.account_id and a.task_id = t.id
           where t.completed_at is not null and a.ended_at is null`,
  },
  {
    name: 'an unfinished task has a job',
    sql: `select t.account_id || ' ' || t.id as subject, 'no live job, the sweep will send one' as detail, 0 as off_by
            from tasks t
           where t.completed_at is null and not exists (select from ${live_keys} live where live.key = t.id)`,
  },
  {
    name: 'a final task with a webhook has its delivery, of the same moment and the same bytes',
    sql: `select t.account_id || ' ' || t.id as subject,
                 case when d.task_id is null then 'no delivery' else 'the delivery tells something else' end as detail, 0 as off_by
            from (select * from tasks where completed_at is not null and webhook_url is not null) t
            left join ${task_deliveries} d on d.account_id = t.account_id and d.task_id = t.id
           where d.task_id is null or d.body <> t.body or d.created_at <> t.completed_at
              or d.url <> t.webhook_url or d.event <> 'task.' || t.status`,
  },
  {
    name: 'no delivery tells of a task that is not final',
    sql: `select d.account_id || ' ' || d.task_id as subject, 'sent before its task was final' as detail, 0 as off_by
            from ${task_deliveries} d join tasks t on t.account_id = d.account_id and t.id = d.task_id
           where t.completed_at is null or t.webhook_url is null`,
  },
  ...delivery_rules,
];
