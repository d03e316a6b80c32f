import { listAlerts } from '../../alerts/alert.ts';
import { operators_key, reachOf } from '../../alerts/reach.ts';
import { testOperatorAlerts } from '../../alerts/test-notice.ts';
import { renderAlert, renderQuiet, takeAlertTest } from '../alerts.ts';
import { auditAction } from '../audit-action.ts';
import { session_endpoint } from '../page.ts';
import type { AdminAlerts, AlertTestView } from '../views/alerts.ts';

/** The alerts of the service, and where they go. */
export const admin_alerts = session_endpoint('GET', '/dash/admin/alerts', 'operator', async (app) => {
  const [alerts, reaches] = await Promise.all([listAlerts(app.db, null), reachOf(app, 'operators', [])]);
  const reach = reaches.get(operators_key);
  const view: AdminAlerts = {
    alerts: alerts.map(renderAlert),
    recipients: reach?.mail ?? [],
    mails: app.mailer.ready(),
    host: reach?.webhook ? new URL(reach.webhook.url).host : null,
    quiet_hours: renderQuiet(reach?.quiet ?? null),
    per_hour_max: reach?.per_hour_max ?? 0,
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
