import { audit } from '../accounts/audit.ts';
import type { SessionCall } from '../http/endpoint.ts';
import type { App } from '../app.ts';

/** Writes down what the person of this call did: with the account of its path, if it has one. */
export async function note(
  app: App,
  { person, address }: Pick<SessionCall, 'person' | 'address'>,
  action: string,
  subject?: string,
  details?: Record<string, unknown>,
): Promise<void> {
  const { user, account } = person;
  const now = new Date(app.clock.now());
  await audit(app.db, { account_id: account?.id, user, action, subject, details, address, now });
}
