import { none, type Row } from './findings.ts';
import type { Place } from './place.ts';
import { adjustLeased, freeMoney, withDatabase } from './withdraw.ts';

/** Withdraws from each account all that nobody holds. It cannot be had only if it is leased, and nobody gives it back. */
export function checkLeases({ database_url }: Place): Promise<Row[]> {
  return withDatabase(database_url, async (db) => {
    const free = (await freeMoney(db)).filter(({ amount }) => amount > 0n);
    const withdrawals = free.map(async ({ account_id, amount }) => {
      const outcome = await adjustLeased(db, { account_id, amount: -amount }, 'withdrawn by the checker');
      return outcome === 'booked' ? [] : [`${account_id}: ${outcome} for ${amount}`];
    });
    return [none('leases: accounts whose money nobody can withdraw', (await Promise.all(withdrawals)).flat())];
  });
}
