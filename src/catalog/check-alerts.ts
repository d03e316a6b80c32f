import { isTimeZone } from '../lib/time-zone.ts';
import type { Surroundings } from './check-settings.ts';
import { isObject } from './model.ts';
import type { Report } from './report.ts';

/** Checks what the shape of `alerts` does not say: its secret, and its quiet hours. */
export function checkAlerts(alerts: unknown, { secret }: Surroundings, report: Report): void {
  if (!isObject(alerts) || report.hasError(['alerts'])) return;
  const { webhook_url, webhook_secret, quiet_hours: quiet } = alerts;
  if (webhook_url !== undefined && webhook_secret === undefined)
    report.error(['alerts', 'webhook_url'], 'needs webhook_secret, by which the receiver knows who sends.', 'key');
  if (webhook_secret !== undefined && webhook_url === undefined)
    report.error(['alerts', 'webhook_secret'], 'is of no use without webhook_url.', 'key');
  if (typeof webhook_secret === 'string') checkSecret(webhook_secret, secret(webhook_secret), report);
  if (!isObject(quiet)) return;
  const { from, to, time_zone } = quiet;
  if (from === to) report.error(['alerts', 'quiet_hours', 'to'], 'must be another time than from.');
  if (typeof time_zone === 'string' && !isTimeZone(time_zone))
    report.error(['alerts', 'quiet_hours', 'time_zone'], 'is not a time zone. Write one such as Europe/Warsaw or UTC.');
}

/** No message shows the secret. */
function checkSecret(reference: string, value: string | undefined, report: Report): void {
  const path = ['alerts', 'webhook_secret'];
  if (value === undefined) return report.warn(path, `${reference} is not set: alerts are not sent to webhook_url.`);
  if (!isAlertSecret(value))
    report.error(path, `${reference} must be whsec_ and the base64 of 24 to 64 bytes: openssl rand -base64 32`);
}

/** Tells whether webhooks can be signed with this. */
function isAlertSecret(value: string): boolean {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(value)?.[1];
  const { length } = Buffer.from(encoded ?? '', 'base64');
  return length >= 24 && length <= 64;
}
