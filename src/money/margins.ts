import type { Queryable } from '../db/database.ts';
import type { Money } from './money.ts';

export const margin_groups = ['model', 'route', 'provider', 'account', 'day'] as const;

/** A grouping of margins. */
export type MarginGroup = (typeof margin_groups)[number];

/** Runs and calls of one model (route, …) of accounts in one currency. */
export type MarginRow = {
  /** Null: settled before upstream costs were kept, or on no route. */
  name: string | null;
  currency: string;
  /** Runs and calls that upstreams charge, or may charge, for, and those that callers paid for. */
  runs: bigint;
  /** Charges of the callers. */
  revenue: Money;
  /** The upstream's cost in the same currency, by the rate that was frozen for each run. */
  upstream_cost: Money;
  /** revenue − upstream_cost */
  margin: Money;
  /** The same cost in the base currency of its time; several only after that was changed. */
  base: { currency: string; cost: Money }[];
  /** Runs, calls and tries of which nobody knows what the upstream charges. They are in no sum. */
  unknown: bigint;
};

const names: Record<MarginGroup, string> = {
  model: `nullif(model, '')`,
  route: `nullif(route, '')`,
  provider: `nullif(provider, '')`,
  account: 'account_id',
  day: `to_char(start, 'YYYY-MM-DD')`,
};

/**
 * Entries of the month that are in no sum yet, as rows of the sums. One index range per account: the sums are a few
 * minutes behind at most.
 */
const tail = `
  select e.account_id, (e.created_at at time zone 'UTC')::date as start, e.model, e.provider, e.route,
         coalesce(e.base_currency, '') as base_currency, case e.type when 'upstream' then 0 else 1 end as runs,
         e.revenue + e.loss as revenue, e.upstream_cost, coalesce(e.upstream_base, 0) as base,
         e.upstream_unknown + case when e.type = 'settle' and e.upstream_basis is null then 1 else 0 end as unknown
    from balances b left join usage_marks m using (account_id)
    cross join lateral (select * from ledger_entries e where e.account_id = b.account_id
      and e.number > coalesce(m.margins, 0) and e.number <= b.entries offset 0) e
   where b.entries > coalesce(m.margins, 0) and e.month = $1::date and (e.type = 'settle' or e.upstream_basis is not null)`;

/**
 * Revenue, upstream cost and margin of a month (its first day): from the sums of the ledger, and its entries since, in
 * one snapshot. Grouped by currency too: sums over several would depend on the rate of the day on which one looks. An
 * entry counts in the month in which it was written for callers too.
 */
export async function marginsOf(db: Queryable, month: string, by: MarginGroup): Promise<MarginRow[]> {
  type Row = Omit<MarginRow, 'base'> & { base: { currency: string; cost: string }[] };
  const rows = await db.query<Row>(
    `with used as (
       select ${names[by]} as name, b.currency, base_currency, runs, revenue, upstream_cost, base, unknown
         from (select account_id, start, model, provider, route, base_currency, runs, revenue, upstream_cost, base, unknown
                 from margin_sums where month = $1::date and step = $2
               union all ${tail}) u join balances b using (account_id)),
     summed as (
       select name, currency, sum(runs)::bigint as runs, sum(revenue)::bigint as revenue,
              sum(upstream_cost)::bigint as upstream_cost, (sum(revenue) - sum(upstream_cost))::bigint as margin,
              sum(unknown)::bigint as unknown
         from used group by name, currency),
     based as (
       select name, currency, jsonb_agg(jsonb_build_object('currency', base_currency, 'cost', cost::text)
                order by base_currency) as base
         from (select name, currency, base_currency, sum(base)::bigint as cost from used
                where base_currency <> '' group by name, currency, base_currency) b
        group by name, currency)
     select s.*, coalesce(b.base, '[]') as base
       from summed s left join based b on b.name is not distinct from s.name and b.currency = s.currency
      order by s.currency, s.name nulls last`,
    [month, by === 'day' ? 'day' : 'month'],
  );
  return rows.map((row) => ({
    ...row,
    base: row.base.map(({ currency, cost }) => ({ currency, cost: BigInt(cost) })),
  }));
}
