import { openDatabase, type Db } from '../../src/db/database.ts';
import { whileLeased } from '../../src/leases/while-leased.ts';
import { credit } from '../../src/money/ledger.ts';

export type FreeMoney = { account_id: string; amount: bigint };

/**
 * Returns what nobody holds of each account. Reserved by calls of a dead node is what that one may yet book out of its journal;
 * it is left for ten minutes.
 */
export function freeMoney(db: Db): Promise<FreeMoney[]> {
  return db.query<FreeMoney>(
    `select b.account_id, b.amount - b.held - b.exposed - coalesce(l.in_use, 0)::bigint as amount
       from balances b left join (select account_id, sum(in_use) as in_use from leases
         where resource = 'money' and ends_at > now() - interval '10 min' group by account_id) l using (account_id)`,
  );
}

/** Books an amount in or out of an account, as an operator does. Returns the outcome: `booked`, or why not. */
export async function adjust(db: Db, { account_id, amount }: FreeMoney, ref: string): Promise<string> {
  const entry = { account_id, type: 'adjustment', amount, ref, reason: ref } as const;
  return (await credit(db, entry, new Date())).outcome;
}

/** Does the same as long as what it takes is leased to nodes that give it back. */
export async function adjustLeased(db: Db, free: FreeMoney, ref: string): Promise<string> {
  return (await whileLeased(async () => ({ outcome: await adjust(db, free, ref) }))).outcome;
}

/** Runs `work` with connections of its own. */
export async function withDatabase<T>(database_url: string, work: (db: Db) => Promise<T>): Promise<T> {
  const db = openDatabase({ connection: { connectionString: database_url }, connections_max: 4 });
  try {
    return await work(db);
  } finally {
    await db.close();
  }
}
