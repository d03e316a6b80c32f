import { lookAtAccounts } from './of-accounts.ts';
import { lookAtService, type OperatorParts } from './of-operators.ts';
import { sendNotices, type NoticeParts } from './notices.ts';

/** Looks after the alerts of all accounts: what is new of them, and what is to be said. */
export async function watchAccounts(app: NoticeParts, stopped: AbortSignal): Promise<void> {
  await lookAtAccounts(app);
  app.engine.wake('delivery.send'); // events of alerts
  await sendNotices(app, 'accounts', stopped);
}

/** Looks after those of operators. */
export async function watchService(app: NoticeParts & OperatorParts, stopped: AbortSignal): Promise<void> {
  await lookAtService(app);
  await sendNotices(app, 'operators', stopped);
}
