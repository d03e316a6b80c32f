import type { Queryable } from '../db/database.ts';
import { oneRow } from '../db/one-row.ts';
import { recordText } from '../db/record.ts';
import type { BatchName } from './batches.ts';

/** The calls of a batch, one for each line of its input file. */

export type NewLine = { number: number; custom_id: string; start_bytes: number; size_bytes: number };

/** A line that this worker is to call. */
export type Line = BatchName & {
  number: number;
  custom_id: string;
  start_bytes: bigint;
  size_bytes: number;
  attempts: number;
  request_id: string;
};

/** A line that has ended. */
export type EndedLine = {
  number: number;
  custom_id: string;
  request_id: string | null;
  status_code: number | null;
  result: Buffer | null;
  error_code: string | null;
};

/** The batch $1, $2 while its file is read under the claim $3: locked, so that nobody takes it over meanwhile. */
const batch_being_read = `select account_id, id from batches
  where account_id = $1 and id = $2 and claim = $3 and status in ('validating', 'cancelling') for update`;

/** Adds lines of a file that this worker reads; none where another worker has taken the batch over. */
export async function insertLines(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
  lines: readonly NewLine[],
  now: Date,
): Promise<void> {
  await db.query(
    `with batch as (${batch_being_read})
     insert into batch_lines (account_id, batch_id, number, custom_id, start_bytes, size_bytes, not_before)
     select batch.account_id, batch.id, l.number, l.custom_id, l.start_bytes, l.size_bytes, $5
       from batch cross join jsonb_to_recordset($4) as l(number int, custom_id text, start_bytes bigint, size_bytes int)`,
    [account_id, id, claim, recordText(lines), now],
  );
}

/** Forgets the lines of a file that was read in part, unless another worker has taken the batch over. */
export async function removeLines(db: Queryable, { account_id, id }: BatchName, claim: string): Promise<void> {
  await db.query(
    `with batch as (${batch_being_read})
     delete from batch_lines l using batch where l.account_id = batch.account_id and l.batch_id = batch.id`,
    [account_id, id, claim],
  );
}

/** Takes the line that may begin for the longest time, under a request id of its own, while the batch makes calls. */
export async function takeLine(
  db: Queryable,
  { account_id, id }: BatchName,
  taking: { claim: string; request_id: string; now: Date },
): Promise<Line | undefined> {
  const rows = await db.query<Line>(
    `update batch_lines set state = 'sent', claim = $3, request_id = $4, attempts = attempts + 1
      where account_id = $1 and batch_id = $2 and state = 'waiting' and number = (
        select l.number from batch_lines l
         where l.account_id = $1 and l.batch_id = $2 and l.state = 'waiting' and l.not_before <= $5
           and exists (select from batches b where b.account_id = $1 and b.id = $2 and b.claim = $3
                         and b.status = 'in_progress' and b.expires_at > $5)
         order by l.not_before, l.number limit 1 for update skip locked)
      returning account_id, batch_id as id, number, custom_id, start_bytes, size_bytes, attempts, request_id`,
    [account_id, id, taking.claim, taking.request_id, taking.now],
  );
  return rows[0];
}

export type LineEnd = {
  state: 'answered' | 'done';
  status_code: number | null;
  error_code: string | null;
  /** The booking of a line that is answered. */
  charge: object | null;
  result: Buffer | null;
};

/** Ends a line, once; false if it is not this worker's any more. */
export async function endLine(db: Queryable, line: Line, claim: string, end: LineEnd): Promise<boolean> {
  const { result, ...ended } = end;
  const row = { account_id: line.account_id, batch_id: line.id, number: line.number, ...ended };
  const rows = await db.query<{ ended: boolean }>('select end_line($1, $2, $3) as ended', [
    recordText(row),
    claim,
    result,
  ]);
  return oneRow(rows).ended;
}

/** The charge of a line is booked. */
export async function noteBooked(
  db: Queryable,
  { account_id, id, number }: BatchName & { number: number },
): Promise<void> {
  await db.query(
    `update batch_lines set state = 'done', charge = null
      where account_id = $1 and batch_id = $2 and number = $3 and state = 'answered'`,
    [account_id, id, number],
  );
}

/** Defers a line of which nothing has come until a time; its try counts, or not. */
export async function deferLine(
  db: Queryable,
  line: Line,
  claim: string,
  { not_before, is_counted }: { not_before: Date; is_counted: boolean },
): Promise<void> {
  await db.query(
    `update batch_lines set state = 'waiting', claim = null, not_before = $5, attempts = attempts - $6
      where account_id = $1 and batch_id = $2 and number = $3 and state = 'sent' and claim = $4`,
    [line.account_id, line.id, line.number, claim, not_before, is_counted ? 0 : 1],
  );
}

/** Defers the lines that a worker before this one has left: nobody knows what came of these lines, and nothing is charged for them. */
export async function deferSent(db: Queryable, { account_id, id }: BatchName, claim: string, now: Date): Promise<void> {
  await db.query(
    `update batch_lines l set state = 'waiting', claim = null, not_before = $4
       from batches b
      where l.account_id = $1 and l.batch_id = $2 and l.state = 'sent' and l.claim is distinct from $3
        and b.account_id = l.account_id and b.id = l.batch_id and b.claim = $3`,
    [account_id, id, claim, now],
  );
}

/** Lines whose charge is stored and not booked, for all that is known. */
export function listAnswered(
  db: Queryable,
  { account_id, id }: BatchName,
): Promise<{ number: number; request_id: string; charge: unknown }[]> {
  return db.query(
    `select number, request_id, charge from batch_lines where account_id = $1 and batch_id = $2 and state = 'answered'
      order by number`,
    [account_id, id],
  );
}

/** Lines that are open, of which some may only be still to be booked; and when the next one of them may begin. */
type OpenLines = { count: number; unbooked: number; next_at: Date | null };

export async function openLines(db: Queryable, { account_id, id }: BatchName): Promise<OpenLines> {
  return oneRow(
    await db.query<OpenLines>(
      `select count(*)::int as count, count(*) filter (where state = 'answered')::int as unbooked,
              min(not_before) filter (where state = 'waiting') as next_at
         from batch_lines where account_id = $1 and batch_id = $2 and state <> 'done'`,
      [account_id, id],
    ),
  );
}

/** Ends all lines that were not called, for one reason, and counts them. */
export async function endWaiting(
  db: Queryable,
  { account_id, id }: BatchName,
  claim: string,
  error_code: string,
): Promise<void> {
  await db.query(
    `with ended as (
       update batch_lines l set state = 'done', error_code = $4, result = null, status_code = null
         from batches b
        where l.account_id = $1 and l.batch_id = $2 and l.state in ('waiting', 'sent')
          and b.account_id = l.account_id and b.id = l.batch_id and b.claim = $3
       returning l.number)
     update batches set failed = failed + (select count(*) from ended)
      where account_id = $1 and id = $2 and claim = $3`,
    [account_id, id, claim, error_code],
  );
}

/** Lines of a page, and their bytes, of which one line alone may have more. */
const page_lines = 50;
const page_bytes = 8_000_000;

/** Lines that were answered, or all others, in the order of the input file after the number `after`: some of them. */
export function listEnded(
  db: Queryable,
  { account_id, id }: BatchName,
  { after, is_answered }: { after: number; is_answered: boolean },
): Promise<EndedLine[]> {
  return db.query(
    `with page as (
       select number, sum(coalesce(octet_length(result), 0)) over (order by number) as until_bytes,
              row_number() over (order by number) as place
         from (select number, result from batch_lines
                where account_id = $1 and batch_id = $2 and number > $3 and state = 'done'
                  and coalesce(status_code between 200 and 299, false) = $4
                order by number limit ${page_lines}) l)
     select l.number, l.custom_id, l.request_id, l.status_code, l.result, l.error_code
       from batch_lines l join page p on p.number = l.number
      where l.account_id = $1 and l.batch_id = $2 and (p.place = 1 or p.until_bytes <= ${page_bytes})
      order by l.number`,
    [account_id, id, after, is_answered],
  );
}
