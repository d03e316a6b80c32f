import { conditionsOf } from '../db/conditions.ts';
import type { Queryable } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';
import { recordText } from '../db/record.ts';
import { keyConditions, type KeysOfProjects } from '../money/key-budgets.ts';
import { live_keys } from '../queue/pgboss-tables.ts';

/** Batches: files of calls that workers make within a day, and whose answers are files again. */

export type BatchName = { readonly account_id: string; readonly id: string };

export type BatchStatus =
  | 'validating'
  | 'failed'
  | 'in_progress'
  | 'finalizing'
  | 'completed'
  | 'expired'
  | 'cancelling'
  | 'cancelled';

/** A mistake in the input file; `line` counts from 1. */
export type BatchError = { code: string; message: string; param: string | null; line: number | null };

export type Batch = BatchName & {
  key_id: string;
  endpoint: string;
  input_file_id: string;
  status: BatchStatus;
  errors: BatchError[] | null;
  metadata: Record<string, string>;
  keep_s: bigint;
  total: number;
  completed: number;
  failed: number;
  output_id: string | null;
  error_id: string | null;
  has_output: boolean;
  has_errors: boolean;
  created_at: Date;
  expires_at: Date;
  in_progress_at: Date | null;
  finalizing_at: Date | null;
  cancelling_at: Date | null;
  ended_at: Date | null;
};

const columns = `account_id, id, key_id, endpoint, input_file_id, status, errors, metadata, keep_s, total, completed, failed,
  output_id, error_id, has_output, has_errors, created_at, expires_at, in_progress_at, finalizing_at, cancelling_at, ended_at`;

/** The queue of their jobs. */
export const batch_queue = 'batch.run';

export type NewBatch = Pick<
  Batch,
  'account_id' | 'id' | 'key_id' | 'endpoint' | 'input_file_id' | 'metadata' | 'created_at' | 'expires_at'
> & { keep_s: number };

/** Begins a batch; false if its account has as many as it may. */
export async function insertBatch(db: Queryable, batch: NewBatch, unfinished_max: number): Promise<boolean> {
  const rows = await db.query<{ added: boolean }>('select insert_batch($1, $2) as added', [
    recordText(batch),
    unfinished_max,
  ]);
  return oneRow(rows).added;
}

export async function findBatch(db: Queryable, { account_id, id }: BatchName): Promise<Batch | undefined> {
  const rows = await db.query<Batch>(`select ${columns} from batches where account_id = $1 and id = $2`, [
    account_id,
    id,
  ]);
  return rows[0];
}

/** Batches of an account, newest first, after the id `after`. */
export async function listBatches(
  db: Queryable,
  {
    account_id,
    after,
    limit,
    ...keys
  }: KeysOfProjects & { account_id: string; after: string | undefined; limit: number },
): Promise<{ batches: Batch[]; has_more: boolean }> {
  const { text, values } = conditionsOf([['account_id = ?', account_id], ['id < ?', after], ...keyConditions(keys)]);
  const rows = await db.query<Batch>(
    `select ${columns} from batches where ${text} order by id desc limit $${values.length + 1}`,
    [...values, limit + 1],
  );
  return { batches: rows.slice(0, limit), has_more: rows.length > limit };
}

/** Asks for the end of a batch that makes calls, or will. */
export async function requestCancel(db: Queryable, { account_id, id }: BatchName, now: Date): Promise<void> {
  await db.query(
    `update batches set status = 'cancelling', cancelling_at = $3
      where account_id = $1 and id = $2 and status in ('validating', 'in_progress')`,
    [account_id, id, now],
  );
}

/** Takes a batch over: whoever worked on it before changes nothing of it any more. */
export async function claimBatch(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
): Promise<Batch | undefined> {
  const rows = await db.query<Batch>(
    `update batches set claim = $3 where account_id = $1 and id = $2 and ended_at is null returning ${columns}`,
    [account_id, id, claim],
  );
  return rows[0];
}

/** Ends a batch whose input file has mistakes, and whose lines go. */
export async function failBatch(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
  errors: readonly BatchError[],
  now: Date,
): Promise<void> {
  await db.query(
    `with failed as (
       update batches set status = 'failed', errors = $4, ended_at = $5
        where account_id = $1 and id = $2 and claim = $3 and status in ('validating', 'cancelling')
       returning account_id, id)
     delete from batch_lines l using failed where l.account_id = failed.account_id and l.batch_id = failed.id`,
    [account_id, id, claim, recordText(errors), now],
  );
}

/** The calls of a batch may begin; false if it was cancelled meanwhile, or is somebody else's. */
export async function beginCalls(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
  total: number,
  now: Date,
): Promise<boolean> {
  const rows = await db.query(
    `update batches set status = 'in_progress', in_progress_at = $5, total = $4
      where account_id = $1 and id = $2 and claim = $3 and status = 'validating' returning id`,
    [account_id, id, claim, total, now],
  );
  return rows.length > 0;
}

/** Marks that all lines of a batch have ended: only its files are missing. Their ids are chosen once. */
export async function beginFiles(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
  files: { output_id: string; error_id: string },
  now: Date,
): Promise<Batch | undefined> {
  const rows = await db.query<Batch>(
    `update batches set output_id = coalesce(output_id, $4), error_id = coalesce(error_id, $5),
            finalizing_at = coalesce(finalizing_at, $6),
            status = case status when 'in_progress' then 'finalizing' else status end
      where account_id = $1 and id = $2 and claim = $3 and ended_at is null returning ${columns}`,
    [account_id, id, claim, files.output_id, files.error_id, now],
  );
  return rows[0];
}

/** Ends a batch, whose lines go: it is what its lines say. */
export async function endBatch(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
  end: { has_output: boolean; has_errors: boolean; now: Date },
): Promise<void> {
  const rows = await db.query(
    `update batches b set has_output = $4, has_errors = $5, ended_at = $6, total = greatest(total, completed + failed),
            status = case when status = 'cancelling' then 'cancelled'
                          when exists (select from batch_lines l where l.account_id = b.account_id and l.batch_id = b.id
                                         and l.error_code = 'batch_expired') then 'expired'
                          else 'completed' end
      where account_id = $1 and id = $2 and claim = $3 and ended_at is null returning id`,
    [account_id, id, claim, end.has_output, end.has_errors, end.now],
  );
  if (rows.length === 0) return;
  await db.query('delete from batch_lines where account_id = $1 and batch_id = $2', [account_id, id]);
}

/** Batches that have not ended and have no job. */
export function listForgottenBatches(db: Queryable, created_before: Date, count: number): Promise<BatchName[]> {
  return db.query(
    `select b.account_id, b.id from batches b
      where b.ended_at is null and b.created_at < $1
        and not exists (select from ${live_keys} live where live.key = b.id) limit $2`,
    [created_before, count],
  );
}

/** Removes batches that ended before a time; their files have a lifetime of their own. Answers how many. */
export async function removeOldBatches(db: Queryable, ended_before: Date): Promise<number> {
  const rows = await db.query('delete from batches where ended_at < $1 returning id', [ended_before]);
  return rows.length;
}
