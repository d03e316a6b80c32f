import type { Db, Queryable } from '../db/database.ts';
import { checkBooks, type BooksOptions, type BooksReport } from './books.ts';

/** A check of the books that is over. */
export type BooksCheck = BooksReport & { started_at: Date; ended_at: Date; is_full: boolean };

/**
 * Time before the start of the last check that the next one looks at again: what was being written then, by clocks of
 * nodes that may be behind. A record of a chat call counts as old as its call for up to five minutes (chat/record-row.ts).
 */
const overlap_ms = 10 * 60_000;

/** Time for which checks are kept. */
const kept_ms = 7 * 86_400_000;

/** Checks what has come since the last check that found nothing wrong, or everything, and writes down the result. */
export async function reconcile(
  db: Db,
  { clock, ...options }: Omit<BooksOptions, 'since'> & { clock: { now(): number } },
): Promise<BooksReport> {
  const started_at = new Date(clock.now());
  const good = await lastGood(db);
  const since = good && new Date(good.getTime() - overlap_ms);
  const report = await checkBooks(db, { ...options, ...(since && { since }) });
  const ended_at = new Date(clock.now());
  await saveCheck(db, { ...report, started_at, ended_at, is_full: options.full === true });
  return report;
}

async function lastGood(db: Queryable): Promise<Date | undefined> {
  const rows = await db.query<{ started_at: Date }>(
    `select started_at from book_checks where findings = '[]' order by started_at desc limit 1`,
  );
  return rows[0]?.started_at;
}

async function saveCheck(db: Db, check: BooksCheck): Promise<void> {
  const { started_at, ended_at, is_full, accounts, entries, open_holds, difference, findings } = check;
  await db.query(
    `insert into book_checks (started_at, ended_at, is_full, accounts, entries, open_holds, difference, findings)
     values ($1, $2, $3, $4, $5, $6, $7, $8) on conflict (started_at) do nothing`,
    [started_at, ended_at, is_full, accounts, entries, open_holds, difference, JSON.stringify(findings)],
  );
  await db.query(
    `delete from book_checks where started_at < $1 and started_at < (
        select max(started_at) from book_checks where findings = '[]')`,
    [new Date(started_at.getTime() - kept_ms)],
  );
}

/** The newest check; undefined before the first one is over. */
export async function lastCheck(db: Queryable): Promise<BooksCheck | undefined> {
  const rows = await db.query<BooksCheck>(
    `select started_at, ended_at, is_full, accounts::float8 as accounts, entries::float8 as entries,
            open_holds::float8 as open_holds, difference, findings, findings = '[]' as ok
       from book_checks order by started_at desc limit 1`,
  );
  return rows[0];
}
