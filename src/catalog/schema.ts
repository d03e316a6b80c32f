import { Type, type Static } from 'typebox';
import { hsts_scopes, kinds, units, type Condition } from './model.ts';
import {
  addresses,
  count,
  day,
  decimal,
  duration,
  freeObject,
  httpUrl,
  mapOf,
  model_name,
  rate,
  section,
  text,
  secret_pattern,
} from './schema-parts.ts';
import { alerts } from './alerts-schema.ts';
import { aliases } from './alias-schema.ts';
import { provider } from './provider-schema.ts';
import { responses } from './responses-schema.ts';
import { backup } from './backup-schema.ts';
import { catalog } from './default-schema.ts';
import { content_log } from './content-log-schema.ts';
import { retention } from './retention-schema.ts';
import { sign_in } from './sign-in-schema.ts';
import { status_page } from './status-page-schema.ts';
import { storage } from './storage-schema.ts';
import { tools } from './tools-schema.ts';

/**
 * The shape of `medley.yaml`, once: the type comes from here, and so does the published `medley.schema.json`, by
 * which files are checked and editors complete: making it anew would take each command 0.1 s. `errorMessage`
 * completes a sentence that begins with the setting's path.
 */

const server = section(
  {
    base_url: Type.Optional(httpUrl({ description: 'Public address of the service, used in links to outputs.' })),
    trusted_proxies: Type.Optional(
      addresses({ description: 'Proxies whose X-Forwarded-For is trusted.', default: [] }),
    ),
    cors_origins: Type.Optional(
      Type.Array(Type.String({ format: 'origin', errorMessage: 'must be an origin such as https://app.example.com' }), {
        description: 'Web origins that may call the API from a browser. None by default.',
        default: [],
      }),
    ),
    hsts: Type.Optional(
      Type.Enum([...hsts_scopes], {
        description:
          'Strict-Transport-Security of all answers where the public address is https: for its host, for the names below it too, or off.',
        default: 'host',
      }),
    ),
  },
  { description: 'Addresses and access from browsers.' },
);

const limits = section(
  {
    generate_per_minute: Type.Optional(count(60, { description: 'POST /v1/generate, per key and minute.' })),
    chat_per_minute: Type.Optional(
      count(600, { description: 'Chat, compaction, embeddings, rankings and moderation, per key and minute.' }),
    ),
    chat_at_once: Type.Optional(
      count(200, { description: 'Concurrent calls of the chat paths, embeddings, rankings and moderation, per key.' }),
    ),
    failed_per_24h: Type.Optional(
      count(25, { description: 'Failed generations per account in 24 hours before new ones are paused.' }),
    ),
    other_per_minute: Type.Optional(count(600, { description: 'Everything else, per key and minute.' })),
    waiting_tasks: Type.Optional(
      count(1_000, { description: 'Tasks of an account that wait for a provider that is full.' }),
    ),
  },
  { description: 'Limits of one key or one account.' },
);

const money = section(
  {
    reservations: Type.Optional(
      Type.Enum(['memory', 'database'], {
        description: 'Answers holds of chat from memory where the money leaves no doubt, or never. Read at the start.',
        default: 'memory',
      }),
    ),
  },
  { description: 'How money is held.' },
);

const routing = section(
  {
    by_caller: Type.Optional(
      Type.Boolean({
        description:
          "Whether callers of chat may choose among a model's routes by the field provider, and are told which one answered by the header x-route.",
        default: true,
      }),
    ),
  },
  { description: 'How routes are chosen.' },
);

const net = section(
  {
    allow: Type.Optional(
      addresses({
        description: 'Addresses that user-chosen URLs (webhooks, media inputs) may reach beyond public ones.',
        default: [],
      }),
    ),
  },
  { description: 'Outgoing connections.' },
);

const webhooks = section(
  {
    retry_delays: Type.Optional(
      Type.Array(duration('7d', { description: 'Delay after the previous attempt.' }), {
        description: 'One retry per delay, at most five.',
        maxItems: 5,
        default: ['10s', '1m', '5m', '30m', '2h'],
      }),
    ),
    timeout: Type.Optional(duration('5m', { description: 'For one whole attempt.', default: '10s' })),
    disable_after: Type.Optional(
      duration('90d', {
        description:
          'An endpoint of an account whose deliveries have all failed for so long is disabled; people hear of it after a third of that.',
        default: '3d',
      }),
    ),
  },
  { description: 'Delivery of task events.' },
);

const outputs = section(
  {
    link_ttl: Type.Optional(duration('365d', { description: 'Lifetime of a link to an output.', default: '24h' })),
    keep: Type.Optional(duration('3650d', { description: 'Lifetime of output files.', default: '7d' })),
  },
  { description: 'Files that models produced.' },
);

const tasks = section(
  { keep: Type.Optional(duration('3650d', { description: 'Lifetime of finished tasks.', default: '90d' })) },
  { description: 'Records of tasks.' },
);

const files = section(
  {
    keep: Type.Optional(
      duration('365d', { description: 'Lifetime of a file, unless its upload asks for less.', default: '7d' }),
    ),
    file_mb_max: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1_000,
        default: 200,
        description: 'Largest file, and largest sum of the files of one input, in megabytes.',
      }),
    ),
    account_mb_max: Type.Optional(count(5_000, { description: 'All files of an account together, in megabytes.' })),
    account_files_max: Type.Optional(count(1_000, { description: 'Maximum number of files of an account.' })),
  },
  { description: 'Files that callers upload as inputs.' },
);

const issuer = section(
  {
    name: text({ description: 'Name of the company on invoices.' }),
    address: Type.Optional(
      Type.String({ maxLength: 400, description: 'Its address; several lines if it has line breaks.' }),
    ),
    tax_id: Type.Optional(text({ description: 'Its tax number.' })),
    series: Type.Optional(
      Type.String({
        pattern: '^[A-Z0-9]{1,10}$',
        errorMessage: 'must be 1 to 10 capital letters and digits',
        default: 'MED',
        description: 'Prefix of its invoice numbers: MED-2026-0001.',
      }),
    ),
    tax_percent: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,2}(?:\\.[0-9]{1,4})?$',
        errorMessage: 'must be a decimal in quotes, such as "23"',
        description: 'Tax included in the prices for callers. Without it, invoices show no tax.',
      }),
    ),
  },
  { description: 'The issuer of invoices. Without one there are no invoices.' },
);

const billing = section(
  {
    issuer: Type.Optional(issuer),
    top_up_text: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 2_000,
        description: 'Instructions for people who want to top up and cannot pay by card, such as a bank account.',
      }),
    ),
  },
  { description: 'Invoices and top-ups.' },
);

const mail = section(
  {
    url: Type.String({
      pattern: secret_pattern,
      description: 'env:NAME or file:/path of an address such as smtps://user:password@mail.example.com.',
      errorMessage:
        'must be env:NAME or file:/path: such an address often has a password in it, which does not belong into this file',
      writeOnly: true,
    }),
    from: text({ description: 'Sender of mails: Medley <medley@example.com>.' }),
  },
  {
    description: 'Outgoing mail: new passwords, invitations, invoices. Without it, links are passed on by hand.',
  },
);

const scalar = { type: ['string', 'number', 'boolean', 'null'] };

const price_row = {
  unit: Type.Enum(units, { description: 'The unit that is counted.' }),
  amount: decimal({ description: 'Price in the base currency, a decimal in quotes.' }),
  per: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 1_000_000_000, default: 1, description: 'Number of units for this price.' }),
  ),
  when: Type.Optional(
    Type.Unsafe<Condition>({
      type: 'object',
      minProperties: 1,
      additionalProperties: {
        type: ['string', 'number', 'boolean', 'null', 'array'],
        items: scalar,
        minItems: 1,
        errorMessage: 'must be a value, or a list of values, of the input field',
      },
      description: 'Input fields and the value, or the list of values, that this price is for.',
    }),
  ),
};

const token_price_row = {
  ...price_row,
  from: Type.Optional(
    day(
      'The day on which this price begins, in place of an earlier one for the same unit. A task pays the price of its creation.',
    ),
  ),
  above_input_tokens: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 100_000_000,
      description: 'Chat: for calls whose whole input, cached or not, has more tokens than this.',
    }),
  ),
};

const price = section(token_price_row, {
  description: 'A price. Of several for one unit, the first whose `when` fits applies.',
});

/** Source of a price: its page and the day on which it was read. */
const price_source = section(
  {
    url: httpUrl({ description: 'The page.' }),
    date: day('The day on which it was read.'),
  },
  { description: 'Source of a price; shown by `medley models show`, not to callers.' },
);

const cost = section(
  {
    ...token_price_row,
    amount: decimal({ description: 'Price of the upstream, a decimal in quotes.' }),
    currency: Type.Optional(text({ description: 'One of `currencies`; the base currency if absent.' })),
  },
  { description: "The upstream's price, for margins." },
);

const factor = {
  type: ['string', 'number'],
  minimum: 0,
  pattern: '^(?:\\$input\\..+|\\$media\\..+\\.duration|\\$bytes\\..+|[0-9]{1,9}(?:\\.[0-9]{1,12})?)$',
  errorMessage: 'must be $input.FIELD, $media.FIELD.duration, $bytes.FIELD or a number that is not negative',
};

const estimate_of_unit = Type.Unsafe<string | number | (string | number)[]>({
  type: ['string', 'number', 'array'],
  minimum: 0,
  pattern: factor.pattern,
  items: factor,
  minItems: 1,
  errorMessage:
    'must be $input.FIELD, $media.FIELD.duration, $bytes.FIELD, a number, or a list of these (their product)',
  description:
    '$input.FIELD, a number, $media.FIELD.duration (seconds of the audio or video in a field), $bytes.FIELD or $bytes.FIELD+FIELD (for tokens: the bytes of these texts and 64 more, which no tokenizer exceeds), or a list of these, which are multiplied.',
});

const estimate = section(Object.fromEntries(units.map((unit) => [unit, Type.Optional(estimate_of_unit)])), {
  description: 'Units to hold money for; the charge is measured from the output.',
});

const timeout = section(
  {
    connect: Type.Optional(duration('24h', { description: 'Until the upstream is connected.', default: '5s' })),
    first_byte: Type.Optional(duration('24h', { description: 'Until the answer begins.', default: '60s' })),
    idle: Type.Optional(duration('24h', { description: 'Between two pieces of an answer.', default: '60s' })),
    start: Type.Optional(
      duration('24h', {
        description: 'Until the run has started; if it has not, the next route is tried.',
        default: '60s',
      }),
    ),
    total: Type.Optional(
      duration('24h', {
        description: 'Until the run has ended. Default: 5m for images, 10m for audio and chat, 30m for video.',
      }),
    ),
  },
  { description: 'Time limits of a run.' },
);

const route = section(
  {
    id: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
        errorMessage: 'must be 1 to 64 letters, digits, dots, dashes or underscores',
        description: "Name of the route, unique within the model. Default: the provider's name.",
      }),
    ),
    provider: text({ description: 'One of `providers`.' }),
    upstream_model: Type.Optional(text({ description: "The upstream's name of the model. Default: the id." })),
    timeout: Type.Optional(timeout),
    poll: Type.Optional(
      section(
        {
          first: Type.Optional(duration('1h', { description: 'First poll after the start.', default: '1s' })),
          max: Type.Optional(duration('1h', { description: 'Longest time between two polls.', default: '10s' })),
        },
        { description: 'Times between polls for the state of a run.' },
      ),
    ),
    input: Type.Optional(
      freeObject({
        description:
          'Upstream field: `$input.FIELD`, a constant, or objects and lists of these. `$spread: $input` copies all; `{ $lookup: $input.FIELD, VALUE: … }` is the entry for the value of a field.',
      }),
    ),
    output: Type.Optional(freeObject({ description: "Positions of the results in the upstream's response." })),
    options: Type.Optional(freeObject({ description: 'Settings of the adapter for this route.' })),
    cost: Type.Optional(Type.Array(cost, { description: 'Prices of the upstream.' })),
    cost_source: Type.Optional(price_source),
    on_ambiguous_submit: Type.Optional(
      Type.Enum(['fail', 'failover'], {
        description: 'If it is unknown whether the upstream accepted the run: fail and refund, or try the next route.',
        default: 'fail',
      }),
    ),
  },
  { description: 'One way to run the model.' },
);

const model = section(
  {
    id: Type.String({ ...model_name, description: 'The id that callers send as `model`.' }),
    aliases: Type.Optional(
      Type.Array(Type.String(model_name), {
        maxItems: 16,
        uniqueItems: true,
        description:
          'Other names that callers may send. The id without what stands before its last slash is one by itself, if it is that of no other model.',
      }),
    ),
    kind: Type.Enum(kinds, { description: 'Kind of output.' }),
    name: Type.Optional(text({ description: 'Name for people. Default: the id.' })),
    description: Type.Optional(Type.String({ maxLength: 4000, description: 'A sentence or two for people.' })),
    owned_by: Type.Optional(text({ description: 'Default: the part of the id before the first slash.' })),
    created: Type.Optional(day('Shown in /v1/models.')),
    retires: Type.Optional(day('The first day on which the model is no longer offered. Shown in /v1/models.')),
    replaced_by: Type.Optional(text({ description: 'Id of the model to use instead, once it is no longer offered.' })),
    hidden: Type.Optional(Type.Boolean({ description: 'Usable, but not listed.', default: false })),
    capabilities: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[a-z0-9_]{1,64}$',
          errorMessage: 'must be lower-case letters, digits and underscores',
        }),
        { description: 'Shown in /v1/models, for example tools or vision.', uniqueItems: true },
      ),
    ),
    limits: Type.Optional(
      mapOf(
        { pattern: '^[a-z0-9_]{1,64}$', errorMessage: 'must be named in lower-case letters, digits and underscores' },
        Type.Number({ minimum: 0 }),
        { description: 'Shown in /v1/models, for example context_tokens.' },
      ),
    ),
    max_output_tokens: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 100_000_000, description: 'Chat: maximum output tokens of one answer.' }),
    ),
    default_output_tokens: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100_000_000,
        default: 4096,
        description:
          'Chat: the limit without max_tokens, if no max_output_tokens is set or the money is less than twenty times the hold for it.',
      }),
    ),
    input_schema: Type.Optional(freeObject({ description: "JSON Schema 2020-12 of the task's `input`." })),
    output_types: Type.Optional(
      Type.Array(Type.Enum(['image', 'video', 'audio', 'text']), {
        minItems: 1,
        maxItems: 1,
        description: 'Types of the results, if they differ from the kind: [text] for audio models that transcribe.',
      }),
    ),
    price: Type.Optional(Type.Array(price, { description: 'Prices for callers.' })),
    price_source: Type.Optional(price_source),
    estimate: Type.Optional(estimate),
    routes: Type.Array(route, { minItems: 1, maxItems: 16, description: 'Tried in order.' }),
  },
  { description: 'A model that callers can use.' },
);

/** The whole file. */
const catalog_schema = section(
  {
    version: Type.Literal(1, { description: 'Version of this format.' }),
    currencies: Type.Optional(
      mapOf(
        { pattern: '^[A-Z]{3}$', errorMessage: 'must be named by a code of three capital letters, such as USD' },
        rate({ description: 'Amount of it for one unit of the base currency.' }),
        {
          description: 'Billing currencies. The first is the base currency of all prices; its rate is "1".',
          minProperties: 1,
          default: { USD: '1', PLN: '3.65' },
        },
      ),
    ),
    server: Type.Optional(server),
    limits: Type.Optional(limits),
    money: Type.Optional(money),
    routing: Type.Optional(routing),
    net: Type.Optional(net),
    webhooks: Type.Optional(webhooks),
    outputs: Type.Optional(outputs),
    tasks: Type.Optional(tasks),
    retention: Type.Optional(retention),
    storage: Type.Optional(storage),
    backup: Type.Optional(backup),
    files: Type.Optional(files),
    responses: Type.Optional(responses),
    content_log: Type.Optional(content_log),
    tools: Type.Optional(tools),
    billing: Type.Optional(billing),
    mail: Type.Optional(mail),
    sign_in: Type.Optional(sign_in),
    status_page: Type.Optional(status_page),
    alerts: Type.Optional(alerts),
    sandbox: Type.Optional(
      Type.Boolean({ description: 'The built-in sandbox provider and its models.', default: true }),
    ),
    catalog: Type.Optional(catalog),
    providers: Type.Optional(
      mapOf(
        {
          pattern: '^[a-z0-9][a-z0-9_-]{0,63}$',
          errorMessage: 'must be named in 1 to 64 lower-case letters, digits, dashes and underscores',
        },
        provider,
        { description: 'Configured upstreams by name.' },
      ),
    ),
    models: Type.Optional(Type.Array(model, { description: 'Models in the order in which they are listed.' })),
    aliases: Type.Optional(aliases),
  },
  { description: 'The catalogue and the settings of the service.' },
);

export type CatalogFile = Static<typeof catalog_schema>;
export type ModelEntry = Static<typeof model>;
export type RouteEntry = Static<typeof route>;
export type ProviderEntry = Static<typeof provider>;
export type IssuerEntry = Static<typeof issuer>;
export type PriceEntry = Static<typeof price>;
export type EstimateEntry = Static<typeof estimate>;

/** Returns the content of `medley.schema.json`. */
export function publishedSchema(): object {
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', title: 'medley.yaml', ...catalog_schema };
}
