import type { Db, Queryable } from '../db/database.ts';

/** Entries of an account that can be closed: those after `after`, up to `number`. */
export type Closable = { account_id: string; after: bigint; number: bigint };

/** The entries of each account before a month's first moment that are not closed yet. */
export async function closableBefore(db: Queryable, at: Date): Promise<Closable[]> {
  return db.query<Closable>(
    `select * from (
       select b.account_id, coalesce(n.number, 0) as after, last_entry_before(b.account_id, $1) as number
         from balances b left join ledger_openings n using (account_id)) c
      where number > after order by account_id`,
    [at],
  );
}

const page = 1_000;

/** Reads entries as JSON texts, page by page, in their order. */
export async function* entriesOf(db: Queryable, { account_id, after, number }: Closable): AsyncGenerator<string[]> {
  for (let last = after; last < number;) {
    const rows = await db.query<{ number: bigint; entry: string }>(
      `select number, to_jsonb(e)::text as entry from ledger_entries e
        where account_id = $1 and number > $2 and number <= $3 order by number limit ${page}`,
      [account_id, last, number],
    );
    const end = rows.at(-1);
    if (!end) return;
    yield rows.map(({ entry }) => entry);
    last = end.number;
  }
}

/**
 * Makes the entries up to there the opening of their account; `month` is the first one that stays, `count` how many
 * were exported. Rejects if anything about them is not as it must be: `close_ledger`.
 */
export async function closeLedger(
  db: Queryable,
  { account_id, number }: Closable,
  { month, count }: { month: string; count: number },
): Promise<void> {
  await db.query('select close_ledger($1, $2, $3, $4)', [account_id, month, number, count]);
}

const batch = 5_000;

/** Removes closed entries of all accounts, also those that an earlier run has left. Answers how many went. */
export async function removeClosed(db: Db): Promise<number> {
  const openings = await db.query<{ account_id: string }>('select account_id from ledger_openings order by account_id');
  let removed = 0;
  for (const { account_id } of openings) {
    const [first] = await db.query<{ number: bigint | null }>(
      `select min(number) as number from ledger_entries where account_id = $1 and type not in ('topup', 'adjustment')`,
      [account_id],
    );
    let after: bigint | null = (first?.number ?? 1n) - 1n;
    while (after !== null) {
      const rows: { last: bigint | null; count: number }[] = await db.query(
        'select last, removed as count from remove_closed($1, $2, $3)',
        [account_id, after, batch],
      );
      after = rows[0]?.last ?? null;
      removed += rows[0]?.count ?? 0;
    }
  }
  return removed;
}
