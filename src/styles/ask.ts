import type { Json, JsonObject } from '../catalog/model.ts';
import { ApiError } from '../errors.ts';
import type { CallerStyle } from './conversation.ts';
import { given, isObject, mistake, readBoolean, readCount, readObject, wrongType } from './fields.ts';
import { readResponsesAsk } from './responses-ask.ts';
import { addText } from './text-size.ts';

/** What a chat request asks for, as far as routing and money need to know; `body` is the whole of it. */
export type Ask = {
  style: CallerStyle;
  body: JsonObject;
  model: string;
  stream: boolean;
  /** Completions streams: `stream_options.include_usage`. Messages streams always tell. */
  wants_usage: boolean;
  /** Undefined if the caller set none. */
  max_tokens: number | undefined;
  /** How many answers. */
  n: number;
};

/**
 * What the input is made of, for its estimate: bytes of all text, and what is no text. Audio counts among
 * the documents; `media_bytes` are the decoded bytes of what was sent along instead of linked.
 */
export type InputSize = {
  ascii_bytes: number;
  other_bytes: number;
  images: number;
  documents: number;
  media_bytes: number;
};

const choices_max = 128;

/**
 * Reads what routing and money need of a chat body, in place; everything else is left to whoever answers.
 * `count` is for a body whose tokens are only counted: it needs no max_tokens. Throws ApiError 400.
 */
export function readAsk(style: CallerStyle, body: unknown, purpose: 'answer' | 'count' = 'answer'): Ask {
  if (!isObject(body)) throw new ApiError('invalid_request', 'The body must be a JSON object.');
  if (style === 'responses') return readResponsesAsk(body);
  const model = readModel(body);
  checkMessages(body);
  const stream = readBoolean(body, 'stream', 'stream') ?? false;
  if (style === 'messages') {
    const max_tokens = readCount(body, 'max_tokens', 'max_tokens', 0);
    if (max_tokens === undefined && purpose === 'answer') throw mistake('max_tokens', 'is required');
    return { style, body, model, stream, wants_usage: true, max_tokens, n: 1 };
  }
  const n = readCount(body, 'n', 'n', 1) ?? 1;
  if (n > choices_max) throw mistake('n', `must be at most ${choices_max}`);
  const max_tokens = readCount(body, 'max_tokens', 'max_tokens', 1);
  const max_completion_tokens = readCount(body, 'max_completion_tokens', 'max_completion_tokens', 1);
  const wants_usage = readWantsUsage(body, stream);
  return { style, body, model, stream, wants_usage, max_tokens: max_completion_tokens ?? max_tokens, n };
}

function readModel(body: JsonObject): string {
  const model = given(body, 'model');
  if (model === undefined) throw mistake('model', 'is required');
  if (typeof model !== 'string' || model === '') throw mistake('model', 'must be a non-empty string');
  return model;
}

function checkMessages(body: JsonObject): void {
  const messages = given(body, 'messages');
  if (messages === undefined) throw mistake('messages', 'is required');
  if (!Array.isArray(messages)) throw wrongType('messages', 'an array', messages);
  if (messages.length === 0) throw mistake('messages', 'must not be empty');
  for (const [index, message] of messages.entries()) {
    if (!isObject(message)) throw wrongType(`messages[${index}]`, 'an object', message);
    if (typeof message['role'] !== 'string') throw mistake(`messages[${index}].role`, 'must be a string');
  }
}

function readWantsUsage(body: JsonObject, stream: boolean): boolean {
  const options = readObject(body, 'stream_options', 'stream_options');
  if (options === undefined) return false;
  if (!stream) throw mistake('stream_options', 'is only allowed with "stream": true');
  return readBoolean(options, 'include_usage', 'stream_options.include_usage') ?? false;
}

/** Names, hints and seals that reach no model as text. */
const unread: ReadonlySet<string> = new Set([
  'model',
  'metadata',
  'user',
  'safety_identifier',
  'prompt_cache_key',
  'cache_control',
  'signature',
  'extra_content',
  'encrypted_content',
  'encrypted_index',
]);

/** Below these, names count as text too: a tool's schema is read by the model with its property names. */
const spelled_out: ReadonlySet<string> = new Set(['parameters', 'input_schema', 'schema', 'input']);

/** Role and separators of a message: about four tokens in the templates of all models we looked at. */
const message_overhead_bytes = 10;

/** How much input a request holds. Counts every text, also in fields that we do not know; never throws. */
export function inputSize(ask: Ask): InputSize {
  const size: InputSize = { ascii_bytes: 0, other_bytes: 0, images: 0, documents: 0, media_bytes: 0 };
  for (const key in ask.body) if (!unread.has(key)) addValue(size, ask.body[key], false);
  const messages = ask.body[ask.style === 'responses' ? 'input' : 'messages'];
  if (Array.isArray(messages)) size.ascii_bytes += message_overhead_bytes * messages.length;
  return size;
}

function addValue(size: InputSize, value: Json | undefined, names: boolean): void {
  if (typeof value === 'string') {
    addText(size, value);
  } else if (Array.isArray(value)) {
    for (const each of value) addValue(size, each, names);
  } else if (isObject(value)) {
    if (names || !addMedia(size, value)) addMembers(size, value, names);
  } else if (names && value !== undefined) {
    addText(size, String(value));
  }
}

function addMembers(size: InputSize, object: JsonObject, names: boolean): void {
  for (const key in object) {
    if (names) addText(size, key);
    else if (unread.has(key)) continue;
    addValue(size, object[key], names || spelled_out.has(key));
  }
}

/** True if `part` is an image, a document or a sound, which is then counted. Texts in documents are texts. */
function addMedia(size: InputSize, part: JsonObject): boolean {
  switch (part['type']) {
    case 'image':
    case 'image_url':
      size.images += 1;
      size.media_bytes += encodedBytes(part['source'] ?? part['image_url']);
      return true;
    case 'input_image':
      size.images += 1;
      size.media_bytes += encodedBytes(part['image_url']);
      return true;
    case 'input_file':
      size.documents += 1;
      size.media_bytes += encodedBytes(part['file_data'] ?? part['file_url']);
      return true;
    case 'file':
    case 'input_audio':
      if (!isObject(part[part['type']])) return false;
      size.documents += 1;
      size.media_bytes += encodedBytes(part[part['type']]);
      return true;
    case 'document': {
      const { source } = part;
      if (!isObject(source) || source['type'] === 'text' || source['type'] === 'content') return false;
      size.documents += 1;
      size.media_bytes += encodedBytes(source);
      return true;
    }
    default:
      return false;
  }
}

/** Decoded size of the base64 text in a part: in a source's `data`, a data URL, a file's `file_data`. */
function encodedBytes(holder: Json | undefined): number {
  if (typeof holder === 'string') return holder.startsWith('data:') ? Math.floor((holder.length * 3) / 4) : 0;
  if (!isObject(holder)) return 0;
  const { data, url, file_data } = holder;
  if (typeof data === 'string') return Math.floor((data.length * 3) / 4);
  return encodedBytes(typeof url === 'string' ? url : typeof file_data === 'string' ? file_data : undefined);
}
