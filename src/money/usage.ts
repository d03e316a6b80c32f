import type { Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { assert } from '../lib/assert.ts';
import { columnOf, groupNamed, isLabel, type Bind, type LedgerGroup, type UsageGroup } from './groups.ts';
import type { Money } from './money.ts';

/** A label is null where a charge has none. */
type Names = { [group in LedgerGroup]?: string } & { user?: string | null; tag?: string | null } & {
  [pair: `metadata.${string}`]: string | null;
};

export type UsageRow = Names & {
  charges: bigint;
  cost: Money;
  /** unit → decimal text, summed over the charges. */
  units: Record<string, string>;
};

/** Which charges: those of one model, key, project or modality, or of several of these at once; `projects`: of any of these. */
export type UsageFilter = { [group in 'model' | 'key' | 'project' | 'modality']?: string | undefined } & {
  projects?: readonly string[] | undefined;
};

export type UsageRange = { account_id: string; from: Date; to: Date; only?: UsageFilter };

/** Rows of a report by labels: the most expensive ones. Callers may have a name for each of a million end users. */
export const labelled_rows_max = 10_000;

/**
 * Returns the charges from `from` (inclusive) to `to` (exclusive), grouped, in the order of the groups. Read from the
 * ledger and its sums in one snapshot: usage and money cannot disagree. Labels come from the records of calls and
 * tasks: a charge whose record is no longer kept has none, one with several tags counts in each, and there are at most
 * `labelled_rows_max` rows.
 */
export async function usageOf(db: Queryable, range: UsageRange & { group_by: UsageGroup[] }): Promise<UsageRow[]> {
  const groups = [...new Set(range.group_by)];
  assert(
    groups.every((group) => groupNamed(group) !== undefined),
    'usage is grouped by known names, which become part of the statement',
  );
  const has_labels = groups.some(isLabel);
  const source = has_labels
    ? labelledCharges(range, groups.includes('tag'))
    : summedCharges(range, groups.includes('hour'));
  const values = [...source.values];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const { model, key, project, modality, projects } = range.only ?? {};
  const filter = (column: string, only: string | undefined) =>
    only === undefined ? [] : [`${column} = ${bind(only)}`];
  const filters = [
    ...filter('model', model),
    ...filter('key_id', key),
    ...filter('project_id', project),
    ...filter('kind', modality),
    ...(projects ? [`project_id = any(${bind(projects)})`] : []),
  ];
  const columns = groups.map((group, index) => `${columnOf(group, bind)} as g${index}, `).join('');
  const names = groups.map((_, index) => `g${index}`);
  const list = names.map((name) => `${name}, `).join('');
  const grouped = names.length > 0 ? `group by ${names.join(', ')}` : '';
  const order = [...(has_labels ? ['s.cost desc'] : []), ...names.map((name) => `s.${name}`)];
  const rows = await db.query<GroupedRow>(
    `with ${source.text},
     charges as (select ${columns}charges, cost, units from found ${filters.length > 0 ? `where ${filters.join(' and ')}` : ''}),
     summed as (select ${list}sum(charges)::bigint as charges, sum(cost)::bigint as cost from charges
        ${grouped || 'having count(*) > 0'}),
     used as (select ${list}jsonb_object_agg(unit, amount) as units from (
         select ${list}unit, trim_scale(sum(amount::numeric))::text as amount
           from charges, jsonb_each_text(units) as u (unit, amount) group by ${list}unit) t ${grouped})
     select s.*, coalesce(u.units, '{}') as units from summed s left join used u on ${
       names.map((name) => `s.${name} = u.${name}`).join(' and ') || 'true'
     } ${order.length > 0 ? `order by ${order.join(', ')}` : ''} ${has_labels ? `limit ${labelled_rows_max}` : ''}`,
    values,
  );
  const sorted = has_labels ? rows.toSorted((a, b) => compare(a, b, groups.length)) : rows;
  return sorted.map((row) => named(row, groups));
}

type GroupedRow = { [name: `g${number}`]: string; charges: bigint; cost: Money; units: Record<string, string> };

function compare(a: GroupedRow, b: GroupedRow, groups: number): number {
  for (let index = 0; index < groups; index += 1) {
    const [left = '', right = ''] = [a[`g${index}`], b[`g${index}`]];
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

function named({ charges, cost, units, ...values }: GroupedRow, groups: readonly UsageGroup[]): UsageRow {
  const names: Names = {};
  for (const [index, group] of groups.entries()) {
    const value = values[`g${index}`] ?? '';
    if (isLabel(group)) names[group] = value === '' ? null : value;
    else names[group] = value;
  }
  return { ...names, charges, cost, units };
}

type Source = { text: string; values: readonly unknown[] };

function summedCharges({ account_id, from, to }: UsageRange, by_hour: boolean): Source {
  const { sums, rest } = partsOf(from, to, by_hour);
  const bounds = [sums.map((part) => part.from), sums.map((part) => part.to)];
  const bounds_of_rest = [rest.map((part) => part.from), rest.map((part) => part.to)];
  const steps = sums.map(({ step }) => step);
  return { text: charges_in_range, values: [account_id, from, to, steps, ...bounds, ...bounds_of_rest] };
}

function labelledCharges({ account_id, from, to }: UsageRange, by_tag: boolean): Source {
  return {
    text: 'found as (select l.*, 1 as charges from charges_with_labels($1, $2, $3, $4) l)',
    values: [account_id, from, to, by_tag],
  };
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
       select s.start as at, s.model, s.key_id, s.project_id, s.kind, s.charges, s.cost, s.units
         from unnest($4::text[], $5::timestamptz[], $6::timestamptz[]) p (step, first, next)
         cross join lateral (select * from usage_sums s
           where s.account_id = $1 and s.step = p.step and s.start >= p.first and s.start < p.next offset 0) s
       union all
       select e.created_at, e.model, e.key_id, coalesce(e.project_id, 'default'), e.kind, 1, e.revenue + e.loss, e.units
         from mark m, unnest($7::timestamptz[], $8::timestamptz[]) p (first, next)
         cross join lateral (select * from ledger_entries e where e.account_id = $1 and e.type = 'settle'
           and e.created_at >= p.first and e.created_at < p.next offset 0) e
        where e.number <= m.number
       union all
       select e.created_at, e.model, e.key_id, coalesce(e.project_id, 'default'), e.kind, 1, e.revenue + e.loss, e.units
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

/** For backups: entries that are in no sums yet change those of their hours and days alone. */
export const growing_usage: GrowingTable = {
  name: 'public.usage_sums',
  keys: ['step', 'start', 'key_id', 'model', 'kind', 'project_id'],
  changing: `(select u.* from moments m cross join (values ('hour'), ('day')) v (step) cross join lateral (
    select * from usage_sums s where s.account_id = m.account_id and s.step = v.step
      and s.start >= date_trunc(v.step, m.summed_to, 'UTC') offset 0) u)`,
  is_later: `r.start >= date_trunc(r.step, m.summed_to, 'UTC')`,
};

/** For backups: the same of their months and days. No entry is of a month before the one it was made in. */
export const growing_margins: GrowingTable = {
  name: 'public.margin_sums',
  keys: ['month', 'step', 'start', 'model', 'provider', 'route', 'base_currency'],
  changing: `(select u.* from moments m cross join (values ('month'), ('day')) v (step) cross join lateral (
    select * from margin_sums s where s.account_id = m.account_id and s.month >= month_of(m.summed_to) and s.step = v.step
      and s.start >= date_trunc(v.step, m.summed_to at time zone 'UTC')::date offset 0) u)`,
  is_later: `r.start >= date_trunc(r.step, m.summed_to at time zone 'UTC')::date`,
};

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

/** Calls and tasks whose labels are looked at, the newest of each. */
const looked_at = 1_000;

/** Returns the names of metadata on the account's newest calls and tasks, each once, by the alphabet; at most 50. */
export async function pairNames(db: Queryable, account_id: string): Promise<string[]> {
  const rows = await db.query<{ name: string }>('select name from pair_names($1, $2)', [account_id, looked_at]);
  return rows.map(({ name }) => name);
}

/** One charge, as the page's raw rows tell it. */
export type Charge = {
  number: bigint;
  created_at: Date;
  ref: string;
  model: string;
  kind: string;
  key_id: string;
  project_id: string;
  cost: Money;
  units: Record<string, string> | null;
};

const page = 1_000;

function orNull(value: string | undefined): string | null {
  return value ?? null;
}

/** Every charge of a range, oldest first, in pages that are read as they are taken. */
export async function* chargesOf(db: Queryable, range: UsageRange): AsyncGenerator<Charge[]> {
  const { account_id, from, to, only = {} } = range;
  let last: Pick<Charge, 'created_at' | 'number'> = { created_at: from, number: 0n };
  while (true) {
    const rows: Charge[] = await db.query<Charge>(
      `select number, created_at, ref, model, kind, key_id, coalesce(project_id, 'default') as project_id,
              revenue + loss as cost, units from ledger_entries
        where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3
          and (created_at > $2 or number > $4)
          and ($5::text is null or model = $5) and ($6::text is null or key_id = $6) and ($7::text is null or kind = $7)
          and ($8::text is null or coalesce(project_id, 'default') = $8)
          and ($9::text[] is null or coalesce(project_id, 'default') = any($9))
        order by created_at, number limit ${page}`,
      [
        account_id,
        last.created_at,
        to,
        last.number,
        ...[only.model, only.key, only.modality, only.project].map(orNull),
        only.projects ?? null,
      ],
    );
    yield rows;
    const end = rows.at(-1);
    if (!end || rows.length < page) return;
    last = end;
  }
}
