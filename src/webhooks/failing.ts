import { audit } from '../accounts/audit.ts';
import type { Db } from '../db/database.ts';
import type { DisabledReason } from './endpoints.ts';

/** An endpoint of which people are to hear. `disabled_reason` is null while it is still tried. */
export type FailingEndpoint = {
  account_id: string;
  id: string;
  url: string;
  failing_since: Date | null;
  disabled_reason: Exclude<DisabledReason, 'manual'> | null;
  disabled_at: Date | null;
};

/** Disables the endpoints whose deliveries have all failed for so long. Several nodes may do so at once. */
export async function disableFailing(db: Db, disable_after_ms: number, now: Date): Promise<void> {
  await db.tx(async (tx) => {
    const rows = await tx.query<{ account_id: string; id: string; url: string }>(
      `update webhook_endpoints set enabled = false, disabled_reason = 'failing', disabled_at = $1, changed_at = $1
        where enabled and last_failed_at >= failing_since + make_interval(secs => $2) returning account_id, id, url`,
      [now, disable_after_ms / 1000],
    );
    for (const { account_id, id, url } of rows) {
      const details = { url, reason: 'failing' };
      await audit(tx, { account_id, by: 'the service', action: 'webhook_endpoint.disable', subject: id, details, now });
    }
  });
}

/**
 * Returns the endpoints whose deliveries have all failed for a third of the time after which they are disabled, and those
 * that the service has disabled.
 */
export async function failingEndpoints(db: Db, disable_after_ms: number): Promise<FailingEndpoint[]> {
  return db.query<FailingEndpoint>(
    `select account_id, id, url, failing_since, disabled_reason, disabled_at from webhook_endpoints
      where disabled_reason in ('failing', 'gone') or enabled and last_failed_at >= failing_since + make_interval(secs => $1)
      order by account_id, id`,
    [disable_after_ms / 3000],
  );
}
