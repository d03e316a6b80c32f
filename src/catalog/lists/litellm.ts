import { isObject, type Json, type JsonObject } from '../model.ts';
import { abilities, countOf, dayIn, textOf, textsIn, tokenRows, type ListedModel, type TokenPrices } from './listed.ts';

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
  const upstream_model = id.startsWith(`${provider}/`) ? id.slice(provider.length + 1) : id;
  const retires = dayIn(entry['deprecation_date']);
  const replaced_by = textOf(entry['successor_model']);
  const context_tokens = countOf(entry['max_input_tokens']);
  const max_output_tokens = countOf(entry['max_output_tokens']);
  return {
    upstream_model,
    provider,
    kind: kindOf(entry['mode']),
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
    price: [...tokenRows(pricesOf(entry, ''), 6), ...stepsOf(entry)],
  };
}

function kindOf(mode: Json | undefined): ListedModel['kind'] {
  if (mode === 'chat' || mode === 'responses') return 'chat';
  return mode === 'embedding' ? 'embedding' : 'other';
}

/** `suffix`: nothing, or `_above_200k_tokens`. */
function pricesOf(entry: JsonObject, suffix: string): TokenPrices {
  return {
    input_token: entry[`input_cost_per_token${suffix}`],
    cached_input_token: entry[`cache_read_input_token_cost${suffix}`],
    cache_write_token: entry[`cache_creation_input_token_cost${suffix}`],
    cache_write_1h_token: entry[`cache_creation_input_token_cost_above_1hr${suffix}`],
    output_token: entry[`output_cost_per_token${suffix}`],
  };
}

function stepsOf(entry: JsonObject): ListedModel['price'] {
  const steps = Object.keys(entry).flatMap((name) => /^input_cost_per_token(_above_(\d+)k_tokens)$/.exec(name) ?? []);
  const [, suffix = '', thousands = ''] = steps;
  return suffix === '' ? [] : tokenRows(pricesOf(entry, suffix), 6, Number(thousands) * 1000);
}
