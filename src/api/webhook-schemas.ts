import Type from 'typebox';
import { event_kinds, event_meanings, event_types, type EventType } from '../webhooks/events.ts';
import { cost, task } from './schemas.ts';

/** The bodies of webhook endpoints as JSON Schema, and those of the events that they receive. */

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);
const time = (description: string) => Type.String({ format: 'date-time', description });

export const subscribed_event = Type.Enum(['*', ...event_kinds.map((kind) => `${kind}.*`), ...event_types]);

export const webhook_event_type = Type.Enum([...event_types]);

export const webhook_filters = Type.Object(
  {
    models: Type.Optional(Type.Array(Type.String(), { description: 'Ids of models.' })),
    keys: Type.Optional(Type.Array(Type.String(), { description: 'Ids of keys.' })),
    projects: Type.Optional(
      Type.Array(Type.String(), {
        description: 'Ids of projects that the key of the task is in when the event comes.',
      }),
    ),
    metadata: Type.Optional(
      Type.Record(Type.String(), Type.String(), { description: 'Pairs that the metadata of the task has.' }),
    ),
  },
  { description: 'Narrow events of tasks: each that is there must fit. Other events pass.' },
);

const url = Type.String({ format: 'uri', description: 'Receives a POST for each event.' });
const description = Type.String({ description: 'For people.' });
const events = Type.Array(subscribed_event, {
  description: 'Types of events, all of a kind as `task.*`, or `*` for all.',
});
const enabled = Type.Boolean({ description: 'A disabled endpoint gets nothing.' });

export const webhook_endpoint = Type.Object({
  id: Type.String(),
  object: Type.Literal('webhook_endpoint'),
  url,
  description,
  events,
  filters: webhook_filters,
  enabled,
  disabled_reason: nullable(
    Type.Enum(['manual', 'failing', 'gone'], {
      description: '`failing`: its deliveries failed for days. `gone`: its receiver answered 410.',
    }),
  ),
  disabled_at: nullable(time('When it was disabled.')),
  failing_since: nullable(time('The first failed attempt since one arrived.')),
  last_delivered_at: nullable(time('When an attempt arrived last, to the minute.')),
  previous_secret_until: nullable(time('Until when the previous secret signs, too.')),
  created_at: time('When it was registered.'),
});

export const new_webhook_endpoint = Type.Object({
  ...webhook_endpoint.properties,
  secret: Type.String({ description: 'Signs what it receives. Shown only once.' }),
});

export const webhook_endpoint_fields = Type.Object({
  url,
  description: Type.Optional(description),
  events,
  filters: Type.Optional(webhook_filters),
  enabled: Type.Optional(enabled),
});

export const webhook_endpoint_change = Type.Partial(webhook_endpoint_fields);

export const webhook_test = Type.Object({
  object: Type.Literal('webhook_test'),
  delivery_id: Type.String(),
  delivered: Type.Boolean({ description: 'The status was from 200 to 299.' }),
  status: nullable(Type.Integer()),
  error: nullable(Type.String({ description: 'Why there was no answer.' })),
  duration_ms: Type.Integer(),
  headers: Type.Record(Type.String(), Type.String(), { description: 'Of the answer.' }),
  answer: nullable(Type.String({ description: 'Its first 2 kB.' })),
});

export const webhook_replay_request = Type.Object({
  from: time('The first moment.'),
  to: Type.Optional(time('The moment after the last. Default: now.')),
  which: Type.Optional(Type.Enum(['failed', 'all'], { default: 'failed' })),
  dry_run: Type.Optional(Type.Boolean({ description: 'Count only.', default: false })),
});

export const webhook_replay = Type.Object({
  object: Type.Literal('webhook_replay'),
  events: Type.Integer({ description: 'Number of events.' }),
  next_from: nullable(time('There are more from this moment on: ask again. Null: these are all.')),
  dry_run: Type.Boolean(),
});

/** The envelope of an event. */
const envelope = <T extends Type.TSchema, D extends Type.TSchema>(type: T, data: D) =>
  Type.Object({
    id: Type.String({ description: 'Of the event: deduplicate by it.' }),
    type,
    created_at: time('When it happened.'),
    account_id: Type.String(),
    data,
  });

export const task_event = envelope(Type.Enum(['task.succeeded', 'task.failed', 'task.canceled']), task);

export const balance_low_event = envelope(
  Type.Literal('balance.low'),
  Type.Object({ available: cost, threshold: cost }),
);

export const balance_topped_up_event = envelope(
  Type.Literal('balance.topped_up'),
  Type.Object({ amount: cost, available: cost, reference: Type.String() }),
);

export const budget_event = envelope(
  Type.Enum(['budget.threshold', 'budget.exceeded']),
  Type.Object({
    key_id: nullable(Type.String({ description: 'The key whose limit it is; null: it is of a budget.' })),
    key_name: nullable(Type.String()),
    budget_id: nullable(Type.String({ description: 'The budget; null: it is of the limit of a key.' })),
    budget_name: nullable(Type.String()),
    limit: cost,
    used: cost,
    used_percent: Type.Number(),
    resets_at: nullable(time('When it resets; null for a budget of all time.')),
  }),
);

export const invoice_created_event = envelope(
  Type.Literal('invoice.created'),
  Type.Object({
    number: Type.String(),
    month: Type.String({ description: 'Such as `2026-01`.' }),
    total: cost,
    supplement_to: nullable(Type.String({ description: 'Number of the invoice that it supplements.' })),
  }),
);

export const model_retiring_event = envelope(
  Type.Literal('model.retiring'),
  Type.Object({
    ends_on: Type.String({ description: 'The day, such as `2026-01-31`.' }),
    models: Type.Array(Type.Object({ id: Type.String(), replacement: nullable(Type.String()) })),
  }),
);

const schemas_of_events: Record<EventType, Type.TSchema> = {
  'task.succeeded': task_event,
  'task.failed': task_event,
  'task.canceled': task_event,
  'balance.low': balance_low_event,
  'balance.topped_up': balance_topped_up_event,
  'budget.threshold': budget_event,
  'budget.exceeded': budget_event,
  'invoice.created': invoice_created_event,
  'model.retiring': model_retiring_event,
};

/** Events that the service posts to endpoints, for `webhooks` of the OpenAPI document. */
export const event_docs = event_types.map((type) => ({
  type,
  summary: event_meanings[type],
  schema: schemas_of_events[type],
}));
