import type { CatalogHolder } from '../catalog/catalog.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { Clock } from '../lib/clock.ts';
import { expiredHolds } from '../money/open-hold.ts';
import { replayJournal, type ReplayParts } from './unsettled.ts';

const batch_max = 500;

/**
 * Releases the holds of calls whose node died before it could settle them. Answers how many. The clock of this node
 * counts for nothing here; `now` replaces that of the database in tests.
 */
export async function releaseForgotten(parts: ReplayParts, now?: Date): Promise<number> {
  await replayJournal(parts); // what it knows the end of is not forgotten
  const forgotten = await expiredHolds(parts.db, batch_max, now);
  const errors: unknown[] = [];
  for (const { account_id, ref } of forgotten) {
    try {
      await parts.holds.settle({ account_id, ref, cost: null });
    } catch (error) {
      errors.push(error); // such as a lock on this account: the holds of others do not wait for it
      continue;
    }
    parts.log.warn({ account_id, request_id: ref }, 'a chat call was never settled: its hold is released');
  }
  if (errors.length > 0) throw new AggregateError(errors, 'holds of chat calls could not be released');
  return forgotten.length;
}

type RemovalParts = { readonly db: Db; readonly clock: Clock; readonly catalog: CatalogHolder };

/** Removes records that are as old as they may get. */
export async function removeOldRecords(parts: RemovalParts, stopped?: AbortSignal): Promise<number> {
  const created_before = new Date(parts.clock.now() - parts.catalog.current.settings.retention.chat_records_ms);
  for (let removed = 0; ;) {
    const rows = await parts.db.query(
      `delete from chat_calls where (account_id, id) in (
         select account_id, id from chat_calls where created_at < $1 order by created_at limit ${batch_max}) returning id`,
      [created_before],
    );
    removed += rows.length;
    if (rows.length < batch_max || stopped?.aborted) return removed;
  }
}

/** Tells whether the record of a call is still there that began before a time. */
export async function hasRecordsBefore(db: Queryable, at: Date): Promise<boolean> {
  return (await db.query('select 1 from chat_calls where created_at < $1 limit 1', [at])).length > 0;
}
