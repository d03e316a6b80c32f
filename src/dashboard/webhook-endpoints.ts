import { readEventType } from '../api/webhook-endpoints.ts';
import { exampleData } from '../api/webhook-examples.ts';
import type { Db } from '../db/database.ts';
import { filtersOf } from '../webhooks/endpoint-fields.ts';
import {
  endpointDays,
  endpointOverlapEnd,
  endpoints_max,
  listEndpoints,
  type EndpointDay,
  type EndpointRef,
  type NewEndpoint,
  type WebhookEndpoint,
} from '../webhooks/endpoints.ts';
import { event_kinds, event_meanings, event_types } from '../webhooks/events.ts';
import {
  alterEndpoint,
  deleteEndpoint,
  readReplay,
  registerEndpoint,
  replaySpan,
  rotateSecretOf,
  testEndpoint,
  type Actor,
} from '../webhooks/manage.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type {
  EndpointDayView,
  EndpointsView,
  EndpointView,
  NewEndpointView,
  ReplayView,
  TestSentView,
} from './views/webhooks.ts';

const day_ms = 86_400_000;
const days_shown = 7;

/** The endpoints of the account with their last days, and the events that they may ask for. */
export const list_webhook_endpoints = account_endpoint('GET', '/webhooks/endpoints', 'read', async (app, call) => {
  const now = new Date(app.clock.now());
  const [endpoints, days] = await readEndpoints(app.db, call.account.id, now);
  const view: EndpointsView = {
    data: endpoints.map((endpoint) => renderEndpoint(endpoint, daysOf(days, endpoint.id, now), now)),
    endpoints_max,
    kinds: event_kinds,
    events: event_types.map((type) => ({ type, meaning: event_meanings[type] })),
    disable_after_ms: app.catalog.current.settings.webhooks.disable_after_ms,
  };
  return { status: 200, body: view };
});

function readEndpoints(db: Db, account_id: string, now: Date): Promise<[WebhookEndpoint[], EndpointDay[]]> {
  return Promise.all([listEndpoints(db, account_id), endpointDays(db, account_id, firstDay(now))]);
}

/** The beginning of the first day that is shown. */
function firstDay(now: Date): Date {
  return new Date(Math.floor(now.getTime() / day_ms) * day_ms - (days_shown - 1) * day_ms);
}

/** Each day that is shown, oldest first. */
function daysOf(days: readonly EndpointDay[], id: string, now: Date): EndpointDayView[] {
  const first_ms = firstDay(now).getTime();
  return Array.from({ length: days_shown }, (_, index) => {
    const day = new Date(first_ms + index * day_ms).toISOString().slice(0, 10);
    const row = days.find((each) => each.endpoint_id === id && each.day === day);
    return { day, delivered: row?.delivered ?? 0, dropped: row?.dropped ?? 0, waiting: row?.waiting ?? 0 };
  });
}

function renderEndpoint(endpoint: WebhookEndpoint, days: EndpointDayView[], now: Date): EndpointView {
  const iso = (at: Date | null | undefined) => at?.toISOString() ?? null;
  return {
    id: endpoint.id,
    url: endpoint.url,
    description: endpoint.description,
    events: [...endpoint.events],
    filters: filtersOf(endpoint),
    enabled: endpoint.enabled,
    disabled_reason: endpoint.disabled_reason,
    disabled_at: iso(endpoint.disabled_at),
    failing_since: iso(endpoint.failing_since),
    last_delivered_at: iso(endpoint.last_delivered_at),
    overlap_until: iso(endpointOverlapEnd(endpoint, now.getTime())),
    created_at: endpoint.created_at.toISOString(),
    days,
  };
}

/** Registers an endpoint; the answer is the only place where its secret is shown. */
export const create_webhook_endpoint = account_endpoint(
  'POST',
  '/webhooks/endpoints',
  'webhooks',
  async (app, call) => {
    const created = await registerEndpoint(app, call.account.id, call.body, actorOf(call));
    return { status: 201, body: secretView(created, new Date(app.clock.now())) };
  },
  { needs_proof: true },
);

/** Changes what the body names; enables it, too. */
export const change_webhook_endpoint = account_endpoint(
  'PATCH',
  '/webhooks/endpoints/{id}',
  'webhooks',
  async (app, call) => {
    const now = new Date(app.clock.now());
    const endpoint = await alterEndpoint(app, refOf(call), call.body, actorOf(call));
    return { status: 200, body: renderEndpoint(endpoint, [], now) };
  },
  { needs_proof: true },
);

export const delete_webhook_endpoint = account_endpoint(
  'DELETE',
  '/webhooks/endpoints/{id}',
  'webhooks',
  async (app, call) => {
    await deleteEndpoint(app, refOf(call), actorOf(call));
    return { status: 200, body: { ok: true } };
  },
);

/** A new secret; the previous one signs beside it for a day. */
export const rotate_webhook_endpoint = account_endpoint(
  'POST',
  '/webhooks/endpoints/{id}/rotate',
  'webhooks',
  async (app, call) => {
    const rotated = await rotateSecretOf(app, refOf(call), actorOf(call));
    return { status: 200, body: secretView(rotated, new Date(app.clock.now())) };
  },
  { needs_proof: true },
);

/** Sends an example of an event now, and returns the receiver's answer. */
export const test_webhook_endpoint = account_endpoint(
  'POST',
  '/webhooks/endpoints/{id}/test',
  'webhooks',
  async (app, call) => {
    const type = readEventType(call.body);
    const data = exampleData(type, call.account.currency, new Date(app.clock.now()));
    const sent = await testEndpoint(app, refOf(call), { type, data }, actorOf(call));
    const { id, delivered, status, error, duration_ms, answer, headers } = sent;
    const view: TestSentView = { id, delivered, status, error, duration_ms, answer, headers };
    return { status: 200, body: view };
  },
);

/** Counts the events of a span, or sends them again. */
export const replay_webhook_endpoint = account_endpoint(
  'POST',
  '/webhooks/endpoints/{id}/replay',
  'webhooks',
  async (app, call) => {
    const replay = readReplay(call.body, new Date(app.clock.now()));
    const { events, next_from } = await replaySpan(app, refOf(call), replay, actorOf(call));
    const view: ReplayView = { events, next_from: next_from?.toISOString() ?? null };
    return { status: replay.dry_run ? 200 : 202, body: view };
  },
);

function secretView({ endpoint, secret }: NewEndpoint, now: Date): NewEndpointView {
  return { endpoint: renderEndpoint(endpoint, [], now), secret };
}

function refOf({ account, params }: AccountCall): EndpointRef {
  return { account_id: account.id, id: params['id'] ?? '' };
}

function actorOf({ person, address }: AccountCall): Actor {
  return { user: person.user, address };
}
