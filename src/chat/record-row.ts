import type { Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import type { Clock } from '../lib/clock.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';

/** A row of chat_calls by the names of its columns, so that the journal of another version can still be written. */
export type StoredRecord = Record<string, unknown> & { created_at: Date | string };

/** For backups: a record is written after the entry that settles its call, and never changes. */
export const growing_records: GrowingTable = {
  name: 'public.chat_calls',
  keys: ['id'],
  is_later: hasLaterEntry('r.id', ['close', 'late']),
};

type RowParts = { readonly db: Queryable; readonly clock: Clock };

/** Writes records. Rejects if one of them is there. */
export async function insertRecords({ db, clock }: RowParts, records: readonly StoredRecord[]): Promise<void> {
  const rows = records.map((record) => withLateness(record, clock.now()));
  await db.query('insert into chat_calls select r.* from jsonb_populate_recordset(null::chat_calls, $1) as r', [
    JSON.stringify(rows),
  ]);
}

/** Writes a record, unless it is there; with what the ledger says of its money. */
export async function insertRecord(
  { db, clock }: RowParts,
  record: StoredRecord,
  money?: { cost: Money; upstream_cost: Money | null },
): Promise<void> {
  const cost = money && { cost: String(money.cost), upstream_cost: money.upstream_cost?.toString() ?? null };
  await db.query(
    'insert into chat_calls select r.* from jsonb_populate_record(null::chat_calls, $1) as r on conflict do nothing',
    [JSON.stringify({ ...withLateness(record, clock.now()), ...cost })],
  );
}

/** Half of the time that a check of the books looks back at calls by their beginning: the rest is for clocks. */
const late_after_ms = 300_000;

/**
 * Adds the time of writing to the record of a call that began long ago: it was a long one, or its record comes out of a
 * journal. The next check of the books finds it by that time.
 */
function withLateness(record: StoredRecord, now: number): StoredRecord {
  const is_late = now - new Date(record.created_at).getTime() > late_after_ms;
  return is_late ? { ...record, recorded_at: new Date(now) } : record;
}
