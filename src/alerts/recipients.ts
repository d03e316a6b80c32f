import { accountNames } from '../accounts/accounts.ts';
import { addressesOf, operatorAddresses } from '../accounts/members.ts';
import type { QuietHours, Settings } from '../catalog/model.ts';
import { resolveSecret } from '../config.ts';
import type { Db } from '../db/database.ts';
import type { Audience } from './alert.ts';
import { default_settings, settingsOf } from './settings.ts';

/** The recipients of the alerts of an account, or of those of operators, and how they get them. */
export type Recipients = {
  /** The account's name, or that of the service, for people. */
  place: string;
  mail: readonly string[];
  /** `secret`: of an operator's receiver; those of accounts are signed by their deliveries. */
  webhook: { url: string; secret: string | undefined } | undefined;
  quiet: QuietHours | undefined;
  per_hour_max: number;
  link: string;
};

/** The parts of the app that say where alerts go. */
export type RecipientParts = {
  readonly db: Db;
  readonly catalog: { readonly current: { readonly settings: Settings } };
  base_url(): string;
};

/** The key of operators among those of accounts. */
export const operators_key = '';

/** Returns the recipients of each account, or those of operators by `operators_key`. */
export async function recipientsOf(
  app: RecipientParts,
  audience: Audience,
  account_ids: readonly string[],
): Promise<ReadonlyMap<string, Recipients>> {
  if (audience === 'operators') return new Map([[operators_key, await operatorRecipients(app)]]);
  const [settings, names, members] = await Promise.all([
    settingsOf(app.db, account_ids),
    accountNames(app.db, account_ids),
    addressesOf(app.db, account_ids),
  ]);
  const by_account = Map.groupBy(members, ({ account_id }) => account_id);
  return new Map(
    account_ids.map((id): [string, Recipients] => {
      const { roles, webhook_url, quiet, per_hour_max } = settings.get(id) ?? default_settings;
      const addresses = (by_account.get(id) ?? []).filter(({ role }) => roles.includes(role));
      const recipients = {
        place: names.get(id) ?? '',
        mail: addresses.map(({ email }) => email),
        webhook: webhook_url === null ? undefined : { url: webhook_url, secret: undefined },
        quiet: quiet ?? undefined,
        per_hour_max,
        link: `${app.base_url()}/settings?tab=alerts`,
      };
      return [id, recipients];
    }),
  );
}

async function operatorRecipients({ db, catalog, base_url }: RecipientParts): Promise<Recipients> {
  const { mail, webhook, quiet, per_hour_max } = catalog.current.settings.alerts;
  const secret = webhook && resolveSecret(webhook.secret);
  return {
    place: new URL(base_url()).host,
    mail: mail ?? (await operatorAddresses(db)),
    webhook: webhook && secret !== undefined ? { url: webhook.url, secret } : undefined,
    quiet,
    per_hour_max,
    link: `${base_url()}/admin/alerts`,
  };
}
