import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { audit } from '../accounts/audit.ts';
import type { SessionCall } from '../http/endpoint.ts';

/** Writes down what the person of this call did: with the account of its path, if it has one. */
export async function auditAction(
  { db, clock }: { db: Db; clock: Clock },
  { person, address }: Pick<SessionCall, 'person' | 'address'>,
  action: string,
  subject?: string,
  details?: Record<string, unknown>,
): Promise<void> {
  const { user, account } = person;
  const now = new Date(clock.now());
  await audit(db, { account_id: account?.id, user, action, subject, details, address, now });
}
