import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Account } from '../accounts/accounts.ts';
import type { Db } from '../db/database.ts';
import { recordText } from '../db/record.ts';
import { newId } from '../lib/ids.ts';
import { targetOf, type AlertEvent, type Delivery } from './delivery.ts';
import type { AttemptEnd } from './delivery-slots.ts';
import { endpointSecrets, type WebhookEndpoint } from './endpoints.ts';
import { eventBody, type EventType } from './events.ts';
import { attempt, type Sender } from './send.ts';
import { secretsAt, type Secrets } from './sign.ts';

/** The parts of the app that sending outside the schedule takes. */
export type ManualSendParts = Sender & { readonly db: Db };

/**
 * Sends a delivery once more, the same bytes, as soon as there is a slot. `busy`: its first attempt is still to come, or
 * one is under way. `disabled`: its endpoint is, or is gone.
 */
export async function resend(app: ManualSendParts, { account_id, id }: Pick<Delivery, 'account_id' | 'id'>) {
  const rows = await app.db.query<{ answer: 'sent' | 'missing' | 'busy' | 'disabled' }>(
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
): Promise<SendResult> {
  return sendNow(app, { account_id: account.id, event, url, body }, secretsAt(account, app.clock.now()));
}

/** Sends an example of an event to an endpoint, once, here and now, whether it is enabled or not. `data` is JSON text. */
export async function sendEventTest(
  app: ManualSendParts,
  { account_id, id, url }: WebhookEndpoint,
  { type, data }: { type: EventType; data: string },
): Promise<SendResult> {
  const now_ms = app.clock.now();
  const secrets = await endpointSecrets(app.db, { account_id, id }, now_ms);
  const body = eventBody({ id: newId('evt', now_ms), type, account_id, data }, new Date(now_ms));
  return sendNow(app, { account_id, event: type, url, body, endpoint_id: id }, secrets);
}

/** Answer of a receiver to what was sent at once; `headers` has some of its answer's. */
export type SendResult = AttemptEnd & { id: string; headers: Record<string, string> };

type Payload = { account_id: string; event: string; url: string; body: string; endpoint_id?: string };

async function sendNow(app: ManualSendParts, payload: Payload, secrets: Secrets): Promise<SendResult> {
  const now_ms = app.clock.now();
  const { account_id, event, url, body } = payload;
  const id = newId('dlv', now_ms);
  const claim = randomUUID();
  const { endpoint, host } = targetOf(account_id, url);
  await app.db.query('select add_test_delivery($1, $2, $3, $4)', [
    new Date(now_ms),
    recordText({ ...payload, id, lane: endpoint, host }),
    claim,
    app.catalog.current.settings.webhooks.timeout_ms,
  ]);
  const begun = { account_id, id, claim, number: 1, event, url, body: Buffer.from(body), secrets };
  let headers: Record<string, string> = {};
  const ended = await attempt(app, begun, undefined, (received) => (headers = shownHeaders(received)));
  await app.delivery_slots.end(begun, ended);
  return { id, headers, ...ended };
}

const headers_max = 30;
const header_length_max = 200;

/** For people: the first ones, cut. A receiver chooses them, and may be anybody. */
function shownHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const shown = Object.entries(headers).slice(0, headers_max);
  return Object.fromEntries(
    shown.map(([name, value]) => [name.slice(0, header_length_max), String(value).slice(0, header_length_max)]),
  );
}
