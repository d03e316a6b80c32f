import { estimateOf } from './estimate.ts';
import { checkInput } from './input.ts';
import {
  isMediaKind,
  type CallKind,
  type CostRow,
  type JsonObject,
  type Kind,
  type Model,
  type PriceRow,
  type ProviderConfig,
  type ProviderLimits,
  type Retirement,
  type Route,
  type Timeouts,
} from './model.ts';
import { mediaFieldsOf } from './media-fields.ts';
import type { ProviderTexts } from './provider-secrets.ts';
import type { CatalogFile, ModelEntry, PriceEntry, ProviderEntry, RouteEntry } from './schema.ts';
import { milliseconds } from './settings.ts';

/** Builds the catalogue from a checked file. */

const default_created = '2026-01-01';

/** Until a run has ended, by what it makes. */
const default_total_ms: { readonly [kind in Kind]: number } = {
  chat: 600_000,
  embedding: 60_000,
  rerank: 60_000,
  moderation: 60_000,
  image: 300_000,
  audio: 600_000,
  video: 1_800_000,
};

/** The part of a conversation that all chat models take. */
const conversation_schema: JsonObject = {
  type: 'object',
  required: ['messages'],
  properties: { messages: { type: 'array', minItems: 1, items: { type: 'object', required: ['role'] } } },
};

/** Input schema of all embedding models. */
const embedding_schema: JsonObject = {
  type: 'object',
  required: ['input'],
  properties: {
    input: {
      description: 'A text, several, or the tokens of either.',
      anyOf: [
        { type: 'string', minLength: 1 },
        { type: 'array', minItems: 1, maxItems: 2048, items: { type: ['string', 'integer', 'array'] } },
      ],
    },
    dimensions: { type: 'integer', minimum: 1, description: 'Length of the vectors, if the model has a choice.' },
    encoding_format: { type: 'string', enum: ['float', 'base64'], default: 'float' },
  },
};

/** Input schema of all rerank models. */
const rerank_schema: JsonObject = {
  type: 'object',
  required: ['query', 'documents'],
  properties: {
    query: { type: 'string', minLength: 1 },
    documents: {
      description: 'Texts, or objects that have a text.',
      type: 'array',
      minItems: 1,
      maxItems: 10_000,
      items: {
        anyOf: [{ type: 'string' }, { type: 'object', required: ['text'], properties: { text: { type: 'string' } } }],
      },
    },
    top_n: { type: 'integer', minimum: 1, description: 'Number of results; by default all.' },
    return_documents: { type: 'boolean', default: false },
    max_tokens_per_doc: { type: 'integer', minimum: 1, description: 'Longer documents are cut, if the model can.' },
  },
};

/** Input schema of all moderation models. */
const moderation_schema: JsonObject = {
  type: 'object',
  required: ['input'],
  properties: {
    input: {
      description: 'A text, several, or the parts of one message: texts and images.',
      anyOf: [{ type: 'string' }, { type: 'array', minItems: 1, items: { type: ['string', 'object'] } }],
    },
  },
};

const schemas_of_calls: { readonly [kind in CallKind]: JsonObject } = {
  chat: conversation_schema,
  embedding: embedding_schema,
  rerank: rerank_schema,
  moderation: moderation_schema,
};

export type BuildOptions = {
  base_currency: string;
  /** May models of this kind be run by this provider? Routes that may not are left out. */
  usable(provider: string, kind: Kind): boolean;
};

/** The models of a file that have a usable route. */
export function buildModels(file: CatalogFile, options: BuildOptions): Model[] {
  return (file.models ?? []).flatMap((entry) => {
    const model = buildModel(entry, options);
    return model.routes.length > 0 ? [model] : [];
  });
}

function buildModel(entry: ModelEntry, options: BuildOptions): Model {
  const { id, kind } = entry;
  const input_schema = entry.input_schema ?? (isMediaKind(kind) ? {} : schemas_of_calls[kind]);
  const price = (entry.price ?? []).map(buildRow);
  const fields = Object.keys(input_schema['properties'] ?? {});
  return {
    id,
    aliases: entry.aliases ?? [],
    kind,
    name: entry.name ?? id,
    description: entry.description ?? '',
    owned_by: entry.owned_by ?? /^(.+?)\//.exec(id)?.[1] ?? 'medley',
    created: Date.parse(entry.created ?? default_created) / 1000,
    input_schema,
    output_types: entry.output_types ?? [kind === 'chat' ? 'text' : kind],
    media: isMediaKind(kind) ? mediaFieldsOf(input_schema) : [],
    price,
    ...(entry.price_source && { price_source: entry.price_source }),
    estimate: isMediaKind(kind)
      ? estimateOf(
          entry.estimate,
          price.map((row) => row.unit),
          fields,
        )
      : {},
    routes: buildRoutes(entry, options),
    limits: { ...entry.limits, ...tokenLimits(entry) },
    capabilities: entry.capabilities ?? [],
    hidden: entry.hidden ?? false,
    ...(entry.retires !== undefined && { retirement: retirementOf(entry.retires, entry.replaced_by) }),
    validateInput: (input) => checkInput(id, input_schema, input),
  };
}

function tokenLimits({ kind, max_output_tokens, default_output_tokens }: ModelEntry): Model['limits'] {
  if (kind !== 'chat') return {};
  const held = default_output_tokens ?? Math.min(4096, max_output_tokens ?? 4096);
  return { default_output_tokens: held, ...(max_output_tokens !== undefined && { max_output_tokens }) };
}

function buildRow({ unit, amount, per, when, above_input_tokens, from }: PriceEntry): PriceRow {
  const above = above_input_tokens !== undefined && { above_input_tokens };
  return { unit, amount, per: per ?? 1, ...(when && { when }), ...above, ...(from !== undefined && { from }) };
}

function retirementOf(on: string, replaced_by: string | undefined): Retirement {
  return { on, ...(replaced_by !== undefined && { replaced_by }) };
}

/** Ids are given out before unusable routes are left out, so that a missing secret renames none. */
function buildRoutes(model: ModelEntry, options: BuildOptions): Route[] {
  const taken = new Set(model.routes.flatMap((route) => route.id ?? []));
  return model.routes
    .map((route) => buildRoute(model, route, route.id ?? freeId(route.provider, taken), options.base_currency))
    .filter((route) => options.usable(route.provider, model.kind));
}

/** The provider's name, with a number if it is taken. */
function freeId(provider: string, taken: Set<string>): string {
  let id = provider;
  for (let number = 2; taken.has(id); number++) id = `${provider}-${number}`;
  taken.add(id);
  return id;
}

function buildRoute(model: ModelEntry, route: RouteEntry, id: string, base_currency: string): Route {
  const media = isMediaKind(model.kind) ? mediaFieldsOf(model.input_schema ?? {}) : [];
  return {
    id,
    provider: route.provider,
    upstream_model: route.upstream_model ?? model.id,
    timeout_ms: buildTimeouts(route.timeout ?? {}, default_total_ms[model.kind]),
    poll: { first_ms: milliseconds(route.poll?.first ?? '1s'), max_ms: milliseconds(route.poll?.max ?? '10s') },
    ...(route.input && { input: route.input }),
    ...(media.length > 0 && { media }),
    output: route.output ?? {},
    options: route.options ?? {},
    on_ambiguous_submit: route.on_ambiguous_submit ?? 'fail',
    cost: (route.cost ?? []).map((row): CostRow => ({ ...buildRow(row), currency: row.currency ?? base_currency })),
    ...(route.cost_source && { cost_source: route.cost_source }),
  };
}

/** A start or a total that is given alone moves the other's default out of its way. */
function buildTimeouts(entry: NonNullable<RouteEntry['timeout']>, default_total_ms_of_kind: number): Timeouts {
  const total = entry.total === undefined ? undefined : milliseconds(entry.total);
  const start = milliseconds(entry.start ?? '60s');
  return {
    connect: milliseconds(entry.connect ?? '5s'),
    first_byte: milliseconds(entry.first_byte ?? '60s'),
    idle: milliseconds(entry.idle ?? '60s'),
    start: Math.min(start, total ?? start),
    total: total ?? Math.max(default_total_ms_of_kind, start),
  };
}

/** A provider with its secrets. `published`: the limits of its adapter's upstream. */
export function buildProvider(
  name: string,
  entry: ProviderEntry,
  texts: ProviderTexts,
  published: ProviderLimits,
): ProviderConfig {
  const { max_active = published.max_active, per_minute = published.per_minute } = entry;
  return {
    name,
    adapter: entry.adapter,
    ...(entry.base_url !== undefined && { base_url: entry.base_url.replace(/\/+$/, '') }),
    ...texts,
    allow_private: entry.allow_private ?? false,
    ...(entry.links !== undefined && { links: entry.links }),
    ...(entry.data_collection !== undefined && { data_collection: entry.data_collection }),
    ...(published.label !== undefined && { label: published.label }),
    ...(max_active !== undefined && { max_active }),
    ...(per_minute !== undefined && { per_minute }),
  };
}
