import {
  abilities,
  countOf,
  ListError,
  objectOf,
  textOf,
  textsIn,
  type ListedModel,
} from '../../../catalog/lists/listed.ts';
import { isObject, type Json } from '../../../catalog/model.ts';
import { offeredOf, type ListModels } from '../../offer/offer.ts';
import { readUpstreamList } from '../../offer/read-list.ts';
import { isVertex, pathPrefix } from './paths.ts';

const default_base_url = 'https://generativelanguage.googleapis.com';

/**
 * Reads `models` of the Gemini API (ai.google.dev, "Models", read on 2026-11-27): names and limits, no prices. It has those
 * of the Interactions API too. Vertex AI has another list.
 */
export const listGeminiModels: ListModels = async (config, { guard }, { key_path, signal }) => {
  const base_url = config.base_url ?? default_base_url;
  if (isVertex(base_url) || /\/locations\/[^/]+\/*$/.test(new URL(base_url).pathname)) return undefined;
  const headers: Record<string, string> = config.api_key === undefined ? {} : { 'x-goog-api-key': config.api_key };
  const path = `${pathPrefix(base_url)}/models`;
  const place = {
    config: { ...config, base_url },
    guard,
    headers,
    path,
    query: { pageSize: '1000' },
    key_path,
    signal,
  };
  return offeredOf(await readUpstreamList({ ...place, read }));
};

/** Families that make no text, though the list says `generateContent` of them too. */
const media_names = /image|tts|live|audio|omni|lyria/;

/** Models that answer by `generateContent` alone. Throws ListError. */
function read(text: string): ListedModel[] {
  let list: Json;
  try {
    list = JSON.parse(text);
  } catch {
    throw new ListError('is no JSON.');
  }
  const { models } = objectOf(list);
  if (!Array.isArray(models)) throw new ListError('has no list of models.');
  return models.filter(isObject).flatMap((model): ListedModel[] => {
    const upstream_model = textOf(model['name'])?.replace(/^models\//, '');
    if (upstream_model === undefined) return [];
    const name = textOf(model['displayName']);
    const context_tokens = countOf(model['inputTokenLimit']);
    const max_output_tokens = countOf(model['outputTokenLimit']);
    const is_chat = textsIn(model['supportedGenerationMethods']).includes('generateContent');
    return [
      {
        upstream_model,
        kind: is_chat && !media_names.test(upstream_model) ? 'chat' : 'other',
        ...(name !== undefined && { name }),
        ...(context_tokens !== undefined && { context_tokens }),
        ...(max_output_tokens !== undefined && { max_output_tokens }),
        capabilities: abilities({}),
        price: [],
      },
    ];
  });
}
