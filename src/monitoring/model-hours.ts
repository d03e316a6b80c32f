import { speedOf } from '../chat/speed.ts';
import type { Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';

/** Hours of each model, in the numbers of the page Speed: how many calls it had, how many failed, how long they took. */

const hour_ms = 3_600_000;
const day_ms = 24 * hour_ms;

/** Work of an hour may end this much later, and is counted then. */
const late_ms = 2 * hour_ms;

/** Hours before these are not added up any more: after a longer pause of the workers they stay empty. */
const catch_up_ms = 3 * day_ms;

/** Days for which hours are kept, today with them. */
const status_days = 90;

/** So many hours of models are added up at once. */
const rows_max = 100_000;

/** Adds up the hours that are not complete, and removes those that are kept no longer. */
export async function addUpModelHours({ db, clock }: { readonly db: Queryable; readonly clock: Clock }): Promise<void> {
  const now_ms = clock.now();
  const [last] = await db.query<{ start: Date | null }>('select max(start) as start from model_hours');
  const from_ms = Math.max(now_ms - catch_up_ms, (last?.start?.getTime() ?? 0) - late_ms);
  const from = new Date(from_ms - (from_ms % hour_ms));
  const range = { account_id: undefined, from, to: new Date(now_ms + 1) };
  const rows = await speedOf(db, range, ['model', 'hour'], rows_max);
  await db.query(
    `insert into model_hours (model, start, calls, failed, first_p50_ms, total_p50_ms)
     select * from unnest($1::text[], $2::timestamptz[], $3::integer[], $4::integer[], $5::integer[], $6::integer[])
         on conflict (model, start) do update set calls = excluded.calls, failed = excluded.failed,
            first_p50_ms = excluded.first_p50_ms, total_p50_ms = excluded.total_p50_ms
      where excluded.calls >= model_hours.calls -- records may have been removed since`,
    [
      rows.map(({ names }) => names[0]),
      rows.map(({ names }) => names[1]),
      rows.map(({ count }) => count),
      rows.map(({ failed }) => failed),
      rows.map(({ first_p50_ms }) => first_p50_ms),
      rows.map(({ total_p50_ms }) => total_p50_ms),
    ],
  );
  await db.query('delete from model_hours where start < $1', [firstDay(now_ms)]);
}

/** `served`: the share of calls that did not fail; null on days without calls. */
export type ServedDay = { day: string; served: number | null };

export type ServiceStatistics = {
  days: ServedDay[];
  /** The share of served calls in the last 24 hours; null without calls. */
  served: number | null;
  first_p50_ms: number | null;
  total_p50_ms: number | null;
};

type DayRow = { model: string; day: string; calls: number; failed: number };
type HourRow = Pick<ServiceStatistics, 'first_p50_ms' | 'total_p50_ms'> & {
  model: string;
  calls: number;
  failed: number;
};

/** Returns how each model served on the last `status_days` days (UTC, oldest first) and in the last 24 hours. */
export async function servedByModel(db: Queryable, now_ms: number): Promise<(model: string) => ServiceStatistics> {
  const days = await db.query<DayRow>(
    `select model, to_char(start at time zone 'UTC', 'YYYY-MM-DD') as day, sum(calls)::float8 as calls, sum(failed)::float8 as failed
       from model_hours where start >= $1 group by 1, 2`,
    [firstDay(now_ms)],
  );
  const hours = await db.query<HourRow>(
    'select model, calls, failed, first_p50_ms, total_p50_ms from model_hours where start >= $1',
    [new Date(now_ms - day_ms)],
  );
  const days_of = Map.groupBy(days, ({ model }) => model);
  const hours_of = Map.groupBy(hours, ({ model }) => model);
  return (model) => {
    const shares = new Map((days_of.get(model) ?? []).map((row) => [row.day, shareServed([row])]));
    const last = hours_of.get(model) ?? [];
    return {
      days: lastDays(now_ms).map((day) => ({ day, served: shares.get(day) ?? null })),
      served: shareServed(last),
      first_p50_ms: middle(last.map(({ calls, first_p50_ms }) => [calls, first_p50_ms])),
      total_p50_ms: middle(last.map(({ calls, total_p50_ms }) => [calls, total_p50_ms])),
    };
  };
}

function shareServed(rows: readonly { calls: number; failed: number }[]): number | null {
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const calls = sum(rows.map((row) => row.calls));
  return calls === 0 ? null : 1 - sum(rows.map((row) => row.failed)) / calls;
}

/** Returns the median of hours' medians, each as often as it has calls: near the median of the calls themselves. */
function middle(hours: readonly (readonly [calls: number, ms: number | null])[]): number | null {
  const measured = hours
    .flatMap(([calls, ms]) => (ms === null ? [] : [{ calls, ms }]))
    .toSorted((one, other) => one.ms - other.ms);
  let rest = measured.reduce((total, { calls }) => total + calls, 0) / 2;
  for (const { calls, ms } of measured) {
    rest -= calls;
    if (rest <= 0) return ms;
  }
  return null;
}

function lastDays(now_ms: number): string[] {
  return Array.from({ length: status_days }, (_, index) => dayText(now_ms - (status_days - 1 - index) * day_ms));
}

function firstDay(now_ms: number): Date {
  return new Date(`${dayText(now_ms - (status_days - 1) * day_ms)}T00:00:00Z`);
}

function dayText(at_ms: number): string {
  return new Date(at_ms).toISOString().slice(0, 10);
}
