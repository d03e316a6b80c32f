import Type from 'typebox';
import { ApiError } from '../errors.ts';
import type { Answer, Call, Endpoint, ParameterDocs } from '../http/endpoint.ts';
import { wholeNumber } from '../http/query.ts';
import { isId } from '../lib/ids.ts';
import type { Windows } from '../limits/window.ts';
import { filtersOf } from '../webhooks/endpoint-fields.ts';
import {
  endpointOverlapEnd,
  endpoints_max,
  listEndpoints,
  type EndpointRef,
  type WebhookEndpoint,
} from '../webhooks/endpoints.ts';
import { event_types, isEventType } from '../webhooks/events.ts';
import {
  alterEndpoint,
  deleteEndpoint,
  readReplay,
  registerEndpoint,
  replay_max,
  replaySpan,
  requireEndpoint,
  rotateSecretOf,
  testEndpoint,
  type Actor,
} from '../webhooks/manage.ts';
import type { ManualSendParts } from '../webhooks/manual.ts';
import { refuseBlocked } from './blocked.ts';
import { listOf } from './schemas.ts';
import { exampleData } from './webhook-examples.ts';
import {
  new_webhook_endpoint,
  webhook_endpoint,
  webhook_endpoint_change,
  webhook_endpoint_fields,
  webhook_event_type,
  webhook_replay,
  webhook_replay_request,
  webhook_test,
} from './webhook-schemas.ts';

/** The parts of the app that endpoints of webhooks take. */
type Parts = ManualSendParts & { readonly windows: Windows };

const base = { tag: 'Webhooks' } as const;
const id: Record<string, ParameterDocs> = { id: { description: 'Id of an endpoint.', schema: { type: 'string' } } };
const shown_docs = { 200: { description: 'The endpoint.', schema: webhook_endpoint } };

const create_endpoint: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/webhook_endpoints',
  docs: {
    ...base,
    summary: 'Register a webhook endpoint',
    description: `Gets the events of the account that it asks for, beside the webhook_url of tasks. At most ${endpoints_max} of one account.`,
    body: {
      schema: webhook_endpoint_fields,
      examples: {
        tasks: {
          url: 'https://example.com/medley',
          events: ['task.*', 'balance.low'],
          filters: { metadata: { team: 'web' } },
        },
      },
    },
    responses: { 201: { description: 'The endpoint with its secret.', schema: new_webhook_endpoint } },
    errors: [403, 409, 422],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const { endpoint, secret } = await registerEndpoint(app, call.caller.account.id, call.body, actorOf(call));
    return { status: 201, body: { ...endpointView(endpoint, app.clock.now()), secret } };
  },
};

const list_endpoints: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/webhook_endpoints',
  docs: {
    ...base,
    summary: 'List webhook endpoints',
    description: 'Those of the account, the oldest first, without their secrets.',
    query: {
      limit: {
        description: 'Number of endpoints.',
        schema: { type: 'integer', minimum: 1, maximum: 100, default: endpoints_max },
      },
      after: { description: 'Endpoints after this one in the list.', schema: { type: 'string' } },
    },
    responses: { 200: { description: 'A page of endpoints.', schema: listOf(webhook_endpoint) } },
  },
  handle: handleList,
};

async function handleList(app: Parts, { caller, query }: Call): Promise<Answer> {
  const limit = wholeNumber(query, 'limit', { min: 1, max: 100 }) ?? endpoints_max;
  const after = query.get('after');
  if (after !== undefined && !isId('whe', after))
    throw new ApiError('invalid_request', 'after must be the id of a webhook endpoint.', { param: 'after' });
  const rest = (await listEndpoints(app.db, caller.account.id)).filter(
    (each) => after === undefined || each.id > after,
  );
  const page = rest.slice(0, limit);
  const data = page.map((endpoint) => endpointView(endpoint, app.clock.now()));
  const [first_id, last_id] = [data[0]?.id ?? null, data.at(-1)?.id ?? null];
  return { status: 200, body: { object: 'list', data, has_more: rest.length > limit, first_id, last_id } };
}

const get_endpoint: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/webhook_endpoints/{id}',
  docs: {
    ...base,
    summary: 'Get a webhook endpoint',
    description: 'Returns what it asks for, and whether its deliveries arrive. Without its secret.',
    params: id,
    responses: shown_docs,
    errors: [404],
  },
  handle: async (app, call) => {
    return { status: 200, body: endpointView(await requireEndpoint(app, refOf(call)), app.clock.now()) };
  },
};

const change_endpoint: Endpoint<Parts> = {
  method: 'PATCH',
  path: '/v1/webhook_endpoints/{id}',
  docs: {
    ...base,
    summary: 'Change a webhook endpoint',
    description:
      'Fields that the body does not name stay. `filters` are replaced as a whole. Retries go to the new address.',
    params: id,
    body: { schema: webhook_endpoint_change, examples: { enable: { enabled: true } } },
    responses: shown_docs,
    errors: [403, 404, 422],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const endpoint = await alterEndpoint(app, refOf(call), call.body, actorOf(call));
    return { status: 200, body: endpointView(endpoint, app.clock.now()) };
  },
};

const delete_endpoint: Endpoint<Parts> = {
  method: 'DELETE',
  path: '/v1/webhook_endpoints/{id}',
  docs: {
    ...base,
    summary: 'Delete a webhook endpoint',
    description: 'What waits for it is not sent. To delete it again changes nothing, and is no mistake.',
    params: id,
    responses: {
      200: {
        description: 'It is deleted.',
        schema: Type.Object({
          id: Type.String(),
          object: Type.Literal('webhook_endpoint'),
          deleted: Type.Literal(true),
        }),
      },
    },
    errors: [404],
  },
  handle: async (app, call) => {
    const ref = refOf(call);
    await deleteEndpoint(app, ref, actorOf(call));
    return { status: 200, body: { id: ref.id, object: 'webhook_endpoint', deleted: true } };
  },
};

const rotate_secret: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/webhook_endpoints/{id}/rotate_secret',
  docs: {
    ...base,
    summary: 'Rotate the secret of a webhook endpoint',
    description: 'For 24 hours `webhook-signature` has a signature by the previous secret, too.',
    params: id,
    responses: { 200: { description: 'The endpoint with its new secret.', schema: new_webhook_endpoint } },
    errors: [403, 404],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const { endpoint, secret } = await rotateSecretOf(app, refOf(call), actorOf(call));
    return { status: 200, body: { ...endpointView(endpoint, app.clock.now()), secret } };
  },
};

const test_endpoint: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/webhook_endpoints/{id}/test',
  docs: {
    ...base,
    summary: 'Send a test event',
    description: 'Sends an example of an event once, now, and returns how the receiver answered.',
    params: id,
    body: {
      schema: Type.Object({ event: webhook_event_type }),
      examples: { task: { event: 'task.succeeded' } },
    },
    responses: {
      200: {
        description: 'The answer of the receiver.',
        schema: webhook_test,
      },
    },
    errors: [403, 404],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const type = readEventType(call.body);
    const data = exampleData(type, call.caller.account.currency, new Date(app.clock.now()));
    const sent = await testEndpoint(app, refOf(call), { type, data }, actorOf(call));
    const { id: delivery_id, delivered, status, error, duration_ms, headers, answer } = sent;
    const body = { object: 'webhook_test', delivery_id, delivered, status, error, duration_ms, headers, answer };
    return { status: 200, body };
  },
};

/** Reads the type of a test event. Throws ApiError 400. */
export function readEventType(body: Record<string, unknown> | undefined) {
  const event = body?.['event'];
  if (typeof event === 'string' && isEventType(event)) return event;
  throw new ApiError('invalid_request', `event must be one of ${event_types.join(', ')}.`, { param: 'event' });
}

const replay_endpoint: Endpoint<Parts> = {
  method: 'POST',
  path: '/v1/webhook_endpoints/{id}/replay',
  docs: {
    ...base,
    summary: 'Send the events of a span again',
    description: `Those that did not arrive, or all; at most ${replay_max} in one call, the oldest first, after what is sent for the first time. Their ids stay the same.`,
    params: id,
    body: {
      schema: webhook_replay_request,
      examples: { count: { from: '2026-01-31T12:00:00Z', to: '2026-01-31T18:00:00Z', dry_run: true } },
    },
    responses: {
      202: {
        description: 'They are queued, or counted.',
        schema: webhook_replay,
      },
    },
    errors: [403, 404, 409],
  },
  handle: async (app, call) => {
    refuseBlocked(call.caller);
    const replay = readReplay(call.body, new Date(app.clock.now()));
    const { events: count, next_from } = await replaySpan(app, refOf(call), replay, actorOf(call));
    const { dry_run } = replay;
    return { status: 202, body: { object: 'webhook_replay', events: count, next_from, dry_run } };
  },
};

/** Endpoints of an account for its events. */
export const webhook_endpoints: readonly Endpoint<Parts>[] = [
  create_endpoint,
  list_endpoints,
  get_endpoint,
  change_endpoint,
  delete_endpoint,
  rotate_secret,
  test_endpoint,
  replay_endpoint,
];

function refOf({ caller, params }: Call): EndpointRef {
  return { account_id: caller.account.id, id: params['id'] ?? '' };
}

/** In the audit log a key stands by its name and id, since nobody else is known. */
function actorOf({ caller, address }: Call): Actor {
  return { by: `key ${caller.key.name} (${caller.key.id})`, address };
}

/** An endpoint as callers see it, without its secret. */
function endpointView(endpoint: WebhookEndpoint, now_ms: number) {
  const { id: endpoint_id, disabled_reason } = endpoint;
  const iso = (at: Date | null | undefined) => at?.toISOString() ?? null;
  return {
    id: endpoint_id,
    object: 'webhook_endpoint',
    url: endpoint.url,
    description: endpoint.description,
    events: endpoint.events,
    filters: filtersOf(endpoint),
    enabled: endpoint.enabled,
    disabled_reason,
    disabled_at: iso(endpoint.disabled_at),
    failing_since: iso(endpoint.failing_since),
    last_delivered_at: iso(endpoint.last_delivered_at),
    previous_secret_until: iso(endpointOverlapEnd(endpoint, now_ms)),
    created_at: endpoint.created_at.toISOString(),
  };
}
