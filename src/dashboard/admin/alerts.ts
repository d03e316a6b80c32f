import { listAlerts } from '../../alerts/alert.ts';
import { operators_key, recipientsOf } from '../../alerts/recipients.ts';
import { testOperatorAlerts } from '../../alerts/test-notice.ts';
import { renderAlert, renderQuiet, takeAlertTest } from '../alerts.ts';
import { auditAction } from '../audit-action.ts';
import { session_endpoint } from '../page.ts';
import type { AdminAlerts, AlertTestView } from '../views/alerts.ts';

/** The alerts of the service, and where they go. */
export const admin_alerts = session_endpoint('GET', '/dash/admin/alerts', 'operator', async (app) => {
  const [alerts, recipients_of] = await Promise.all([listAlerts(app.db, null), recipientsOf(app, 'operators', [])]);
  const recipients = recipients_of.get(operators_key);
  const view: AdminAlerts = {
    alerts: alerts.map(renderAlert),
    recipients: recipients?.mail ?? [],
    mails: app.mailer.ready(),
    host: recipients?.webhook ? new URL(recipients.webhook.url).host : null,
    quiet_hours: renderQuiet(recipients?.quiet ?? null),
    per_hour_max: recipients?.per_hour_max ?? 0,
  };
  return { status: 200, body: view };
});

/** Sends a test by every way, and tells how it arrived. */
export const admin_test_alerts = session_endpoint('POST', '/dash/admin/alerts/test', 'operator', async (app, call) => {
  await takeAlertTest(app, 'of operators');
  const view: AlertTestView = await testOperatorAlerts(app);
  await auditAction(app, call, 'alerts.test');
  return { status: 200, body: view };
});
