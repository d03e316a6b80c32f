import { billing_rules } from '../billing/books.ts';
import { holdOf, upstreamCostOf } from '../money/books.ts';
import type { Rule, TableScan } from '../money/rule.ts';
import { task_rules } from '../tasks/books.ts';

/**
 * By when they were written: a call that took long, or whose record was in a journal, began before the last check. Without
 * conditions both indexes are read in their order.
 */
const scan: TableScan = {
  table: '(select created_at as at from chat_calls union all select recorded_at from chat_calls) c',
  time: 'at',
  rows: 20_000,
};

/** Each call once. */
const calls_of_part = `(
  select * from chat_calls where recorded_at is null and created_at > $1::timestamptz and created_at <= $2::timestamptz
  union all select * from chat_calls where recorded_at > $1::timestamptz and recorded_at <= $2::timestamptz)`;

/** Rules about chat calls for `medley books`. */
const chat_rules: readonly Rule[] = [
  {
    name: 'what the upstream charges for a chat call is what the ledger has',
    scan,
    sql: `select c.account_id || ' ' || c.id as subject, 'record and ledger differ' as detail,
                 abs(coalesce(c.upstream_cost, 0) - coalesce(u.cost, 0)) as off_by
            from ${calls_of_part} c left join ${upstreamCostOf('c.account_id', 'c.id')} u on true
           where coalesce(c.upstream_cost, 0) <> coalesce(u.cost, 0)`,
  },
  {
    name: 'the record of a chat call tells what its hold was settled at',
    scan,
    sql: `select c.account_id || ' ' || c.id as subject, 'hold ' || coalesce(h.state, 'missing') as detail,
                 abs(c.cost - coalesce(h.cost, 0)) as off_by
            from ${calls_of_part} c left join ${holdOf('c.account_id', 'c.id')} h on true
           where h.state is null or h.state = 'open' or c.cost <> coalesce(h.cost, 0)`,
  },
];

/** Everything that must hold beyond money itself. */
export const service_rules: readonly Rule[] = [...task_rules, ...chat_rules, ...billing_rules];
