import type { Queryable } from '../db/database.ts';
import type { GrowingTable } from '../db/tables.ts';
import { hasLaterEntry } from '../money/ledger.ts';
import type { Money } from '../money/money.ts';

/** A row of chat_calls by the names of its columns, so that the journal of another version can still be written. */
export type StoredRecord = Record<string, unknown>;

/** For backups: a record is written after the entry that settles its call, and never changes. */
export const growing_records: GrowingTable = {
  name: 'public.chat_calls',
  key: 'id',
  is_later: hasLaterEntry('r.id', ['close', 'late']),
};

/** Writes records. Rejects if one of them is there. */
export async function insertRecords(db: Queryable, records: readonly StoredRecord[]): Promise<void> {
  await db.query('insert into chat_calls select r.* from jsonb_populate_recordset(null::chat_calls, $1) as r', [
    JSON.stringify(records),
  ]);
}

/** Writes a record, unless it is there; with what the ledger says of its money. */
export async function insertRecord(
  db: Queryable,
  record: StoredRecord,
  money?: { cost: Money; upstream_cost: Money | null },
): Promise<void> {
  const cost = money && { cost: String(money.cost), upstream_cost: money.upstream_cost?.toString() ?? null };
  await db.query(
    'insert into chat_calls select r.* from jsonb_populate_record(null::chat_calls, $1) as r on conflict do nothing',
    [JSON.stringify({ ...record, ...cost })],
  );
}
