import { isObject, type Json } from '../model.ts';
import { abilities, countOf, dayIn, textOf, type ListedModel } from './listed.ts';

/**
 * `GET /v1/models` of a server of OpenAI's style: names, and on some servers how much a model takes (vLLM and SGLang
 * `max_model_len`, Groq and others `context_window`, Mistral `max_context_length`). It has no prices.
 */
export function readOpenaiCompatible(list: Json): ListedModel[] {
  const data = isObject(list) && Array.isArray(list['data']) ? list['data'] : [];
  return data.flatMap((entry): ListedModel[] => {
    const id = isObject(entry) ? textOf(entry['id']) : undefined;
    if (!isObject(entry) || id === undefined) return [];
    const created = dayIn(entry['created']);
    const lengths = ['max_model_len', 'context_window', 'max_context_length', 'context_length'].map(
      (name) => entry[name],
    );
    const context_tokens = countOf(lengths.find((value) => countOf(value) !== undefined));
    const max_output_tokens = countOf(entry['max_completion_tokens']);
    return [
      {
        upstream_model: id,
        kind: kindOf(id),
        ...(created !== undefined && { created }),
        ...(context_tokens !== undefined && { context_tokens }),
        ...(max_output_tokens !== undefined && { max_output_tokens }),
        capabilities: abilities({}),
        price: [],
      },
    ];
  });
}

/** Names of models that make images on servers of this style. */
const image_names =
  /gpt-image|dall-?e|stable-diffusion|\bsd(?:xl|[ -]?3)|flux|imagen|qwen-image|grok-.*-image|\bimage\b/i;

/** Guesses the kind by the name, which is all that there is. */
function kindOf(id: string): ListedModel['kind'] {
  if (/rerank/i.test(id)) return 'rerank';
  if (/embed/i.test(id)) return 'embedding';
  if (/moderation/i.test(id)) return 'moderation';
  return image_names.test(id) ? 'image' : 'chat';
}
