import { defaultProviders, keyName } from '../catalog/default.ts';
import { cleanInput, type Draft } from '../catalog/draft.ts';
import { isObject, type Json, type JsonObject, type MediaKind } from '../catalog/model.ts';
import { resolveSecret } from '../config.ts';
import { fragmentAt } from '../lib/json-pointer.ts';

/** Drafts of models from what providers publish about theirs. */

export class DescriptionError extends Error {
  /** The status of the answer, if it was one that says no. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

/** Reads the description of a model; `kind` where the operator has said what it makes. */
export type Describe = (name: string, base_url: string, kind: MediaKind | undefined) => Promise<Draft>;

type Source = {
  read: Describe;
  base_url: string;
  /** Its API says what its models cost. */
  has_prices: boolean;
};

/** Replicate's API has no prices: https://github.com/replicate/replicate-javascript/issues/360, read on 2026-11-28. */
export const described: { readonly [provider: string]: Source } = {
  replicate: { read: readReplicate, base_url: 'https://api.replicate.com/v1', has_prices: false },
  fal: { read: readFal, base_url: 'https://fal.ai', has_prices: true },
};

/** Replicate describes a model with its newest version: an OpenAPI document with the schemas Input and Output. */
async function readReplicate(name: string, base_url: string, kind: MediaKind | undefined): Promise<Draft> {
  const source = `${base_url}/models/${name}`;
  const api_key = keyOf('replicate');
  const secret = resolveSecret(api_key);
  if (secret === undefined)
    throw new DescriptionError(`Replicate requires a key: set ${keyName({ adapter: 'replicate', api_key })}.`);
  const model_record = await fetchJson(source, { authorization: `Bearer ${secret}` });
  const version = model_record['latest_version'];
  const root = isObject(version) ? version['openapi_schema'] : undefined;
  const input = isObject(root) ? fragmentAt(root, '#/components/schemas/Input') : undefined;
  if (!isObject(root) || !isObject(input)) throw new DescriptionError(`${source} describes no input.`);
  const description = textIn(model_record, 'description');
  return {
    id: name,
    kind: kind ?? kindByWords(`${name} ${description}`),
    name: textIn(model_record, 'name') || name,
    description,
    input_schema: cleanInput(input, root),
    provider: 'replicate',
    adapter: 'replicate',
    api_key,
    upstream_model: name,
    source,
    price_page: `https://replicate.com/${name}`,
  };
}

/** fal has an OpenAPI document per endpoint; the body of its POST is the input, and its result tells the kind. */
async function readFal(name: string, base_url: string, kind: MediaKind | undefined): Promise<Draft> {
  const source = `${base_url}/api/openapi/queue/openapi.json?endpoint_id=${encodeURIComponent(name)}`;
  const root = await fetchJson(source, {});
  const paths = isObject(root['paths']) ? Object.values(root['paths']) : [];
  const submit = paths.map((path) => bodyOf(path, root)).find((schema) => schema !== undefined);
  if (!submit) throw new DescriptionError(`${source} describes no input.`);
  const results = paths.map((path) => resultOf(path, root)).filter((schema) => schema !== undefined);
  const info = isObject(root['info']) ? root['info'] : {};
  const description = textIn(info, 'description');
  return {
    id: name,
    kind: kind ?? kindByResult(results) ?? kindByWords(`${name} ${description}`),
    name: textIn(info, 'title') || name,
    description,
    input_schema: cleanInput(submit, root),
    provider: 'fal',
    adapter: 'fal',
    api_key: keyOf('fal'),
    upstream_model: name,
    source,
    price_page: `https://fal.ai/models/${name}`,
  };
}

function keyOf(provider: string): string {
  return defaultProviders()[provider]?.api_key ?? '';
}

function textIn(object: JsonObject, key: string): string {
  const value = object[key];
  return typeof value === 'string' ? value : '';
}

function bodyOf(path: Json, root: JsonObject): JsonObject | undefined {
  return schemaAt(path, ['post', 'requestBody', 'content', 'application/json', 'schema'], root);
}

function resultOf(path: Json, root: JsonObject): JsonObject | undefined {
  return schemaAt(path, ['get', 'responses', '200', 'content', 'application/json', 'schema'], root);
}

/** The schema at the end of these keys, a reference followed. */
function schemaAt(start: Json, keys: readonly string[], root: JsonObject): JsonObject | undefined {
  let value: Json | undefined = start;
  for (const key of keys) value = isObject(value) ? value[key] : undefined;
  const reference = isObject(value) ? value['$ref'] : undefined;
  const target = typeof reference === 'string' ? fragmentAt(root, reference) : value;
  return isObject(target) ? target : undefined;
}

const result_fields: readonly [MediaKind, readonly string[]][] = [
  ['video', ['video', 'videos']],
  ['image', ['images', 'image']],
  ['audio', ['audio', 'audio_file', 'audio_url']],
];

function kindByResult(results: readonly JsonObject[]): MediaKind | undefined {
  const fields = results.flatMap(({ properties }) => (isObject(properties) ? Object.keys(properties) : []));
  return result_fields.find(([, names]) => names.some((name) => fields.includes(name)))?.[0];
}

/** Guesses the kind by the description of the model, if nothing better is known. */
function kindByWords(words: string): MediaKind {
  if (/\b(video|film|movie)/i.test(words)) return 'video';
  return /\b(speech|audio|music|song|voice|sound|tts)\b/i.test(words) ? 'audio' : 'image';
}

const limit_ms = 30_000;

/** Reads a JSON object. Redirects are not followed, since the headers have a key. Throws DescriptionError. */
export async function fetchJson(url: string, headers: Record<string, string>): Promise<JsonObject> {
  let answer: Response;
  let body: unknown;
  try {
    answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(limit_ms) });
    body = await answer.json().catch(() => undefined);
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    throw new DescriptionError(`${url} could not be read: ${cause instanceof Error ? cause.message : String(cause)}`);
  }
  if (answer.status === 404) throw new DescriptionError(`${url} says that there is no such model.`, 404);
  if (!answer.ok) throw new DescriptionError(`${url} answered ${answer.status}.`, answer.status);
  if (isObject(body)) return body;
  throw new DescriptionError(`${url} did not answer with a JSON object.`);
}
