import type { Json, JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import { checkShape } from '../lib/json-shape.ts';
import { isObject, memberOf, mistake, needName, needObject, needText, readText, words, wrongType } from './fields.ts';
import { withMembers } from './model-name.ts';
import { addText, firstCount, tellsCost, withoutCost, type TextSize } from './usage.ts';

/** The format of `/v1/moderations`, which is OpenAI's. */
export const moderations = {
  name: 'moderations',
  members: { sdk: words('input model'), vendor: words('') },
} as const;

/** The request of a body of `/v1/moderations`. */
export type ModerationRequest = {
  readonly style: typeof moderations;
  readonly stream: false;
  readonly n: 1;
  body: JsonObject;
  model: string;
  /** Number of results: one for each text, and one for all parts of a message. */
  count: number;
  text_size: TextSize;
  images: number;
};

/** The model of requests that name none, as at OpenAI. */
const usual_model = 'omni-moderation-latest';

const inputs_max = 2_048;

/** Reads a body. Throws ApiError 400 naming the field. */
export function readModerationRequest(body: unknown): ModerationRequest {
  if (!isObject(body)) throw new ApiError('invalid_request', 'The body must be a JSON object.');
  const model = readText(body, 'model', 'model') ?? usual_model;
  if (model === '') throw mistake('model', 'must be a non-empty string');
  const input = memberOf(body, 'input');
  if (input === undefined) throw mistake('input', 'is required');
  const { parts, ...measured } = measure(input);
  const read = parts ? { ...body, input: parts } : body;
  return { style: moderations, stream: false, n: 1, body: read, model, ...measured };
}

type Measured = Pick<ModerationRequest, 'count' | 'text_size' | 'images'> & { parts?: JsonObject[] };

/** Of one text, several, or the parts of one message. `parts`: these with the members that are known alone. */
function measure(input: Json): Measured {
  const text_size: TextSize = { ascii_bytes: 0, other_bytes: 0 };
  if (typeof input === 'string') {
    addText(text_size, input);
    return { count: 1, text_size, images: 0 };
  }
  if (!Array.isArray(input)) throw wrongType('input', 'a string or an array', input);
  if (input.length === 0) throw mistake('input', 'must not be empty');
  if (input.length > inputs_max) throw mistake('input', `may have at most ${inputs_max} items (got ${input.length})`);
  if (typeof input[0] === 'string') {
    for (const [index, text] of input.entries()) {
      if (typeof text !== 'string') throw wrongType(`input[${index}]`, 'a string, like the first', text);
      addText(text_size, text);
    }
    return { count: input.length, text_size, images: 0 };
  }
  const parts = input.map((part, index) => readPart(part, `input[${index}]`));
  for (const { text } of parts) if (typeof text === 'string') addText(text_size, text);
  return { count: 1, text_size, images: parts.filter(({ type }) => type === 'image_url').length, parts };
}

function readPart(value: Json, at: string): JsonObject {
  const part = needObject(value, at);
  const type = needText(part, 'type', `${at}.type`);
  if (type === 'text') return { type, text: needText(part, 'text', `${at}.text`) };
  if (type !== 'image_url') throw mistake(`${at}.type`, 'must be text or image_url');
  const image = needObject(part['image_url'] ?? null, `${at}.image_url`);
  return { type, image_url: { url: needName(image, 'url', `${at}.image_url.url`) } };
}

export type RenderedModerations = {
  bytes: Buffer;
  id: string | undefined;
  /** By the upstream's own count; undefined if it reports none that can be believed. */
  input_tokens: number | undefined;
};

/**
 * Takes an upstream's answer to the caller: its bytes as they are but for the model's name. Some servers leave out
 * `flagged`: then it is true where a category is. Throws Error if it is no answer.
 */
export function renderModerations(
  request: Pick<ModerationRequest, 'count'>,
  bytes: Buffer,
  named: { model: string; id: string },
): RenderedModerations {
  const text = bytes.toString('utf8');
  checkShape(text);
  const body: unknown = JSON.parse(text);
  if (!isObject(body)) throw new Error('The answer is no JSON object.');
  const { results, usage } = body;
  if (!Array.isArray(results) || results.length !== request.count)
    throw new Error(`The answer has not ${request.count} results.`);
  const judged = results.map(judgedResult);
  const id = typeof body['id'] === 'string' && body['id'] !== '' ? body['id'] : undefined;
  const members = { model: named.model, ...(id === undefined && { id: named.id }) };
  const is_changed = judged.some((result, index) => result !== results[index]) || tellsCost(usage);
  const counted = isObject(usage) ? usage : {};
  const written = { ...body, results: judged, ...(isObject(usage) && { usage: withoutCost(usage) }) };
  const source = is_changed ? Buffer.from(JSON.stringify(written)) : bytes;
  const input_tokens = firstCount(counted['prompt_tokens'], counted['input_tokens'], counted['total_tokens']);
  return { bytes: withMembers(source, members), id, input_tokens };
}

/** The same object if it says whether the input is flagged. */
function judgedResult(result: Json): JsonObject {
  if (!isObject(result) || !isObject(result['categories']))
    throw new Error('A result of the answer has no categories.');
  if (typeof result['flagged'] === 'boolean') return result;
  return { ...result, flagged: Object.values(result['categories']).includes(true) };
}
