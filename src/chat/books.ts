import { billing_rules } from '../billing/books.ts';
import { all_holds, all_upstream_costs, type Rule } from '../money/books.ts';
import { task_rules } from '../tasks/books.ts';

/** Rules about chat calls for `medley books`. */
const chat_rules: readonly Rule[] = [
  {
    name: 'what the upstream charges for a chat call is what the ledger has',
    sql: `select c.account_id || ' ' || c.id as subject, 'record and ledger differ' as detail,
                 abs(coalesce(c.upstream_cost, 0) - coalesce(u.cost, 0)) as off_by
            from chat_calls c left join ${all_upstream_costs} u on u.account_id = c.account_id and u.ref = c.id
           where coalesce(c.upstream_cost, 0) <> coalesce(u.cost, 0)`,
  },
  {
    name: 'the record of a chat call tells what its hold was settled at',
    sql: `select c.account_id || ' ' || c.id as subject, 'hold ' || coalesce(h.state, 'missing') as detail,
                 abs(c.cost - coalesce(h.cost, 0)) as off_by
            from chat_calls c left join ${all_holds} h on h.account_id = c.account_id and h.ref = c.id
           where h.ref is null or h.state = 'open' or c.cost <> coalesce(h.cost, 0)`,
  },
];

/** Everything that must hold beyond money itself. */
export const service_rules: readonly Rule[] = [...task_rules, ...chat_rules, ...billing_rules];
