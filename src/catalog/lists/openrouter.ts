import { isObject, type Json, type JsonObject } from '../model.ts';
import { abilities, countOf, dayIn, objectOf, textOf, textsIn, tokenRows, type ListedModel } from './listed.ts';

/** OpenRouter's `GET /api/v1/models` (its documentation, "Models API Standard", November 2026): prices by the token, as texts. */
export function readOpenrouter(list: Json): ListedModel[] {
  const data = isObject(list) && Array.isArray(list['data']) ? list['data'] : [];
  return data.flatMap((entry) => (isObject(entry) && textOf(entry['id']) !== undefined ? [readOne(entry)] : []));
}

function readOne(entry: JsonObject): ListedModel {
  const { input_modalities, output_modalities } = objectOf(entry['architecture']);
  const pricing = objectOf(entry['pricing']);
  const [takes, makes, parameters] = [input_modalities, output_modalities, entry['supported_parameters']].map(textsIn);
  const name = textOf(entry['name']);
  const description = textOf(entry['description']);
  const created = dayIn(entry['created']);
  const retires = dayIn(entry['expiration_date']);
  const context_tokens = countOf(entry['context_length']);
  const max_output_tokens = countOf(objectOf(entry['top_provider'])['max_completion_tokens']);
  return {
    upstream_model: textOf(entry['id']) ?? '',
    kind:
      makes?.length === 0 || makes?.includes('text') === true
        ? 'chat'
        : makes?.includes('embeddings')
          ? 'embedding'
          : 'other',
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    ...(created !== undefined && { created }),
    ...(retires !== undefined && { retires }),
    ...(context_tokens !== undefined && { context_tokens }),
    ...(max_output_tokens !== undefined && { max_output_tokens }),
    capabilities: abilities({
      tools: parameters?.includes('tools') === true,
      json_schema: parameters?.includes('structured_outputs') === true,
      images: takes?.includes('image') === true,
      documents: takes?.includes('file') === true,
      audio: takes?.includes('audio') === true,
      thinking: parameters?.includes('reasoning') === true,
    }),
    price: [
      ...tokenRows(
        {
          input_token: pricing['prompt'],
          cached_input_token: pricing['input_cache_read'],
          cache_write_token: pricing['input_cache_write'],
          output_token: pricing['completion'],
        },
        6,
      ),
      ...requestRow(pricing['request']),
    ],
  };
}

function requestRow(price: Json | undefined): ListedModel['price'] {
  const amount = textOf(price);
  return amount === undefined || Number(amount) === 0 || !/^\d+(\.\d{1,12})?$/.test(amount)
    ? []
    : [{ unit: 'request', amount, per: 1 }];
}
