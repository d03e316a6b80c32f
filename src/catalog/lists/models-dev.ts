import { isObject, type Json, type JsonObject } from '../model.ts';
import {
  abilities,
  countOf,
  dayIn,
  objectOf,
  textOf,
  textsIn,
  tokenRows,
  type ListedModel,
  type TokenPrices,
} from './listed.ts';

/** The `api.json` of models.dev: providers with their models, prices by the million tokens. Seen in November 2026. */
export function readModelsDev(list: Json): ListedModel[] {
  if (!isObject(list)) return [];
  return Object.entries(list).flatMap(([provider, value]) =>
    Object.entries(objectOf(objectOf(value)['models'])).flatMap(([id, entry]) =>
      isObject(entry) ? [readOne(provider, id, entry)] : [],
    ),
  );
}

function readOne(provider: string, id: string, entry: JsonObject): ListedModel {
  const { input, output } = objectOf(entry['modalities']);
  const [takes, makes] = [input, output].map(textsIn);
  const cost = objectOf(entry['cost']);
  const limit = objectOf(entry['limit']);
  const name = textOf(entry['name']);
  const created = dayIn(entry['release_date']);
  const context_tokens = countOf(limit['context']);
  const max_output_tokens = countOf(limit['output']);
  return {
    upstream_model: textOf(entry['id']) ?? id,
    provider,
    kind: makes?.length === 0 || makes?.includes('text') === true ? kindOf(id) : 'other',
    ...(name !== undefined && { name }),
    ...(created !== undefined && { created }),
    ...(context_tokens !== undefined && { context_tokens }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    capabilities: abilities({
      tools: entry['tool_call'] === true,
      json_schema: entry['structured_output'] === true,
      images: takes?.includes('image') === true,
      documents: takes?.includes('pdf') === true,
      audio: takes?.includes('audio') === true,
      thinking: entry['reasoning'] === true,
    }),
    price: [...tokenRows(pricesOf(cost), 0), ...tokenRows(pricesOf(objectOf(cost['context_over_200k'])), 0, 200_000)],
  };
}

/** Says by the name what the list tells no other way. */
function kindOf(id: string): ListedModel['kind'] {
  if (/rerank/i.test(id)) return 'rerank';
  return /embed/i.test(id) ? 'embedding' : 'chat';
}

function pricesOf(cost: JsonObject): TokenPrices {
  return {
    input_token: cost['input'],
    cached_input_token: cost['cache_read'],
    cache_write_token: cost['cache_write'],
    output_token: cost['output'],
  };
}
