import { audit } from '../accounts/audit.ts';
import type { Db, Queryable } from '../db/database.ts';
import type { SessionCall } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';

/** An operator's change, as the audit log has it. */
export type OperatorChange = { action: string; subject: string; details?: Record<string, unknown> };

/** Changes rows and writes down who did, in one transaction. */
export async function changeAsOperator(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  { person, address }: Pick<SessionCall, 'person' | 'address'>,
  change: OperatorChange,
  work: (tx: Queryable, now: Date) => Promise<void>,
): Promise<void> {
  const now = new Date(clock.now());
  await db.tx(async (tx) => {
    await work(tx, now);
    await audit(tx, { ...change, user: person.user, address, now });
  });
}
