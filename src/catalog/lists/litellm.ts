import { isObject, type Json, type JsonObject } from '../model.ts';
import {
  abilities,
  countOf,
  dayIn,
  textOf,
  textsIn,
  tokenRows,
  unitRow,
  type ListedKind,
  type ListedModel,
  type TokenPrices,
} from './listed.ts';

/**
 * LiteLLM's `model_prices_and_context_window.json`: an object with a model per member. Seen in version 1.110.2, November
 * 2026.
 */
export function readLitellm(list: Json): ListedModel[] {
  if (!isObject(list)) return [];
  return Object.entries(list).flatMap(([id, entry]) =>
    isObject(entry) && id !== 'sample_spec' && textOf(entry['litellm_provider']) !== undefined
      ? [readOne(id, entry)]
      : [],
  );
}

function readOne(id: string, entry: JsonObject): ListedModel {
  const provider = textOf(entry['litellm_provider']) ?? '';
  const kind = kindOf(entry['mode']);
  const upstream_model = id.startsWith(`${provider}/`) ? id.slice(provider.length + 1) : id;
  const retires = dayIn(entry['deprecation_date']);
  const replaced_by = textOf(entry['successor_model']);
  const context_tokens = countOf(entry['max_input_tokens']);
  const max_output_tokens = countOf(entry['max_output_tokens']);
  return {
    upstream_model,
    provider,
    kind,
    ...(retires !== undefined && { retires }),
    ...(replaced_by !== undefined && { replaced_by }),
    ...(context_tokens !== undefined && { context_tokens }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    capabilities: abilities({
      tools: entry['supports_function_calling'] === true,
      json_schema: entry['supports_response_schema'] === true,
      images: entry['supports_vision'] === true || textsIn(entry['supported_modalities']).includes('image'),
      documents: entry['supports_pdf_input'] === true,
      audio: entry['supports_audio_input'] === true,
      thinking: entry['supports_reasoning'] === true,
    }),
    price: [...tokenRows(pricesOf(entry, ''), 6), ...stepsOf(entry), ...usesOf(kind, entry)],
  };
}

const kinds: { readonly [mode: string]: ListedKind } = {
  chat: 'chat',
  responses: 'chat',
  embedding: 'embedding',
  rerank: 'rerank',
  moderation: 'moderation',
};

/** Models for media are described too briefly to be added: only their prices are read. */
function kindOf(mode: Json | undefined): ListedKind {
  return (typeof mode === 'string' && Object.hasOwn(kinds, mode) ? kinds[mode] : undefined) ?? 'other';
}

/** `suffix`: nothing, or `_above_200k_tokens`. */
function pricesOf(entry: JsonObject, suffix: string): TokenPrices {
  return {
    input_token: entry[`input_cost_per_token${suffix}`],
    cached_input_token: entry[`cache_read_input_token_cost${suffix}`],
    cache_write_token: entry[`cache_creation_input_token_cost${suffix}`],
    cache_write_1h_token: entry[`cache_creation_input_token_cost_above_1hr${suffix}`],
    output_token:
      (entry['mode'] === 'audio_speech' ? entry['output_cost_per_audio_token'] : undefined) ??
      entry[`output_cost_per_token${suffix}`],
  };
}

function stepsOf(entry: JsonObject): ListedModel['price'] {
  const steps = Object.keys(entry).flatMap((name) => /^input_cost_per_token(_above_(\d+)k_tokens)$/.exec(name) ?? []);
  const [, suffix = '', thousands = ''] = steps;
  return suffix === '' ? [] : tokenRows(pricesOf(entry, suffix), 6, Number(thousands) * 1000);
}

/** Names of a price in the order in which they count. Those that measure an output may end in a resolution. */
const unit_prices = [
  ['search_unit', ['input_cost_per_query']],
  ['character', ['input_cost_per_character']],
  ['image', ['output_cost_per_image', 'input_cost_per_image']],
  ['second', ['output_cost_per_second', 'output_cost_per_video_per_second', 'input_cost_per_second']],
] as const;

/** Prices of what is not counted in tokens. Names such as `output_cost_per_second_720p` have a resolution. */
function usesOf(kind: ListedKind, entry: JsonObject): ListedModel['price'] {
  if (kind === 'chat' || kind === 'embedding') return [];
  return unit_prices.flatMap(([unit, names]) => {
    const [first] = names;
    const by_resolution = Object.entries(entry).flatMap(([name, price]) => {
      const suffix = name.startsWith(`${first}_`) ? name.slice(first.length + 1) : '';
      return /^(\d+p|[\d.]+k)$/i.test(suffix) ? unitRow(unit, price, suffix) : [];
    });
    const [plain] = names.map((name) => unitRow(unit, entry[name])).filter((rows) => rows.length > 0);
    return [...by_resolution, ...(plain ?? [])];
  });
}
