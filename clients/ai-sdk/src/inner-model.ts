import { createOpenAI } from '@ai-sdk/openai';
import type { EmbeddingModelV4, LanguageModelV4 } from '@ai-sdk/provider';
import type { FetchFunction } from '@ai-sdk/provider-utils';
import { isObject } from './namespaces.ts';
import type { Connection } from './settings.ts';

type Edit = (body: Record<string, unknown>) => Record<string, unknown>;

/**
 * Names no model that `@ai-sdk/openai` knows: what it knows of a model decides what it leaves out of a request, and the
 * service decides that here. The id itself is put into the body.
 */
const nameless = 'medley';

/** Makes the model of `@ai-sdk/openai` for one call, whose body `edit` completes. */
export function responsesModel(connection: Connection, edit: Edit): LanguageModelV4 {
  return providerFor(connection, edit).responses(nameless);
}

export function embeddingModel(connection: Connection, edit: Edit): EmbeddingModelV4 {
  return providerFor(connection, edit).embedding(nameless);
}

function providerFor({ base_url, api_key, headers, fetch }: Connection, edit: Edit) {
  return createOpenAI({
    name: 'medley',
    baseURL: `${base_url}/v1`,
    apiKey: api_key,
    headers,
    fetch: editing(fetch, edit),
  });
}

function editing(fetch: FetchFunction, edit: Edit): FetchFunction {
  return async (input, init) => {
    const body: unknown = typeof init?.body === 'string' ? JSON.parse(init.body) : undefined;
    if (!isObject(body)) return fetch(input, init);
    // A redirect would turn a POST into a GET, and take the key elsewhere.
    return fetch(input, { ...init, body: JSON.stringify(edit(body)), redirect: 'error' });
  };
}
