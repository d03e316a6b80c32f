import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { findAccount, rotateWebhookSecret, type Account } from '../accounts/accounts.ts';
import type { Answer } from '../http/endpoint.ts';
import { oneOf, wholeNumber } from '../http/query.ts';
import { ApiError, invalidField } from '../errors.ts';
import { checkUserUrl } from '../net/address.ts';
import { isId } from '../lib/ids.ts';
import { testBody } from '../tasks/task.ts';
import { takeTest } from '../webhooks/manage.ts';
import { resend, sendTest } from '../webhooks/manual.ts';
import {
  bodyOfDelivery,
  deliveryOf,
  listDeliveries,
  listDeliveryAttempts,
  type Delivery,
  type DeliveryFilter,
} from '../webhooks/delivery.ts';
import { overlapEnd, secretsAt, shownHeaders } from '../webhooks/sign.ts';
import { renderDelivery, renderAttempt } from './deliveries.ts';
import { readBodyFields } from './body-fields.ts';
import { auditAction } from './audit-action.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { Page } from './views/activity.ts';
import type { DeliveryDetailView, DeliveryLineView, SecretView, TestSentView, WebhooksView } from './views/webhooks.ts';

/** Facts for the page besides its list; it has no secret in it. */
export const get_webhooks = account_endpoint('GET', '/webhooks', 'read', (app, { account }) => {
  const view: WebhooksView = {
    attempts_max: app.catalog.current.settings.webhooks.retry_delays_ms.length + 1,
    overlap_until: overlapEnd(account, app.clock.now())?.toISOString() ?? null,
  };
  return { status: 200, body: view };
});

/** Tells the secret; that it was asked for is written down. */
export const reveal_secret = account_endpoint(
  'POST',
  '/webhooks/secret',
  'webhooks',
  async (app, call) => {
    await auditAction(app, call, 'webhook_secret.reveal');
    return secretAnswer(app, call.account);
  },
  { needs_proof: true },
);

/** A new secret. The old one signs beside it for a day; one that was rotated out before signs no more. */
export const rotate_secret = account_endpoint(
  'POST',
  '/webhooks/secret/rotate',
  'webhooks',
  async (app, call) => {
    const { id } = call.account;
    await rotateWebhookSecret(app.db, id, new Date(app.clock.now()));
    await auditAction(app, call, 'webhook_secret.rotate');
    const account = await findAccount(app.db, id);
    if (!account) throw new Error(`the account ${id} is gone`);
    return secretAnswer(app, account);
  },
  { needs_proof: true },
);

function secretAnswer({ clock }: { clock: Clock }, account: Account): Answer {
  const now_ms = clock.now();
  const [secret, before = null] = secretsAt(account, now_ms);
  const view: SecretView = { secret, before, overlap_until: overlapEnd(account, now_ms)?.toISOString() ?? null };
  return { status: 200, body: view };
}

/** Sends a test payload here and now, and tells how the receiver answered. */
export const send_test = account_endpoint('POST', '/webhooks/test', 'webhooks', async (app, call) => {
  const { account, body } = call;
  const url = readBodyFields(body).text('url', 2_000);
  const problem = checkUserUrl(url, app.addressRules());
  if (problem) throw invalidField('url', `The address ${problem}`);
  await takeTest(app, account.id);
  const payload = testBody(account.currency, new Date(app.clock.now()));
  const sent = await sendTest(app, account, url, payload);
  const { id, delivered, status, error, duration_ms, answer, headers } = sent;
  await auditAction(app, call, 'webhook.test', id, { url });
  const view: TestSentView = { id, delivered, status, error, duration_ms, answer, headers };
  return { status: 200, body: view };
});

const text = { type: 'string' };
const filters = {
  limit: { description: 'Number of deliveries.', schema: { type: 'integer' } },
  after: { description: 'Older than this one.', schema: text },
  state: { description: 'Only in this state.', schema: text },
  task: { description: 'Only those that tell of this task.', schema: text },
  event: { description: 'Only of this type.', schema: text },
  endpoint: { description: 'Only to this endpoint.', schema: text },
  q: { description: 'Only to addresses with this part.', schema: text },
};

/** The account's deliveries, newest first. */
export const list_deliveries = account_endpoint('GET', '/deliveries', 'read', handleList, { query: filters });

async function handleList({ db }: { db: Db }, { account, query }: AccountCall): Promise<Answer> {
  const after = query.get('after');
  if (after !== undefined && !isId('dlv', after)) throw invalidField('after', 'after must be the id of a delivery.');
  const standing = oneOf(query, 'state', ['waiting', 'retrying', 'delivered', 'dropped']);
  const { lines, has_more } = await listDeliveries(db, {
    account_id: account.id,
    limit: wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? 25,
    ...(after !== undefined && { after }),
    ...(standing && { standing }),
    ...searchOf(query),
  });
  const data = lines.map((line) => {
    return { ...renderDelivery(line), last_status: line.last_status, last_error: line.last_error };
  });
  const page: Page<DeliveryLineView> = { data, has_more };
  return { status: 200, body: page };
}

/** Reads the filters of the list. An id that cannot be one finds nothing. */
function searchOf(query: AccountCall['query']): Partial<DeliveryFilter> {
  const clean = (name: string) => query.get(name)?.replaceAll('\0', '').trim() || undefined;
  const [task_id, event, endpoint_id, url_part] = [clean('task'), clean('event'), clean('endpoint'), clean('q')];
  return {
    ...(task_id !== undefined && { task_id }),
    ...(event !== undefined && { event }),
    ...(endpoint_id !== undefined && { endpoint_id }),
    ...(url_part !== undefined && { url_part }),
  };
}

/** One delivery with every attempt. */
export const get_delivery = account_endpoint('GET', '/deliveries/{id}', 'read', async (app, call) => {
  const delivery = await findOwn(app.db, call);
  const [attempts, body] = await Promise.all([
    listDeliveryAttempts(app.db, delivery),
    bodyOfDelivery(app.db, delivery),
  ]);
  const { id, event } = delivery;
  const attempt_log = attempts.map((attempt) => {
    const request_headers = shownHeaders({ id, event, sent_at_ms: attempt.started_at.getTime() });
    return { ...renderAttempt(attempt), request_headers };
  });
  const view: DeliveryDetailView = { ...renderDelivery(delivery), body, attempt_log };
  return { status: 200, body: view };
});

/** The same bytes once more, as soon as there is a place. */
export const resend_delivery = account_endpoint('POST', '/deliveries/{id}/resend', 'webhooks', async (app, call) => {
  const delivery = await findOwn(app.db, call);
  const answer = await resend(app, delivery);
  if (answer === 'missing') throw unknownDelivery();
  if (answer === 'busy') {
    throw new ApiError('conflict', 'It is being sent already: an attempt is due now or in progress.');
  }
  if (answer === 'disabled') {
    throw new ApiError('conflict', 'Its endpoint is disabled or deleted. Enable it, then send it again.');
  }
  await auditAction(app, call, 'webhook.resend', delivery.id);
  return { status: 202, body: { ok: true } };
});

async function findOwn(db: Db, { account, params }: AccountCall): Promise<Delivery> {
  const { id = '' } = params;
  const delivery = isId('dlv', id) ? await deliveryOf(db, { account_id: account.id, id }) : undefined;
  if (!delivery) throw unknownDelivery();
  return delivery;
}

function unknownDelivery(): ApiError {
  return new ApiError('not_found', 'There is no such delivery, or it is no longer kept.');
}
