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
  /** In the same currency, by the rate that was frozen for each run. */
  upstream_cost: Money;
  /** revenue − upstream_cost */
  margin: Money;
  /** The same cost in the base currency of its time; several only after that was changed. */
  base: { currency: string; cost: Money }[];
  /** Runs, calls and tries of which nobody knows what the upstream charges. They are in no sum. */
  unknown: bigint;
};

const names: Record<MarginGroup, string> = {
  model: 'model',
  route: 'route',
  provider: 'provider',
  account: 'account_id',
  day: `to_char(created_at at time zone 'UTC', 'YYYY-MM-DD')`,
};

/**
 * Revenue, upstream cost and margin of a month (its first day), from the ledger alone. Grouped by currency too:
 * sums over several would depend on the rate of the day on which one looks. An entry counts in the month in
 * which it was written for callers too.
 */
export async function marginsOf(db: Queryable, month: string, by: MarginGroup): Promise<MarginRow[]> {
  type Row = Omit<MarginRow, 'base'> & { base: { currency: string; cost: string }[] };
  const rows = await db.query<Row>(
    `with used as (
       select ${names[by]} as name, currency, type, revenue + loss as revenue, upstream_cost, base_currency,
              coalesce(upstream_base, 0) as base, upstream_unknown,
              type = 'settle' and upstream_basis is null as is_unreported
         from ledger_entries
        where month = $1::date and (type = 'settle' or upstream_basis is not null)),
     summed as (
       select name, currency, count(*) filter (where type <> 'upstream') as runs, sum(revenue)::bigint as revenue,
              sum(upstream_cost)::bigint as upstream_cost, (sum(revenue) - sum(upstream_cost))::bigint as margin,
              (sum(upstream_unknown) + count(*) filter (where is_unreported))::bigint as unknown
         from used group by name, currency),
     based as (
       select name, currency, jsonb_agg(jsonb_build_object('currency', base_currency, 'cost', cost::text)
                order by base_currency) as base
         from (select name, currency, base_currency, sum(base)::bigint as cost from used
                where base_currency is not null group by name, currency, base_currency) b
        group by name, currency)
     select s.*, coalesce(b.base, '[]') as base
       from summed s left join based b on b.name is not distinct from s.name and b.currency = s.currency
      order by s.currency, s.name nulls last`,
    [month],
  );
  return rows.map((row) => ({
    ...row,
    base: row.base.map(({ currency, cost }) => ({ currency, cost: BigInt(cost) })),
  }));
}
