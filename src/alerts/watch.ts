import { checkAccounts } from './account-checks.ts';
import { checkService, type OperatorParts } from './service-checks.ts';
import { sendNotices, type NoticeParts } from './notices.ts';

/** Updates the alerts of all accounts and sends their messages. */
export async function runAccountAlerts(app: NoticeParts, stopped: AbortSignal): Promise<void> {
  await checkAccounts(app);
  app.engine.wake('delivery.send'); // events of alerts
  await sendNotices(app, 'accounts', stopped);
}

/** Updates the alerts of operators and sends their messages. */
export async function runServiceAlerts(app: NoticeParts & OperatorParts, stopped: AbortSignal): Promise<void> {
  await checkService(app);
  await sendNotices(app, 'operators', stopped);
}
