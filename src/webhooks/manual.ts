import { randomUUID } from 'node:crypto';
import type { Account } from '../accounts/accounts.ts';
import type { Db } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { newId } from '../lib/ids.ts';
import { targetOf, type AlertEvent, type Delivery } from './delivery.ts';
import type { Ended } from './delivery-slots.ts';
import { attempt, type Sender } from './send.ts';
import { secretsAt } from './sign.ts';

/** The parts of the app that sending outside the schedule takes. */
export type ManualSendParts = Sender & { readonly db: Db };

/**
 * Sends a delivery once more, the same bytes, as soon as there is a slot. `busy`: its first attempt is
 * still to come, or one is under way.
 */
export async function resend(app: ManualSendParts, { account_id, id }: Pick<Delivery, 'account_id' | 'id'>) {
  const rows = await app.db.query<{ answer: 'sent' | 'missing' | 'busy' }>(
    'select resend_delivery($1, $2, $3) as answer',
    [new Date(app.clock.now()), account_id, id],
  );
  const answer = rows[0]?.answer ?? 'missing';
  if (answer === 'sent') app.engine.wake('delivery.retry');
  return answer;
}

/**
 * Signs a test payload, a finished task without output unless `event` is another one, and sends it once, here and now:
 * whoever asks waits to see how the receiver answers. The address must have passed `checkUserUrl`.
 */
export async function sendTest(
  app: ManualSendParts,
  account: Account,
  url: string,
  body: string,
  event: 'task.succeeded' | AlertEvent = 'task.succeeded',
): Promise<Ended & { id: string }> {
  const now_ms = app.clock.now();
  const id = newId('dlv', now_ms);
  const claim = randomUUID();
  const { endpoint, host } = targetOf(account.id, url);
  const delivery = { account_id: account.id, id, event, url, body, lane: endpoint, host };
  await app.db.query('select add_test_delivery($1, $2, $3, $4)', [
    new Date(now_ms),
    recordText(delivery),
    claim,
    app.catalog.current.settings.webhooks.timeout_ms,
  ]);
  const begun = {
    account_id: account.id,
    id,
    claim,
    number: 1,
    event,
    url,
    body: Buffer.from(body),
    secrets: secretsAt(account, now_ms),
  };
  const ended = await attempt(app, begun);
  await app.delivery_slots.end(begun, ended);
  return { id, ...ended };
}
