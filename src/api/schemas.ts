import Type from 'typebox';
import { refusal_reasons } from '../errors.ts';

/** The bodies of the service as JSON Schema, one definition each; /openapi.json is made of them. */

/** A sentence of the docs of reads that are open to limited keys. */
export const limited_key_docs = 'A key that is limited to a project reads those of its project.';

export const cost = Type.Object(
  {
    amount: Type.String({ description: 'Decimal amount with two fraction digits.', examples: ['0.02'] }),
    currency: Type.String({ description: "Code of the account's billing currency.", examples: ['USD'] }),
    exact: Type.String({
      description: 'The same amount to the millionth, as the ledger books it.',
      examples: ['0.020000'],
    }),
  },
  { description: 'An amount of money.' },
);

const nullable = <T extends Type.TSchema>(schema: T) => Type.Union([schema, Type.Null()]);

const timestamp = (description: string) => Type.String({ format: 'date-time', description });

export const output_item = Type.Object(
  {
    type: Type.Enum(['image', 'video', 'audio', 'text']),
    url: Type.String({ format: 'uri', description: 'Temporary download link.' }),
    content_type: Type.String(),
    size_bytes: Type.Integer(),
    width: Type.Optional(Type.Integer({ description: 'Pixels (image, video).' })),
    height: Type.Optional(Type.Integer({ description: 'Pixels (image, video).' })),
    duration: Type.Optional(Type.Number({ description: 'Seconds (video, audio).' })),
    text: Type.Optional(Type.String({ description: 'The text itself, up to 64 KiB (text).' })),
    expires_at: timestamp('When the link stops working.'),
  },
  { description: 'A produced file, measured from its bytes.' },
);

export const task_error = Type.Object({
  type: Type.Enum([
    'upstream_error',
    'timeout',
    'content_policy_violation',
    'invalid_request',
    'canceled',
    'internal_error',
  ]),
  message: Type.String({ description: 'For people; may change.' }),
});

export const task = Type.Object(
  {
    id: Type.String({ description: 'Task identifier, `task_` + 26 characters.' }),
    status: Type.Enum(['queued', 'running', 'succeeded', 'failed']),
    model: Type.String(),
    output: Type.Array(output_item),
    cost: cost,
    estimated_cost: cost,
    error: nullable(task_error),
    created_at: timestamp('Creation time.'),
    started_at: nullable(timestamp('When the run started.')),
    completed_at: nullable(timestamp('When the task became final.')),
    metadata: Type.Record(Type.String(), Type.String()),
  },
  { description: 'A generation task.' },
);

export const generate_body = Type.Object({
  model: Type.String({ description: 'Model id.', examples: ['sandbox/image'] }),
  input: Type.Object({}, { description: "Must match the model's input_schema.", additionalProperties: true }),
  webhook_url: Type.Optional(Type.String({ format: 'uri', description: 'Receives a POST when the task is final.' })),
  metadata: Type.Optional(
    Type.Record(Type.String(), Type.String(), { description: 'At most 16 pairs, echoed in the task.' }),
  ),
});

/** The answer of a list or a report that took too long, see src/db/reads.ts. */
export const too_slow = { description: 'It took too long to read: ask for less.' };

/** `{"object":"list", data, has_more, first_id, last_id}` as every list of the service answers. */
export const listOf = (item: Type.TSchema) =>
  Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item),
    has_more: Type.Boolean(),
    first_id: nullable(Type.String()),
    last_id: nullable(Type.String()),
  });

export const key_use = Type.Object({
  spend_limit: nullable(cost),
  spent: cost,
  remaining: nullable(cost),
  resets_at: timestamp('When the month ends, UTC.'),
});

export const balance = Type.Object({
  object: Type.Literal('balance'),
  balance: cost,
  held: cost,
  available: cost,
  currency: Type.String(),
  key: key_use,
  updated_at: timestamp('When this was read.'),
});

export const key = Type.Object({
  object: Type.Literal('api_key'),
  id: Type.String(),
  name: Type.String(),
  account_id: Type.String(),
  currency: Type.String(),
  ...key_use.properties,
  held: cost,
  limits: Type.Object({
    generate_per_minute: Type.Integer(),
    chat_per_minute: Type.Integer(),
    failed_per_24h: Type.Integer(),
  }),
  expires_at: nullable(timestamp('Expiry of the key; null: never.')),
  scopes: nullable(
    Type.Array(Type.Enum(['chat', 'media', 'read']), {
      description: 'Scopes of the key; null: all.',
    }),
  ),
  addresses: nullable(
    Type.Array(Type.String(), { description: 'Ranges from which the key may be used; null: anywhere.' }),
  ),
  models: nullable(
    Type.Array(Type.String(), {
      description:
        'Models that the key may use: ids, aliases of the operator, and beginnings such as `acme/*`; null: all.',
    }),
  ),
  requests_per_minute: nullable(
    Type.Integer({
      description: 'A limit of the key itself, of each kind of requests; `limits` has what counts. Null: none.',
    }),
  ),
});

export const transaction = Type.Object({
  id: Type.String(),
  object: Type.Literal('transaction'),
  type: Type.Enum(['topup', 'hold', 'release', 'charge', 'adjustment']),
  direction: Type.Enum(['in', 'out', 'none'], {
    description: 'Effect on the balance: a hold and its release only reserve money.',
  }),
  amount: cost,
  available_after: cost,
  held_after: cost,
  reference_id: nullable(Type.String({ description: 'The task or the external reference it belongs to.' })),
  key_id: nullable(Type.String()),
  model: nullable(Type.String()),
  reason: nullable(Type.String()),
  created_at: timestamp('When it was booked.'),
});

const labels = {
  user: Type.Optional(nullable(Type.String({ description: 'The end user that the caller named.' }))),
  tag: Type.Optional(nullable(Type.String({ description: 'One of the tags in `metadata.tags`.' }))),
  metadata: Type.Optional(
    Type.Record(Type.String(), nullable(Type.String()), { description: 'Each name of metadata in group_by.' }),
  ),
};

/** Returns the members with which every report begins. */
const reportHead = <Name extends string>(object: Name) => ({
  object: Type.Literal(object),
  from: timestamp('Inclusive.'),
  to: timestamp('Exclusive.'),
  group_by: Type.Array(Type.String()),
});

export const usage = Type.Object({
  ...reportHead('usage'),
  data: Type.Array(
    Type.Object({
      hour: Type.Optional(Type.String({ description: 'When it begins, UTC.' })),
      day: Type.Optional(Type.String()),
      model: Type.Optional(nullable(Type.String())),
      key: Type.Optional(nullable(Type.String())),
      project: Type.Optional(nullable(Type.String())),
      modality: Type.Optional(nullable(Type.String())),
      ...labels,
      count: Type.Integer({ description: 'Number of tasks or calls charged.' }),
      cost,
      units: Type.Record(Type.String(), Type.String(), { description: 'Usage, unit → decimal text.' }),
    }),
  ),
  has_more: Type.Boolean({ description: 'True if more than 10,000 groups have labels: these cost the most.' }),
  total: cost,
});

export const refusals = Type.Object({
  ...reportHead('refusals'),
  data: Type.Array(
    Type.Object({
      hour: Type.Optional(Type.String({ description: 'When it begins, UTC.' })),
      day: Type.Optional(Type.String()),
      reason: Type.Optional(Type.Enum([...refusal_reasons])),
      key: Type.Optional(nullable(Type.String())),
      model: Type.Optional(nullable(Type.String())),
      project: Type.Optional(nullable(Type.String())),
      budget: Type.Optional(nullable(Type.String({ description: 'Id of the budget that refused it.' }))),
      count: Type.Integer({ description: 'Number of requests that were refused.' }),
    }),
  ),
  has_more: Type.Boolean({ description: 'True if there are more than 1,000 groups: these have the most.' }),
  total: Type.Integer({ description: 'Number of requests that were refused in the range.' }),
});

const milliseconds = (description: string) => nullable(Type.Integer({ description }));

export const speed = Type.Object({
  ...reportHead('speed'),
  data: Type.Array(
    Type.Object({
      hour: Type.Optional(Type.String({ description: 'When it begins, UTC.' })),
      day: Type.Optional(Type.String()),
      model: Type.Optional(Type.String()),
      key: Type.Optional(Type.String()),
      route: Type.Optional(nullable(Type.String({ description: 'The last route that was tried.' }))),
      ...labels,
      count: Type.Integer({ description: 'Number of calls and tasks that ended.' }),
      failed: Type.Integer({ description: 'Of these, the ones that failed.' }),
      first_p50_ms: milliseconds('Half of the answers had their first token in this time.'),
      first_p95_ms: milliseconds('95 of 100 had it in this time.'),
      total_p50_ms: milliseconds('Half of the calls and tasks that succeeded took this time, or less.'),
      total_p95_ms: milliseconds('95 of 100 took this time, or less.'),
      tokens_per_second: nullable(
        Type.Number({ description: 'Median, from the first token to the end of streamed answers.' }),
      ),
      feedback_count: Type.Integer({ description: 'Number of scores of the metric that were given to these.' }),
      feedback_score: nullable(Type.Number({ description: 'Mean of these scores, from -1 to 1.' })),
    }),
  ),
  has_more: Type.Boolean({ description: 'True if there are more than 1,000 groups: these have the most calls.' }),
});

export const call = Type.Object(
  {
    object: Type.Literal('call'),
    id: Type.String({ description: 'The `x-request-id` of a chat call, or the id of a task.' }),
    kind: Type.Enum(['chat', 'task']),
    model: Type.String(),
    route: nullable(Type.String({ description: 'The last route that was tried, where the operator names routes.' })),
    style: nullable(Type.String({ description: 'Wire format of a chat call; null: a task.' })),
    modality: nullable(Type.Enum(['image', 'video', 'audio'], { description: 'Of a task; null: a chat call.' })),
    status: Type.Enum(['queued', 'running', 'succeeded', 'failed'], {
      description: 'A chat call is in the list when it has ended.',
    }),
    http_status: nullable(Type.Integer({ description: 'Status of the answer to a chat call; 499: its caller left.' })),
    error_type: nullable(Type.String()),
    first_content_ms: milliseconds('Time to the first token of a chat answer.'),
    total_ms: milliseconds('Time to the end; null: it has not ended.'),
    usage: nullable(
      Type.Object(
        { input_tokens: Type.Integer(), cached_input_tokens: Type.Integer(), output_tokens: Type.Integer() },
        { description: 'Of a chat call.' },
      ),
    ),
    cost,
    key: Type.String({ description: 'Id of the key that made it.' }),
    user: nullable(Type.String({ description: 'The end user that the caller named.' })),
    metadata: Type.Record(Type.String(), Type.String()),
    tags: Type.Array(Type.String(), { description: 'The tags in `metadata.tags`.' }),
    created_at: timestamp('Creation time.'),
    path: Type.String({ description: 'Path of its details, `/v1/chat/…` or `/v1/tasks/…`.' }),
  },
  { description: 'A chat call or a task, without its content.' },
);

const token_counts = {
  input_tokens: Type.Integer(),
  cached_input_tokens: Type.Integer(),
  cache_write_tokens: Type.Integer(),
  cache_write_1h_tokens: Type.Integer({ description: 'The part of `cache_write_tokens` that is kept for an hour.' }),
  output_tokens: Type.Integer(),
  reasoning_tokens: Type.Integer({ description: 'The part of `output_tokens` that is reasoning.' }),
};

export const chat_call = Type.Object(
  {
    object: Type.Literal('chat.call'),
    request_id: Type.String({ description: 'The `x-request-id` of its answer.' }),
    key_id: Type.String({ description: 'Id of the key that made it.' }),
    model: Type.String(),
    style: Type.String({ description: 'Wire format of the caller.' }),
    stream: Type.Boolean(),
    status: Type.Integer({ description: 'Status of the answer; 499: its caller left.' }),
    error_type: nullable(Type.String()),
    error_message: nullable(Type.String({ description: 'The message of its error, at most 600 characters.' })),
    finish: nullable(Type.String({ description: 'Why the model stopped.' })),
    counted_here: Type.Boolean({ description: 'True if the upstream did not report all tokens.' }),
    first_content_ms: milliseconds('Time to the first token.'),
    total_ms: Type.Integer({ description: 'Time to the end, in milliseconds.' }),
    usage: Type.Object({
      ...token_counts,
      search_units: Type.Optional(Type.Number({ description: 'Of a ranking.' })),
    }),
    tools: Type.Optional(
      Type.Object(
        {
          left_out: Type.Optional(Type.Array(Type.String())),
          calls: Type.Optional(Type.Record(Type.String(), Type.Number())),
        },
        { description: 'Tools that the provider runs: those that were left out, and uses of the others.' },
      ),
    ),
    user: Type.Optional(Type.String({ description: 'The end user that the caller named.' })),
    metadata: Type.Optional(Type.Record(Type.String(), Type.String())),
    cost,
    attempts: Type.Array(
      Type.Object({
        route: nullable(Type.String({ description: 'null where the operator does not name routes.' })),
        model: Type.Optional(
          Type.String({ description: 'Its model, where that is another than `model`: a fallback.' }),
        ),
        outcome: Type.Enum(['answered', 'failed']),
        why: Type.Optional(Type.String({ description: 'Why this route was asked.' })),
        duration_ms: Type.Integer(),
      }),
    ),
    created_at: timestamp('Creation time.'),
  },
  { description: 'The record of a chat call, without its content.' },
);

export const feedback = Type.Object(
  {
    id: Type.String({ description: 'Identifier, `feedback_` + 26 characters.' }),
    object: Type.Literal('feedback'),
    reference_id: Type.String({ description: 'The chat call (`x-request-id`) or the task that was scored.' }),
    name: Type.String({ description: 'The metric.' }),
    user: nullable(Type.String({ description: 'The end user, as the caller named them.' })),
    score: Type.Number({ description: 'From -1 to 1.' }),
    comment: nullable(Type.String()),
    tags: Type.Array(Type.String()),
    metadata: Type.Record(Type.String(), Type.String()),
    created_at: timestamp('First time that it was given.'),
    updated_at: timestamp('Last time that it was given.'),
  },
  { description: 'A score of one chat call or task.' },
);

export const estimate = Type.Object({
  estimated_cost: cost,
  available: nullable(cost),
  allowed: Type.Boolean({ description: 'False if POST /v1/generate would answer 402, 403 or 429 now.' }),
});

export const uploaded_file = Type.Object(
  {
    id: Type.String({ description: 'File identifier, `file_` + 26 characters.' }),
    object: Type.Literal('file'),
    bytes: Type.Integer(),
    created_at: Type.Integer({ description: 'Seconds since 1970.' }),
    expires_at: Type.Integer({ description: 'Expiry, seconds since 1970.' }),
    filename: Type.String(),
    purpose: Type.String(),
    status: Type.Literal('processed'),
    kind: Type.Enum(['image', 'video', 'audio', 'document'], {
      description: 'Kind of the file, determined from its bytes.',
    }),
    content_type: Type.String({ description: 'Determined from its bytes.' }),
    width: Type.Optional(Type.Integer({ description: 'Pixels (image, video).' })),
    height: Type.Optional(Type.Integer({ description: 'Pixels (image, video).' })),
    duration: Type.Optional(Type.Number({ description: 'Seconds (video, audio).' })),
  },
  { description: 'A file that a caller uploaded.' },
);

export const links = Type.Object({ object: Type.Literal('list'), data: Type.Array(output_item) });
