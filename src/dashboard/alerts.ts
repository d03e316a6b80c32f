import type { Account } from '../accounts/accounts.ts';
import { role_names } from '../accounts/roles.ts';
import { listAlerts, type AlertLine } from '../alerts/alert.ts';
import { recipientsOf, type RecipientParts } from '../alerts/recipients.ts';
import { findSettings, setSettings, type AlertSettings } from '../alerts/settings.ts';
import { testAccountAlerts } from '../alerts/test-notice.ts';
import type { Mailer } from '../accounts/mailer.ts';
import type { QuietHours } from '../catalog/model.ts';
import { ApiError, invalidField } from '../errors.ts';
import { isRecord } from '../lib/is-record.ts';
import { isTimeZone } from '../lib/time-zone.ts';
import type { Windows } from '../limits/window.ts';
import { checkUserUrl, type AddressRules } from '../net/address.ts';
import { alertOf } from './billing.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint } from './page.ts';
import type { AlertSettingsView, AlertsView, AlertTestView, AlertView, QuietHoursView } from './views/alerts.ts';

/** The alerts of the account, and how it hears of them. */
export const get_alerts = account_endpoint('GET', '/alerts', 'read', async (app, { account }) => {
  return { status: 200, body: await alertsView(app, account) };
});

async function alertsView(app: RecipientParts & { readonly mailer: Mailer }, account: Account): Promise<AlertsView> {
  const { id, currency } = account;
  const [settings, recipients_of, alerts, { threshold }] = await Promise.all([
    findSettings(app.db, id),
    recipientsOf(app, 'accounts', [id]),
    listAlerts(app.db, id),
    alertOf(app.db, id, currency),
  ]);
  return {
    settings: renderSettings(settings),
    threshold,
    recipients: recipients_of.get(id)?.mail ?? [],
    mails: app.mailer.ready(),
    alerts: alerts.map(renderAlert),
  };
}

/** An alert as pages have it. */
export function renderAlert({
  id,
  kind,
  level,
  title,
  summary,
  opened_at,
  closed_at,
  notified_at,
}: AlertLine): AlertView {
  return {
    id,
    kind,
    level: level === 2 ? 'critical' : 'warning',
    title,
    message: summary,
    opened_at: opened_at.toISOString(),
    closed_at: closed_at?.toISOString() ?? null,
    notified_at: notified_at?.toISOString() ?? null,
  };
}

function renderSettings({ quiet, ...settings }: AlertSettings): AlertSettingsView {
  return { ...settings, quiet_hours: renderQuiet(quiet) };
}

/** Quiet hours as pages have them. */
export function renderQuiet(quiet: QuietHours | null): QuietHoursView | null {
  return quiet && { from: timeOf(quiet.from), to: timeOf(quiet.to), time_zone: quiet.time_zone };
}

function timeOf(minute: number): string {
  return `${String(Math.floor(minute / 60)).padStart(2, '0')}:${String(minute % 60).padStart(2, '0')}`;
}

/** Sets which alerts there are, and who hears of them. */
export const set_alerts = account_endpoint('PUT', '/alerts', 'webhooks', async (app, call) => {
  const { account, body } = call;
  const settings = readSettings(body, app.addressRules());
  await setSettings(app.db, account.id, settings, new Date(app.clock.now()));
  await auditAction(app, call, 'alerts.settings', account.id, { ...settings });
  return { status: 200, body: await alertsView(app, account) };
});

function readSettings(body: Record<string, unknown> | undefined, rules: AddressRules): AlertSettings {
  const flag = (name: string): boolean => {
    const value = body?.[name];
    if (typeof value === 'boolean') return value;
    throw invalidField(name, `${name} must be true or false.`);
  };
  const percent = body?.['error_percent'] ?? null;
  return {
    key_limit: flag('key_limit'),
    webhooks_failing: flag('webhooks_failing'),
    error_percent: percent === null ? null : wholeIn('error_percent', percent, 100),
    roles: readRoles(body?.['roles']),
    webhook_url: readUrl(body, rules),
    quiet: readQuiet(body?.['quiet_hours'] ?? null),
    per_hour_max: wholeIn('per_hour_max', body?.['per_hour_max'] ?? 10, 100),
  };
}

function wholeIn(name: string, value: unknown, max: number): number {
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= max) return value;
  throw invalidField(name, `${name} must be a whole number from 1 to ${max}.`);
}

function readRoles(value: unknown): AlertSettings['roles'] {
  const roles = role_names.filter((role) => Array.isArray(value) && value.includes(role));
  if (Array.isArray(value) && roles.length === value.length) return roles;
  throw invalidField(
    'roles',
    `roles must be a list of ${role_names.join(', ')}, each at most once; empty for no mails.`,
  );
}

function readUrl(body: Record<string, unknown> | undefined, rules: AddressRules): string | null {
  if ((body?.['webhook_url'] ?? null) === null) return null;
  const url = readBodyFields(body).text('webhook_url', 2_000);
  const problem = checkUserUrl(url, rules);
  if (problem) throw invalidField('webhook_url', `The address ${problem}`);
  return url;
}

function readQuiet(value: unknown): QuietHours | null {
  if (value === null) return null;
  const { from, to, time_zone } = isRecord(value) ? value : {};
  const quiet = { from: minuteOf('from', from), to: minuteOf('to', to), time_zone };
  if (quiet.from === quiet.to)
    throw invalidField('quiet_hours.to', 'Quiet hours must end at another time than they begin.');
  if (typeof time_zone !== 'string' || time_zone.length > 100 || !isTimeZone(time_zone))
    throw invalidField(
      'quiet_hours.time_zone',
      'quiet_hours.time_zone must be the name of a time zone, such as Europe/Warsaw.',
    );
  return { ...quiet, time_zone };
}

function minuteOf(name: string, value: unknown): number {
  const [, hours, minutes] = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(typeof value === 'string' ? value : '') ?? [];
  if (hours === undefined)
    throw invalidField(`quiet_hours.${name}`, `quiet_hours.${name} must be a time of day, such as 22:00.`);
  return 60 * Number(hours) + Number(minutes);
}

/** Sends a test by every way, and tells how it arrived. */
export const test_alerts = account_endpoint('POST', '/alerts/test', 'webhooks', async (app, call) => {
  await takeAlertTest(app, call.account.id);
  const view: AlertTestView = await testAccountAlerts(app, call.account);
  await auditAction(app, call, 'alerts.test', call.account.id);
  return { status: 200, body: view };
});

/** Each sends mails to other people. */
const tests_per_minute = 3;

export async function takeAlertTest({ windows }: { windows: Windows }, scope: string): Promise<void> {
  const taken = await windows.take('other', `alert test ${scope}`, tests_per_minute, performance.now());
  if (taken.ok) return;
  const seconds = Math.ceil(taken.retry_after_ms / 1000);
  const headers = { 'retry-after': String(seconds) };
  throw new ApiError('rate_limit', `Too many tests in a minute. Try again in ${seconds} s.`, { headers });
}
