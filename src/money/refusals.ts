import type { Logger } from 'pino';
import { isLocked, isUnacceptable, type Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import type { ApiError, Refusal } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Counter } from '../metrics/registry.ts';

/** Requests that the service refused before any work, counted by account, hour and reason. */
export type Refusals = {
  note(caller: { account_id: string; key_id?: string | undefined }, refusal: Refusal): void;
  /** Writes what is not written yet. */
  flush(): Promise<void>;
  /** The same, for the last time. */
  close(): Promise<void>;
};

/** Refusals that come within so long are written together. */
const together_ms = 3_000;

/** Rows of one statement. */
const statement_rows_max = 1_000;

/** Rows of an account that an hour of a node tells apart; what is beyond them is counted by reason alone. */
const details_max = 200;

/** The same of all accounts together. */
const all_details_max = 20_000;

/** Rows that wait to be written, of all hours; what is beyond them is counted by reason alone, or not at all. */
const waiting_details_max = 20_000;
const waiting_max = 2 * waiting_details_max;

const hour_ms = 3_600_000;

type Row = { account_id: string; start_ms: number; key_id: string; count: number } & Refusal;

/** The parts of the app that counting refusals takes. */
type RefusalParts = {
  readonly db: Queryable;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  readonly metrics: { readonly refusals: Counter; readonly refusals_lost: Counter };
};

/**
 * Counts in memory and writes every three seconds at most, so a refused request costs no look at the database. What
 * cannot be written is written later; what was not written when a process dies is lost.
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
  const lose = ({ count }: Row) => metrics.refusals_lost.add({}, count);
  const waiting = waitingRows(lose);
  let timer: NodeJS.Timeout | undefined;
  let is_closed = false;
  let writing: Promise<void> = Promise.resolve();

  const write = async () => {
    const { unwritten, unacceptable, error } = await writeRows(db, waiting.take());
    if (error) log.warn({ err: error }, 'refusals could not be written');
    for (const row of unacceptable) lose(row);
    for (const row of unwritten) waiting.add(row);
    if (waiting.size() > 0) writeSoon();
  };
  const flush = () => {
    clearTimeout(timer);
    timer = undefined;
    return (writing = writing.then(write));
  };
  const writeSoon = () => {
    if (!is_closed) timer ??= setTimeout(() => void flush(), together_ms).unref();
  };

  return {
    note({ account_id, key_id = '' }, refusal) {
      metrics.refusals.add({ reason: refusal.reason });
      const now_ms = clock.now();
      const row = { account_id, start_ms: now_ms - (now_ms % hour_ms), ...refusal, key_id, count: 1 };
      if (is_closed) return lose(row);
      waiting.add(details.has(row) ? row : withoutDetails(row));
      writeSoon();
    },
    flush,
    async close() {
      is_closed = true;
      await flush();
      waiting.take().forEach(lose);
    },
  };
}

/** Counts the refusal of a call that has failed, if it was refused: for the account of its key or its session, if it had a right one. */
export function noteRefusal(
  refusals: Pick<Refusals, 'note'>,
  caller: { account?: { id: string } | undefined; key?: { id: string } | undefined } | undefined,
  { extras: { refusal } }: ApiError,
): void {
  if (!refusal || !caller?.account) return;
  refusals.note({ account_id: caller.account.id, key_id: caller.key?.id ?? refusal.key_id }, refusal);
}

function withoutDetails({ account_id, start_ms, reason, count }: Row): Row {
  return { account_id, start_ms, key_id: '', reason, count };
}

/** Rows to be written, added up: while the database is away they are bounded, and what has no room is lost. */
function waitingRows(lose: (row: Row) => void): { add(row: Row): void; take(): Row[]; size(): number } {
  let rows = new Map<string, Row>();
  const hasAdded = (row: Row, size_max: number): boolean => {
    const name = nameOf(row);
    const counted = rows.get(name);
    if (counted) counted.count += row.count;
    else if (rows.size < size_max) rows.set(name, row);
    else return false;
    return true;
  };
  return {
    add(row) {
      if (!hasAdded(row, waiting_details_max) && !hasAdded(withoutDetails(row), waiting_max)) lose(row);
    },
    take() {
      const taken = [...rows.values()];
      rows = new Map();
      return taken;
    },
    size: () => rows.size,
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

type Written = { unwritten: Row[]; unacceptable: Row[]; error: unknown };

/**
 * Writes rows, some in each statement. Where the database does not take the values of a statement, its halves are tried,
 * so that one row holds back no other. Returns what may be written later, and what never; `error` is the last one.
 */
async function writeRows(db: Queryable, rows: readonly Row[]): Promise<Written> {
  const written: Written = { unwritten: [], unacceptable: [], error: undefined };
  const statements: Row[][] = [];
  for (let from = 0; from < rows.length; from += statement_rows_max)
    statements.push(rows.slice(from, from + statement_rows_max));
  for (let some = statements.shift(); some; some = statements.shift()) {
    try {
      await writeSome(db, some);
    } catch (error) {
      written.error = error;
      const half = some.length >> 1;
      if (!isUnacceptable(error))
        written.unwritten.push(...some, ...(isLocked(error) ? [] : statements.splice(0).flat()));
      else if (some.length > 1) statements.unshift(some.slice(0, half), some.slice(half));
      else written.unacceptable.push(...some);
    }
  }
  return written;
}

/** Adds to the rows of other nodes, in one order for all. An account that is deleted meanwhile has no refusals. */
async function writeSome(db: Queryable, rows: readonly Row[]): Promise<void> {
  await db.query(
    'select add_refusals($1, $2, $3, $4, $5, $6, $7)',
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

/**
 * Hours that begin from `from` (inclusive) to `to` (exclusive); of one key, project, model or reason. `projects`: of any
 * of these. `budgets`: the only ones that are named.
 */
export type RefusalFilter = {
  account_id: string;
  from: Date;
  to: Date;
  key?: string | undefined;
  project?: string | undefined;
  model?: string | undefined;
  reason?: string | undefined;
  projects?: readonly string[] | undefined;
  budgets?: readonly string[] | undefined;
};

/** `names`: of the groups, in their order. */
export type RefusalRow = { names: readonly string[]; count: number };

/** Groups of one report. */
export const refusal_rows_max = 1_000;

/** Returns the refusals of an account, grouped, the most first. */
export async function refusalsOf(
  db: Queryable,
  filter: RefusalFilter,
  group_by: readonly RefusalGroup[],
  rows_max = refusal_rows_max,
): Promise<RefusalRow[]> {
  const names = group_by.map((group) => columns[group]);
  return db.query<RefusalRow>(
    `select array[${names.join(', ')}]::text[] as names, sum(count)::float8 as count
       from ${chosen} group by 1 order by count desc, names limit ${rows_max}`,
    valuesOf(filter),
  );
}

/** `last_at`: when the last hour with one began. */
export type RefusalTotal = { reason: string; count: number; last_at: Date };

/** Returns how many requests of an account were refused for each reason, the most frequent first. */
export async function refusalTotals(db: Queryable, filter: RefusalFilter): Promise<RefusalTotal[]> {
  return db.query<RefusalTotal>(
    `select reason, sum(count)::float8 as count, max(start) as last_at
       from ${chosen} group by reason order by count desc, reason`,
    valuesOf(filter),
  );
}

/** An empty text stands where a refusal has no such name. */
export type RefusalPart = { reason: string; key_id: string; budget_id: string; model: string; count: number };

/** Returns the largest parts of each reason, the largest first: a key, a budget and a model together. */
export async function largestRefusals(db: Queryable, filter: RefusalFilter, parts_max: number): Promise<RefusalPart[]> {
  const names = 'reason, key_id, budget_id, model';
  return db.query<RefusalPart>(
    `select ${names}, count
       from (select ${names}, sum(count)::float8 as count,
                    row_number() over (partition by reason order by sum(count) desc, ${names}) as place
               from ${chosen} group by ${names}) parts
      where place <= ${parts_max} order by reason, place`,
    valuesOf(filter),
  );
}

/** A budget that the reader may not see has no name. */
const chosen = `(select start, reason, key_id, project_id, model, count,
          case when $9::text[] is null or budget_id = any($9) then budget_id else '' end as budget_id
     from refusals
    where account_id = $1 and start >= date_trunc('hour', $2::timestamptz, 'UTC') and start < $3
      and ($4::text is null or key_id = $4) and ($5::text is null or reason = $5)
      and ($6::text is null or project_id = $6) and ($7::text is null or model = $7)
      and ($8::text[] is null or project_id = any($8))) chosen`;

function valuesOf({ account_id, from, to, key, reason, project, model, projects, budgets }: RefusalFilter): unknown[] {
  const named = [key, reason, project, model].map((name) => name ?? null);
  return [account_id, from, to, ...named, projects ?? null, budgets ?? null];
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

/** For backups: those of hours that are long over do not change. */
export const growing_refusals: GrowingTable = {
  name: 'public.refusals',
  keys: ['start', 'reason', 'key_id', 'project_id', 'budget_id', 'model'],
  changing: `(select * from refusals where start >= now() - interval '2 hours')`,
  is_later: `r.start >= m.at - interval '2 hours'`,
};

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
