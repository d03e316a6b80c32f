import type { Queryable } from '../db/database.ts';
import { assert } from '../lib/assert.ts';
import type { Money } from './money.ts';

export type UsageGroup = 'hour' | 'day' | 'model' | 'key' | 'modality';

export type UsageRow = {
  hour?: string;
  day?: string;
  model?: string;
  key?: string;
  modality?: string;
  charges: bigint;
  cost: Money;
  /** unit → decimal text, summed over the charges. */
  units: Record<string, string>;
};

/** Which charges: those of one model, key or modality, or of several of these at once. */
export type UsageFilter = { model?: string | undefined; key?: string | undefined; modality?: string | undefined };

export type UsageRange = { account_id: string; from: Date; to: Date; only?: UsageFilter };

const group_columns: Record<UsageGroup, string> = {
  hour: `to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"') as hour`,
  day: `to_char(at at time zone 'UTC', 'YYYY-MM-DD') as day`,
  model: 'model',
  key: 'key_id as key',
  modality: 'kind as modality',
};

/**
 * Returns the charges from `from` (inclusive) to `to` (exclusive), grouped. Read from the ledger and its sums
 * in one snapshot: usage and money cannot disagree.
 */
export async function usageOf(db: Queryable, range: UsageRange & { group_by: UsageGroup[] }): Promise<UsageRow[]> {
  const { account_id, from, to, only = {} } = range;
  const groups = [...new Set(range.group_by)];
  assert(
    groups.every((group) => Object.hasOwn(group_columns, group)),
    'usage is grouped by known names, which become part of the statement',
  );
  const columns = groups.map((group) => group_columns[group]);
  const names = groups.map((group) => `"${group}"`);
  const list = (items: string[]) => items.map((item) => `${item}, `).join('');
  const grouped = names.length > 0 ? `group by ${names.join(', ')}` : '';
  const { sums, rest } = partsOf(from, to, groups.includes('hour'));
  return db.query<UsageRow>(
    `with ${charges_in_range},
     charges as (select ${list(columns)}charges, cost, units from found
        where ($9::text is null or model = $9) and ($10::text is null or key_id = $10) and ($11::text is null or kind = $11)),
     summed as (select ${list(names)}sum(charges)::bigint as charges, sum(cost)::bigint as cost from charges
        ${grouped || 'having count(*) > 0'}),
     used as (select ${list(names)}jsonb_object_agg(unit, amount) as units from (
         select ${list(names)}unit, trim_scale(sum(amount::numeric))::text as amount
           from charges, jsonb_each_text(units) as u (unit, amount) group by ${list(names)}unit) t ${grouped})
     select s.*, coalesce(u.units, '{}') as units from summed s left join used u on ${
       names.map((name) => `s.${name} = u.${name}`).join(' and ') || 'true'
     } ${names.length > 0 ? `order by ${names.map((name) => `s.${name}`).join(', ')}` : ''}`,
    [
      account_id,
      from,
      to,
      sums.map(({ step }) => step),
      sums.map((part) => part.from),
      sums.map((part) => part.to),
      rest.map((part) => part.from),
      rest.map((part) => part.to),
      only.model ?? null,
      only.key ?? null,
      only.modality ?? null,
    ],
  );
}

/**
 * Charges in a range. Before the account's mark they come from the sums of whole days and hours, and from the
 * ledger for the incomplete ones; after it from the ledger alone. `offset 0` forces one index range each. Each
 * range has both ends: with one alone the planner expects a third of the account and reads the whole table.
 */
const charges_in_range = `mark as materialized (
       select coalesce(m.number, 0) as number, b.entries
         from balances b left join usage_marks m using (account_id) where b.account_id = $1),
     found as (
       select s.start as at, s.model, s.key_id, s.kind, s.charges, s.cost, s.units
         from unnest($4::text[], $5::timestamptz[], $6::timestamptz[]) p (step, first, next)
         cross join lateral (select * from usage_sums s
           where s.account_id = $1 and s.step = p.step and s.start >= p.first and s.start < p.next offset 0) s
       union all
       select e.created_at, e.model, e.key_id, e.kind, 1, e.revenue + e.loss, e.units
         from mark m, unnest($7::timestamptz[], $8::timestamptz[]) p (first, next)
         cross join lateral (select * from ledger_entries e where e.account_id = $1 and e.type = 'settle'
           and e.created_at >= p.first and e.created_at < p.next offset 0) e
        where e.number <= m.number
       union all
       select e.created_at, e.model, e.key_id, e.kind, 1, e.revenue + e.loss, e.units
         from mark m cross join lateral (
           select * from ledger_entries e
            where e.account_id = $1 and e.number > m.number and e.number <= m.entries offset 0) e
        where e.type = 'settle' and e.created_at >= $2 and e.created_at < $3)`;

type Part = { from: Date; to: Date };

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

/** A range as whole days and hours, of which there are sums, and what is left at its ends. */
function partsOf(from: Date, to: Date, by_hour: boolean): { sums: (Part & { step: 'hour' | 'day' })[]; rest: Part[] } {
  const [first_ms, last_ms] = [from.getTime(), to.getTime()];
  const [up, down] = [
    (step_ms: number) => first_ms + ((step_ms - (first_ms % step_ms)) % step_ms),
    (step_ms: number) => last_ms - (last_ms % step_ms),
  ];
  const [hours_ms, hours_end_ms] = [up(hour_ms), down(hour_ms)];
  if (hours_ms >= hours_end_ms) return { sums: [], rest: [{ from, to }] };
  const [days_ms, days_end_ms] = [up(day_ms), down(day_ms)];
  const part = (begin_ms: number, end_ms: number): Part => ({ from: new Date(begin_ms), to: new Date(end_ms) });
  const hours = (begin_ms: number, end_ms: number) => ({ step: 'hour' as const, ...part(begin_ms, end_ms) });
  const sums =
    by_hour || days_ms >= days_end_ms
      ? [hours(hours_ms, hours_end_ms)]
      : [
          hours(hours_ms, days_ms),
          { step: 'day' as const, ...part(days_ms, days_end_ms) },
          hours(days_end_ms, hours_end_ms),
        ];
  const rest = [part(first_ms, hours_ms), part(hours_end_ms, last_ms)];
  const is_some = (each: Part) => each.from < each.to;
  return { sums: sums.filter(is_some), rest: rest.filter(is_some) };
}

/** Number of entries that may be behind before they are summed, and number of them per transaction. */
const behind_max = 1_000;
const batch = 20_000;

const functions = ['add_up_usage', 'add_up_margins'] as const;

/**
 * Brings the sums of all accounts up to date that are `behind` their ledger by so many entries. Returns how many
 * accounts those were.
 */
export async function addUpUsage(
  db: Queryable,
  { behind = behind_max, stopped }: { behind?: number; stopped?: AbortSignal } = {},
): Promise<number> {
  const accounts = await db.query<{ account_id: string }>(
    `select account_id from balances b left join usage_marks m using (account_id)
      where b.entries - coalesce(least(m.number, m.margins), 0) >= $1 order by account_id`,
    [behind],
  );
  for (const { account_id } of accounts) {
    for (const name of functions) {
      let left = 1n;
      while (left > 0n && !stopped?.aborted) {
        const rows = await db.query<{ left: bigint }>(`select ${name}($1, $2) as left`, [account_id, batch]);
        left = rows[0]?.left ?? 0n;
      }
    }
  }
  return accounts.length;
}

/** One charge, as the page's raw rows tell it. */
export type Charge = {
  number: bigint;
  created_at: Date;
  ref: string;
  model: string;
  kind: string;
  key_id: string;
  cost: Money;
  units: Record<string, string> | null;
};

const page = 1_000;

/** Every charge of a range, oldest first, read page by page as they are taken. */
export async function* chargesOf(db: Queryable, range: UsageRange): AsyncGenerator<Charge> {
  const { account_id, from, to, only = {} } = range;
  let last: Pick<Charge, 'created_at' | 'number'> = { created_at: from, number: 0n };
  while (true) {
    const rows: Charge[] = await db.query<Charge>(
      `select number, created_at, ref, model, kind, key_id, revenue + loss as cost, units from ledger_entries
        where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3
          and (created_at > $2 or number > $4)
          and ($5::text is null or model = $5) and ($6::text is null or key_id = $6) and ($7::text is null or kind = $7)
        order by created_at, number limit ${page}`,
      [account_id, last.created_at, to, last.number, only.model ?? null, only.key ?? null, only.modality ?? null],
    );
    yield* rows;
    const end = rows.at(-1);
    if (!end || rows.length < page) return;
    last = end;
  }
}
