import type { Rule } from './rule.ts';

/** Only a full run looks for these: the others go account by account. One look into the index for each. */
const strangers: Rule = {
  name: 'every entry belongs to an account',
  sql: `with recursive owners as (
      (select account_id from ledger_entries order by account_id limit 1)
      union all
      select (select e.account_id from ledger_entries e where e.account_id > a.account_id order by e.account_id limit 1)
        from owners a where a.account_id is not null)
    select e.account_id || ' #' || e.number as subject, 'there is no such account' as detail,
           abs(e.available) + abs(e.held) as off_by
      from owners a join ledger_entries e using (account_id)
     where not exists (select from balances b where b.account_id = a.account_id)`,
};

/**
 * The same for what was made of the ledger: the sums of usage (money/usage.ts), as far as each account's mark, of months
 * that are not closed.
 */
const usage: Rule = {
  name: 'sums of usage are those of the charges',
  scan: { table: 'usage_sums', time: 'start', rows: 200 },
  sql: `with charges as materialized (
      select e.account_id, step, date_trunc(step, e.created_at, 'UTC') as start, e.key_id, e.model, e.kind,
             coalesce(e.project_id, 'default') as project_id, e.revenue + e.loss as cost, e.units
        from usage_marks m left join ledger_openings n using (account_id) cross join (values ('hour'), ('day')) v (step)
        cross join lateral (select * from ledger_entries e where e.account_id = m.account_id and e.type = 'settle'
          and e.created_at > $1::timestamptz and e.created_at < $2::timestamptz + interval '1 day' offset 0) e
       where e.number <= m.number and (n.month is null or e.created_at >= n.month::timestamp at time zone 'UTC')
         and date_trunc(step, e.created_at, 'UTC') > $1
         and date_trunc(step, e.created_at, 'UTC') <= $2),
    sums as (select s.* from usage_sums s left join ledger_openings n using (account_id)
       where start > $1 and start <= $2 and (n.month is null or start >= n.month::timestamp at time zone 'UTC')),
    costs as (select account_id, step, start, key_id, model, kind, project_id, count(*) as charges, sum(cost) as cost
        from charges group by account_id, step, start, key_id, model, kind, project_id),
    counted as (select account_id, step, start, unit, sum(amount::numeric) as amount
        from charges, jsonb_each_text(units) u (unit, amount) group by account_id, step, start, unit),
    summed as (select account_id, step, start, unit, sum(amount::numeric) as amount
        from sums, jsonb_each_text(units) u (unit, amount) group by account_id, step, start, unit)
    select account_id || ' ' || step || ' ' || start as subject, 'sum and charges differ' as detail,
           abs(coalesce(s.cost, 0) - coalesce(c.cost, 0)) as off_by
      from costs c full join sums s using (account_id, step, start, key_id, model, kind, project_id)
     where c.cost is distinct from s.cost or c.charges is distinct from s.charges
    union all
    select account_id || ' ' || step || ' ' || start, unit || ' differs', 0
      from counted c full join summed t using (account_id, step, start, unit) where c.amount is distinct from t.amount`,
};

/** The same for the sums of margins: those of days. What is no charge is found among the few entries of its kind. */
const margins: Rule = {
  name: 'sums of margins are those of the charges',
  scan: {
    table: `(select start::timestamp at time zone 'UTC' as day from margin_sums where step = 'day') d`,
    time: 'day',
    rows: 20,
  },
  sql: `with used as materialized (
      select e.account_id, e.month, (e.created_at at time zone 'UTC')::date as start, coalesce(e.model, '') as model,
             coalesce(e.provider, '') as provider, coalesce(e.route, '') as route,
             count(*) filter (where e.type <> 'upstream') as runs, sum(e.revenue + e.loss) as revenue,
             sum(e.upstream_cost) as upstream_cost, sum(coalesce(e.upstream_base, 0)) as base,
             sum(e.upstream_unknown + case when e.type = 'settle' and e.upstream_basis is null then 1 else 0 end) as unknown
        from usage_marks m left join ledger_openings n using (account_id) cross join lateral (
          select * from ledger_entries e where e.account_id = m.account_id and e.type = 'settle'
             and e.created_at > $1::timestamptz and e.created_at < $2::timestamptz + interval '1 day'
          union all
          select * from ledger_entries e where e.account_id = m.account_id and e.type not in ('hold', 'settle')
             and e.upstream_basis is not null
             and e.created_at > $1::timestamptz and e.created_at < $2::timestamptz + interval '1 day' offset 0) e
       where e.number <= m.margins and (n.month is null or e.created_at >= n.month::timestamp at time zone 'UTC')
         and date_trunc('day', e.created_at, 'UTC') > $1
         and date_trunc('day', e.created_at, 'UTC') <= $2
       group by 1, 2, 3, 4, 5, 6),
    sums as (
      select s.account_id, s.month, start, model, provider, route, sum(runs) as runs, sum(s.revenue) as revenue,
             sum(s.upstream_cost) as upstream_cost, sum(base) as base, sum(unknown) as unknown
        from margin_sums s left join ledger_openings n using (account_id)
       where step = 'day' and (n.month is null or start >= n.month) and start::timestamp at time zone 'UTC' > $1
         and start::timestamp at time zone 'UTC' <= $2 group by 1, 2, 3, 4, 5, 6)
    select account_id || ' ' || start as subject, 'sum and charges differ' as detail,
           greatest(abs(coalesce(s.revenue, 0) - coalesce(c.revenue, 0)),
             abs(coalesce(s.upstream_cost, 0) - coalesce(c.upstream_cost, 0))) as off_by
      from used c full join sums s using (account_id, month, start, model, provider, route)
     where (c.runs, c.revenue, c.upstream_cost, c.base, c.unknown) is distinct from
           (s.runs, s.revenue, s.upstream_cost, s.base, s.unknown)`,
};

const months: Rule = {
  name: 'sums of margins of a month are those of its days',
  sql: `with sums as (
      select account_id, month, step, model, provider, route, base_currency, sum(runs) as runs, sum(revenue) as revenue,
             sum(upstream_cost) as upstream_cost, sum(base) as base, sum(unknown) as unknown
        from margin_sums group by 1, 2, 3, 4, 5, 6, 7)
    select account_id || ' ' || month as subject, 'month and days differ' as detail,
           abs(coalesce(m.revenue, 0) - coalesce(d.revenue, 0)) as off_by
      from (select * from sums where step = 'month') m
      full join (select * from sums where step = 'day') d using (account_id, month, model, provider, route, base_currency)
     where (m.runs, m.revenue, m.upstream_cost, m.base, m.unknown) is distinct from
           (d.runs, d.revenue, d.upstream_cost, d.base, d.unknown)`,
};

/** Rules that only a full check looks at. */
export const full_rules: readonly Rule[] = [strangers, usage, margins, months];
