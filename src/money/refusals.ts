import type { Logger } from 'pino';
import type { Queryable } from '../db/database.ts';
import type { Refusal } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Counter } from '../metrics/registry.ts';

/** Requests that the service refused before any work, counted by account, hour and reason. */
export type Refusals = {
  note(caller: Refused, refusal: Refusal): void;
  /** Writes what is not written yet. */
  close(): Promise<void>;
};

/** The one who was refused: the key of the request, if there is one. */
type Refused = { account_id: string; key_id?: string | undefined };

/** Refusals that come within so long are written together. */
const together_ms = 3_000;

/** Rows of an account that an hour of a node tells apart; what is beyond them is counted by reason alone. */
const details_max = 200;

/** The same of all accounts together. */
const all_details_max = 20_000;

const hour_ms = 3_600_000;

type Row = { account_id: string; start_ms: number; key_id: string; count: number } & Refusal;

/** The parts of the app that counting refusals takes. */
type RefusalParts = {
  readonly db: Queryable;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly metrics: { readonly refusals: Counter };
};

/**
 * Counts in memory and writes one statement in three seconds at most, so a refused request costs no look at the
 * database. What cannot be written is written later; what was not written when a process dies is lost.
 */
export function openRefusals(
  { db, clock, log, metrics }: RefusalParts,
  onStop: (close: () => Promise<void>) => void,
): Pick<Refusals, 'note'> {
  const refusals = makeRefusals({ db, clock, log, metrics });
  onStop(() => refusals.close());
  return refusals;
}

/** Makes a counter whose owner closes it. */
export function makeRefusals({ db, clock, log, metrics }: RefusalParts): Refusals {
  const details = hourlyDetails();
  let unwritten = new Map<string, Row>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const add = (row: Row) => {
    const name = nameOf(row);
    const counted = unwritten.get(name);
    if (counted) counted.count += row.count;
    else unwritten.set(name, row);
  };
  const write = async () => {
    timer = undefined;
    const rows = unwritten;
    unwritten = new Map();
    if (rows.size === 0) return;
    try {
      await writeRows(db, [...rows.values()]);
    } catch (error) {
      log.warn({ err: error }, 'refusals could not be written');
      for (const row of rows.values()) add(row);
      writeSoon();
    }
  };
  const writeSoon = () => {
    timer ??= setTimeout(() => (writing = write()), together_ms).unref();
  };

  return {
    note({ account_id, key_id = '' }, refusal) {
      metrics.refusals.add({ reason: refusal.reason });
      const now_ms = clock.now();
      const row = { account_id, start_ms: now_ms - (now_ms % hour_ms), ...refusal, key_id, count: 1 };
      const { start_ms, reason } = row;
      add(details.has(row) ? row : { account_id, start_ms, key_id: '', reason, count: 1 });
      writeSoon();
    },
    async close() {
      clearTimeout(timer);
      await writing;
      await write();
      clearTimeout(timer);
    },
  };
}

function nameOf({ account_id, start_ms, reason, key_id, budget_id = '', model = '' }: Row): string {
  return JSON.stringify([account_id, start_ms, reason, key_id, budget_id, model]);
}

/** Tells which rows are told apart: the first ones of each account in each hour, so that nobody fills the table. */
function hourlyDetails(): { has(row: Row): boolean } {
  let hour = Number.NaN;
  let size = 0;
  const names_of = new Map<string, Set<string>>();
  return {
    has(row) {
      if (row.start_ms !== hour) {
        hour = row.start_ms;
        size = 0;
        names_of.clear();
      }
      const name = nameOf(row);
      const names = names_of.get(row.account_id) ?? new Set();
      if (names.has(name)) return true;
      if (names.size >= details_max || size >= all_details_max) return false;
      names_of.set(row.account_id, names.add(name));
      size += 1;
      return true;
    },
  };
}

/** Adds to the rows of other nodes, in one order for all. An account that is deleted meanwhile has no refusals. */
async function writeRows(db: Queryable, rows: readonly Row[]): Promise<void> {
  await db.query(
    `insert into refusals (account_id, start, reason, key_id, project_id, budget_id, model, count)
     select r.account_id, r.start, r.reason, r.key_id, coalesce(k.project_id, case when k.key_id is null then '' else 'default' end),
            r.budget_id, r.model, r.count
       from unnest($1::text[], $2::timestamptz[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
              as r (account_id, start, reason, key_id, budget_id, model, count)
       join balances b on b.account_id = r.account_id
       left join budgets own on own.key_id = r.key_id
       left join budgets k on k.key_id = coalesce(own.shares, own.key_id)
      order by 1, 2, 3, 4, 5, 6, 7
         on conflict (account_id, start, reason, key_id, project_id, budget_id, model)
         do update set count = refusals.count + excluded.count`,
    [
      rows.map(({ account_id }) => account_id),
      rows.map(({ start_ms }) => new Date(start_ms)),
      rows.map(({ reason }) => reason),
      rows.map(({ key_id }) => key_id),
      rows.map(({ budget_id }) => budget_id ?? ''),
      rows.map(({ model }) => model ?? ''),
      rows.map(({ count }) => count),
    ],
    'brief',
  );
}

/** Columns of groups; an empty text stands where a refusal has no such name. */
const columns = {
  hour: `to_char(start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:00:00"Z"')`,
  day: `to_char(start at time zone 'UTC', 'YYYY-MM-DD')`,
  reason: 'reason',
  model: 'model',
  key: 'key_id',
  project: 'project_id',
  budget: 'budget_id',
} as const;

export type RefusalGroup = keyof typeof columns;

const groups: readonly RefusalGroup[] = ['hour', 'day', 'reason', 'model', 'key', 'project', 'budget'];

/** Returns the group of this name; undefined if there is none. */
export function refusalGroupNamed(name: string): RefusalGroup | undefined {
  return groups.find((group) => group === name);
}

/** Hours that begin from `from` (inclusive) to `to` (exclusive); of one key, project, model or reason. */
export type RefusalFilter = {
  account_id: string;
  from: Date;
  to: Date;
  key?: string | undefined;
  project?: string | undefined;
  model?: string | undefined;
  reason?: string | undefined;
};

/** `names`: of the groups, in their order. */
export type RefusalRow = { names: readonly string[]; count: number };

/** Groups of one report. */
export const refusal_rows_max = 1_000;

/** Returns the refusals of an account, grouped, the most first. */
export async function refusalsOf(
  db: Queryable,
  { account_id, from, to, key, project, model, reason }: RefusalFilter,
  group_by: readonly RefusalGroup[],
  rows_max = refusal_rows_max,
): Promise<RefusalRow[]> {
  const names = group_by.map((group) => columns[group]);
  return db.query<RefusalRow>(
    `select array[${names.join(', ')}]::text[] as names, sum(count)::float8 as count
       from refusals
      where account_id = $1 and start >= date_trunc('hour', $2::timestamptz, 'UTC') and start < $3
        and ($4::text is null or key_id = $4) and ($5::text is null or reason = $5)
        and ($6::text is null or project_id = $6) and ($7::text is null or model = $7)
      group by 1 order by count desc, names limit ${rows_max}`,
    [account_id, from, to, key ?? null, reason ?? null, project ?? null, model ?? null],
  );
}

/** Returns how many requests each budget of an account has refused since these moments, which begin an hour. */
export async function refusedByBudgets(
  db: Queryable,
  account_id: string,
  budgets: readonly { id: string; begins_at: Date | null }[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ id: string; count: number }>(
    `select b.id, sum(r.count)::float8 as count
       from unnest($2::text[], $3::timestamptz[]) as b (id, begins_at)
       join refusals r on r.account_id = $1 and r.budget_id = b.id and (b.begins_at is null or r.start >= b.begins_at)
      group by 1`,
    [account_id, budgets.map(({ id }) => id), budgets.map(({ begins_at }) => begins_at)],
  );
  return new Map(rows.map(({ id, count }) => [id, count]));
}

/** A row as an export has it; an empty text stands where a refusal has no such name. */
export type RefusalRecord = {
  start: Date;
  reason: string;
  key_id: string;
  project_id: string;
  budget_id: string;
  model: string;
  count: number;
};

const export_page = 1_000;

/** Returns all refusals of an account, oldest first. */
export async function* allRefusals(db: Queryable, account_id: string): AsyncGenerator<RefusalRecord> {
  const name = 'start, reason, key_id, project_id, budget_id, model';
  for (let last: RefusalRecord | undefined; ;) {
    const rows: RefusalRecord[] = await db.query<RefusalRecord>(
      `select ${name}, count::float8 as count from refusals
        where account_id = $1 ${last ? `and (${name}) > ($2, $3, $4, $5, $6, $7)` : ''}
        order by ${name} limit ${export_page}`,
      [
        account_id,
        ...(last ? [last.start, last.reason, last.key_id, last.project_id, last.budget_id, last.model] : []),
      ],
    );
    yield* rows;
    last = rows.at(-1);
    if (rows.length < export_page) return;
  }
}

const batch_max = 500;

/** Removes those of hours before this time. */
export async function removeOldRefusals(db: Queryable, before: Date, stopped?: AbortSignal): Promise<void> {
  for (let removed = batch_max; removed === batch_max && !stopped?.aborted;) {
    const rows = await db.query(
      `delete from refusals where ctid = any(array(select ctid from refusals where start < $1 order by start limit ${batch_max}))
       returning 1`,
      [before],
    );
    removed = rows.length;
  }
}
