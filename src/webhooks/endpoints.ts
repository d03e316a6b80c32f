import { newWebhookSecret } from '../accounts/accounts.ts';
import type { Queryable } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { assert } from '../lib/assert.ts';
import { firstIdSince, newId } from '../lib/ids.ts';
import { targetOf } from './delivery.ts';
import type { EndpointFields } from './endpoint-fields.ts';
import { overlapEnd, secretsAt, type Secrets } from './sign.ts';

/** Reasons for which an endpoint is disabled: somebody did so, its deliveries failed for days, or its receiver answered 410. */
export type DisabledReason = 'manual' | 'failing' | 'gone';

/** An address that an account has registered for its events. */
export type WebhookEndpoint = EndpointFields & {
  account_id: string;
  id: string;
  disabled_reason: DisabledReason | null;
  disabled_at: Date | null;
  /** Time at which the previous secret was replaced. */
  secret_rotated_at: Date | null;
  /** The first failed attempt since one arrived. */
  failing_since: Date | null;
  last_failed_at: Date | null;
  last_delivered_at: Date | null;
  created_at: Date;
};

export type EndpointRef = Pick<WebhookEndpoint, 'account_id' | 'id'>;

/** Endpoints of one account: an event has as many deliveries at most. */
export const endpoints_max = 20;

const columns = `account_id, id, url, description, events, models, key_ids, project_ids, pairs, enabled, disabled_reason, disabled_at,
  secret_rotated_at, failing_since, last_failed_at, last_delivered_at, created_at`;

/** An endpoint with its secret, which is shown this once. */
export type NewEndpoint = { endpoint: WebhookEndpoint; secret: string };

/** Registers an endpoint; undefined if the account has `endpoints_max`. */
export async function createEndpoint(
  db: Queryable,
  account_id: string,
  fields: EndpointFields,
  now: Date,
): Promise<NewEndpoint | undefined> {
  const secret = newWebhookSecret();
  const target = targetOf(account_id, fields.url);
  const disabled = fields.enabled ? {} : { disabled_reason: 'manual', disabled_at: now };
  const record = {
    ...fields,
    ...disabled,
    account_id,
    id: newId('whe', now.getTime()),
    lane: target.endpoint,
    host: target.host,
    secret,
    created_at: now,
    changed_at: now,
  };
  const rows = await db.query<WebhookEndpoint | { id: null }>(
    `select ${columns} from create_webhook_endpoint($1, $2)`,
    [recordText(record), endpoints_max],
  );
  const [endpoint] = rows;
  return endpoint && endpoint.id !== null ? { endpoint, secret } : undefined;
}

/** All endpoints of an account, oldest first. */
export async function listEndpoints(db: Queryable, account_id: string): Promise<WebhookEndpoint[]> {
  return db.query<WebhookEndpoint>(`select ${columns} from webhook_endpoints where account_id = $1 order by id`, [
    account_id,
  ]);
}

export async function findEndpoint(
  db: Queryable,
  { account_id, id }: EndpointRef,
): Promise<WebhookEndpoint | undefined> {
  const rows = await db.query<WebhookEndpoint>(
    `select ${columns} from webhook_endpoints where account_id = $1 and id = $2`,
    [account_id, id],
  );
  return rows[0];
}

/** Writes the fields of an endpoint. Who enables it again gives it a fresh start. Undefined if it is gone. */
export async function changeEndpoint(
  db: Queryable,
  { account_id, id }: EndpointRef,
  fields: EndpointFields,
  now: Date,
): Promise<WebhookEndpoint | undefined> {
  const { url, description, events, models, key_ids, project_ids, pairs, enabled } = fields;
  const target = targetOf(account_id, url);
  const rows = await db.query<WebhookEndpoint>(
    `update webhook_endpoints set url = $3, lane = $4, host = $5, description = $6, events = $7, models = $8, key_ids = $9,
        pairs = $10, enabled = $11, changed_at = $12, project_ids = $13,
        disabled_reason = case when $11 then null else coalesce(disabled_reason, 'manual') end,
        disabled_at = case when $11 then null else coalesce(disabled_at, $12) end,
        failing_since = case when enabled or not $11 then failing_since end
      where account_id = $1 and id = $2 returning ${columns}`,
    [
      account_id,
      id,
      url,
      target.endpoint,
      target.host,
      description,
      events,
      models,
      key_ids,
      pairs,
      enabled,
      now,
      project_ids,
    ],
  );
  return rows[0];
}

/** Removes an endpoint. What waits for it is dropped instead of sent. Returns whether it was there. */
export async function removeEndpoint(db: Queryable, { account_id, id }: EndpointRef): Promise<boolean> {
  const rows = await db.query('delete from webhook_endpoints where account_id = $1 and id = $2 returning 1', [
    account_id,
    id,
  ]);
  return rows.length > 0;
}

/**
 * Gives an endpoint a new secret, from the next attempt on. For 24 hours the standard signature is made with the one
 * before as well. Undefined if it is gone.
 */
export async function rotateEndpointSecret(
  db: Queryable,
  { account_id, id }: EndpointRef,
  now: Date,
): Promise<NewEndpoint | undefined> {
  const secret = newWebhookSecret();
  const rows = await db.query<WebhookEndpoint>(
    `update webhook_endpoints set secret_before = secret, secret_rotated_at = $3, secret = $4
      where account_id = $1 and id = $2 returning ${columns}`,
    [account_id, id, now, secret],
  );
  return rows[0] && { endpoint: rows[0], secret };
}

type SecretRow = {
  webhook_secret: string;
  webhook_secret_before: string | null;
  webhook_secret_rotated_at: Date | null;
};

/** The secrets that sign for an endpoint at this time. */
export async function endpointSecrets(
  db: Queryable,
  { account_id, id }: EndpointRef,
  now_ms: number,
): Promise<Secrets> {
  const rows = await db.query<SecretRow>(
    `select secret as webhook_secret, secret_before as webhook_secret_before, secret_rotated_at as webhook_secret_rotated_at
       from webhook_endpoints where account_id = $1 and id = $2`,
    [account_id, id],
  );
  assert(rows[0], 'an endpoint that was found has its secret');
  return secretsAt(rows[0], now_ms);
}

/** Returns the time until which the secret before the present one is valid, too; undefined if there is none. */
export function endpointOverlapEnd({ secret_rotated_at }: WebhookEndpoint, now_ms: number): Date | undefined {
  const rotated = { webhook_secret: '', webhook_secret_before: '', webhook_secret_rotated_at: secret_rotated_at };
  return overlapEnd(rotated, now_ms);
}

/** Deliveries to an endpoint on one day, by what became of them so far. */
export type EndpointDay = { endpoint_id: string; day: string; delivered: number; dropped: number; waiting: number };

/** Deliveries to the endpoints of an account since a time, by day. */
export async function endpointDays(db: Queryable, account_id: string, since: Date): Promise<EndpointDay[]> {
  const rows = await db.query<
    { endpoint_id: string; day: string } & Record<'delivered' | 'dropped' | 'waiting', bigint>
  >(
    `select endpoint_id, to_char(created_at at time zone 'UTC', 'YYYY-MM-DD') as day,
            count(*) filter (where state = 'delivered') as delivered, count(*) filter (where state = 'dropped') as dropped,
            count(*) filter (where state = 'waiting') as waiting
       from deliveries d
      where account_id = $1 and endpoint_id in (select w.id from webhook_endpoints w where w.account_id = $1) and id >= $2
      group by 1, 2 order by 1, 2`,
    [account_id, firstIdSince('dlv', since.getTime())],
  );
  return rows.map(({ endpoint_id, day, delivered, dropped, waiting }) => {
    return { endpoint_id, day, delivered: Number(delivered), dropped: Number(dropped), waiting: Number(waiting) };
  });
}
