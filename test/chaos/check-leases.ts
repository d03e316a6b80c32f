import { openDatabase, type Db } from '../../src/db/database.ts';
import { whileLeased } from '../../src/leases/while-leased.ts';
import { credit } from '../../src/money/ledger.ts';
import { none, type Row } from './findings.ts';
import type { Place } from './place.ts';

/**
 * Withdraws from each account all that nobody holds. It cannot be had only if it is leased, and nobody gives it back.
 * Reserved by calls of a dead node is what that one may yet book out of its journal; it is left for ten minutes.
 */
export async function checkLeases({ database_url }: Place): Promise<Row[]> {
  const db = openDatabase({ connection: { connectionString: database_url }, connections_max: 4 });
  try {
    const free = await db.query<{ account_id: string; amount: bigint }>(
      `select b.account_id, b.amount - b.held - b.exposed - coalesce(l.in_use, 0)::bigint as amount
         from balances b left join (select account_id, sum(in_use) as in_use from leases
           where resource = 'money' and ends_at > now() - interval '10 min' group by account_id) l using (account_id)`,
    );
    const withdrawals = await Promise.all(free.filter(({ amount }) => amount > 0n).map((each) => withdraw(db, each)));
    return [none('leases: accounts whose money nobody can withdraw', withdrawals.flat())];
  } finally {
    await db.close();
  }
}

async function withdraw(db: Db, { account_id, amount }: { account_id: string; amount: bigint }): Promise<string[]> {
  const ref = 'withdrawn by the checker';
  const out = { account_id, type: 'adjustment', amount: -amount, ref, reason: ref } as const;
  const { outcome } = await whileLeased(() => credit(db, out, new Date()));
  return outcome === 'booked' ? [] : [`${account_id}: ${outcome} for ${amount}`];
}
