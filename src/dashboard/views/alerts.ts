import type { Role } from '../../accounts/roles.ts';
import type { Cost } from './common.ts';

export type AlertView = {
  id: string;
  kind: string;
  level: 'warning' | 'critical';
  title: string;
  message: string;
  opened_at: string;
  /** Null: it is open. */
  closed_at: string | null;
  /** The last message about it. */
  notified_at: string | null;
};

/** Hours in which only critical alerts are sent, such as 22:00 to 07:00. */
export type QuietHoursView = { from: string; to: string; time_zone: string };

export type AlertSettingsView = {
  key_limit: boolean;
  webhooks_failing: boolean;
  /** The share of failed calls from which on it is an alert; null: none is. */
  error_percent: number | null;
  roles: readonly Role[];
  webhook_url: string | null;
  quiet_hours: QuietHoursView | null;
  per_hour_max: number;
};

export type AlertsView = {
  settings: AlertSettingsView;
  /** The amount of a low balance, which is set on the page Billing. */
  threshold: Cost | null;
  /** Proved addresses that get mails now. */
  recipients: readonly string[];
  mails: boolean;
  /** The open ones first. */
  alerts: AlertView[];
};

/** Results of a test. Null: there is no such way. */
export type AlertTestView = {
  mail: { to: readonly string[]; error: string | null } | null;
  webhook: { delivered: boolean; status: number | null; error: string | null } | null;
};

export type AdminAlerts = {
  alerts: AlertView[];
  /** The ways by which alerts go, by medley.yaml. `host`: of the receiver, whose address may have a secret in it. */
  recipients: readonly string[];
  mails: boolean;
  host: string | null;
  quiet_hours: QuietHoursView | null;
  per_hour_max: number;
};
