import type { QuietHours } from '../catalog/model.ts';
import type { Queryable } from '../db/database.ts';
import type { Role } from '../accounts/roles.ts';
import type { AccountKind } from './alert.ts';

/** The choices of an account about its alerts. That of a low balance has its amount in `balance_alerts`. */
export type AlertSettings = {
  key_limit: boolean;
  webhooks_failing: boolean;
  /** The share of failed calls from which on it is an alert, in percent; null: none is. */
  error_percent: number | null;
  /** Members with these roles get mails, at their proved addresses. */
  roles: readonly Role[];
  /** Gets each alert as a webhook, signed with the account's secret. */
  webhook_url: string | null;
  quiet: QuietHours | null;
  /** Messages per hour, by mail and by webhook each. */
  per_hour_max: number;
};

/** The settings of an account that has stored none. */
export const default_settings: AlertSettings = {
  key_limit: true,
  webhooks_failing: true,
  error_percent: null,
  roles: ['owner', 'billing'],
  webhook_url: null,
  quiet: null,
  per_hour_max: 10,
};

type Row = Omit<AlertSettings, 'quiet'> & {
  account_id: string;
  quiet_from: number | null;
  quiet_to: number | null;
  time_zone: string | null;
};

const columns = `account_id, key_limit, webhooks_failing, error_percent, roles, webhook_url, quiet_from, quiet_to,
  time_zone, per_hour_max`;

/** Returns the settings of these accounts that have some. */
export async function settingsOf(
  db: Queryable,
  account_ids: readonly string[],
): Promise<ReadonlyMap<string, AlertSettings>> {
  const rows = await db.query<Row>(`select ${columns} from alert_settings where account_id = any($1)`, [account_ids]);
  return new Map(rows.map((row) => [row.account_id, read(row)]));
}

/** Returns the settings of an account. */
export async function findSettings(db: Queryable, account_id: string): Promise<AlertSettings> {
  return (await settingsOf(db, [account_id])).get(account_id) ?? default_settings;
}

/** Returns the accounts that want to hear of failed calls, and from which share on. */
export async function errorPercents(db: Queryable): Promise<{ account_id: string; error_percent: number }[]> {
  return db.query('select account_id, error_percent from alert_settings where error_percent is not null');
}

function read({ account_id: _id, quiet_from, quiet_to, time_zone, ...row }: Row): AlertSettings {
  const has_quiet = quiet_from !== null && quiet_to !== null && time_zone !== null;
  return { ...row, quiet: has_quiet ? { from: quiet_from, to: quiet_to, time_zone } : null };
}

export async function setSettings(
  db: Queryable,
  account_id: string,
  settings: AlertSettings,
  now: Date,
): Promise<void> {
  const { key_limit, webhooks_failing, error_percent, roles, webhook_url, quiet, per_hour_max } = settings;
  await db.query(
    `insert into alert_settings (${columns}, updated_at) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (account_id) do update set key_limit = excluded.key_limit,
       webhooks_failing = excluded.webhooks_failing, error_percent = excluded.error_percent, roles = excluded.roles,
       webhook_url = excluded.webhook_url, quiet_from = excluded.quiet_from, quiet_to = excluded.quiet_to,
       time_zone = excluded.time_zone, per_hour_max = excluded.per_hour_max, updated_at = excluded.updated_at`,
    [
      account_id,
      key_limit,
      webhooks_failing,
      error_percent,
      [...roles],
      webhook_url,
      quiet?.from ?? null,
      quiet?.to ?? null,
      quiet?.time_zone ?? null,
      per_hour_max,
      now,
    ],
  );
}

/** Tells whether an account wants to hear of this. Of its balance it does as long as it has an amount. */
export function wants(settings: AlertSettings, kind: AccountKind): boolean {
  if (kind === 'key_limit') return settings.key_limit;
  if (kind === 'webhooks_failing' || kind === 'endpoint_failing') return settings.webhooks_failing;
  return kind === 'balance_low' || settings.error_percent !== null;
}
