import type { JSONObject, JSONValue } from '@ai-sdk/provider';

/** Options and metadata of parts stand under the provider's name; the models of `@ai-sdk/openai` below read and write another. */

export type Scoped = Record<string, JSONObject>;

type MaybeJson = JSONValue | undefined;

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isJsonObject(value: MaybeJson): value is JSONObject {
  return isObject(value);
}

/** Moves the metadata of an answer's part to our name. */
export function owned<T extends { providerMetadata?: Scoped }>(part: T): T {
  const { openai, ...others } = part.providerMetadata ?? {};
  return openai === undefined ? part : { ...part, providerMetadata: { ...others, medley: openai } };
}
