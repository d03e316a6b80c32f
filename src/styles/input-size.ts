import type { Json, JsonObject } from '../catalog/model.ts';
import type { ChatRequest } from './codec.ts';
import { memberOf, isObject } from './fields.ts';
import { addText } from './usage.ts';

/**
 * Size of the input, for its estimate: bytes of all text, and the rest. Audio counts among the documents;
 * `document_bytes` are the decoded bytes of those that are inline.
 */
export type InputSize = {
  ascii_bytes: number;
  other_bytes: number;
  images: number;
  documents: number;
  document_bytes: number;
};

/** Names, hints and signatures that reach no model as text. */
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
  'thoughtSignature',
]);

/** Below these, names count as text too: a tool's schema is read by the model with its property names. */
const spelled_out: ReadonlySet<string> = new Set([
  'parameters',
  'input_schema',
  'schema',
  'input',
  'parametersJsonSchema',
  'responseJsonSchema',
  'responseSchema',
  'args',
  'response',
]);

/** Role and separators of a message: about four tokens in the templates of all models we looked at. */
const message_overhead_bytes = 10;

/** Measures the input of a request. Counts every text, also in fields that we do not know; never throws. */
export function inputSize({ style, body }: ChatRequest): InputSize {
  const size: InputSize = { ascii_bytes: 0, other_bytes: 0, images: 0, documents: 0, document_bytes: 0 };
  for (const key in body) if (!unread.has(key)) addValue(size, body[key], false);
  const { turns_field, addedBytes } = style.caller;
  const turns = turns_field === undefined ? undefined : body[turns_field];
  if (Array.isArray(turns)) size.ascii_bytes += message_overhead_bytes * turns.length;
  size.ascii_bytes += addedBytes?.(body) ?? 0;
  return size;
}

function addValue(size: InputSize, value: Json | undefined, names: boolean): void {
  if (typeof value === 'string') {
    addText(size, value);
  } else if (Array.isArray(value)) {
    for (const each of value) addValue(size, each, names);
  } else if (isObject(value)) {
    addMembers(size, value, names, names ? none : addMedia(size, value));
  } else if (names && value !== undefined) {
    addText(size, String(value));
  }
}

/** `counted` are the members that were counted as an image or document. */
function addMembers(size: InputSize, object: JsonObject, names: boolean, counted: readonly string[]): void {
  for (const key in object) {
    if (names) addText(size, key);
    else if (counted.includes(key) || unread.has(key)) continue;
    else if (counted.length > 0 && isLabel(key, object[key])) continue;
    addValue(size, object[key], names || spelled_out.has(key));
  }
}

/** Types of parts without media. */
const none: readonly string[] = [];

/** An upstream may read either, or both. */
const file_holders: readonly string[] = ['file_data', 'file_url'];

/**
 * Counts an image, a document or audio, and answers which members of `part` hold it: whatever else stands in it may
 * be read as text, whether it belongs there or not. Texts in documents are texts.
 */
function addMedia(size: InputSize, part: JsonObject): readonly string[] {
  const { type } = part;
  switch (type) {
    case 'image':
    case 'image_url':
    case 'input_image': {
      size.images += 1;
      const holder = type === 'image' ? 'source' : 'image_url';
      addHeld(size, part[holder]);
      return [holder];
    }
    case 'input_file': {
      const held = file_holders.filter((holder) => memberOf(part, holder) !== undefined);
      size.documents += Math.max(1, held.length); // one that is not there is somewhere
      for (const holder of held) size.document_bytes += addHeld(size, part[holder]);
      return file_holders;
    }
    case 'file':
    case 'input_audio': {
      const held = part[type];
      if (!isObject(held)) return none;
      size.documents += 1;
      const held_bytes = addHeld(size, held);
      if (type === 'file') size.document_bytes += held_bytes;
      return [type];
    }
    case 'document': {
      const { source } = part;
      if (!isObject(source) || source['type'] === 'text' || source['type'] === 'content') return none;
      size.documents += 1;
      size.document_bytes += addHeld(size, source);
      return ['source'];
    }
    default:
      return isObject(part['inlineData']) || isObject(part['fileData']) ? addGeminiFile(size, part) : none;
  }
}

/** Parts of Gemini's style have no type: the member says what they are. */
function addGeminiFile(size: InputSize, part: JsonObject): readonly string[] {
  const held = ['inlineData', 'fileData'].filter((name) => isObject(part[name]));
  for (const name of held) {
    const file = part[name];
    if (!isObject(file)) continue;
    const { mimeType = '', data, fileUri, ...rest } = file;
    const type = typeof mimeType === 'string' ? mimeType : '';
    const is_image = type.toLowerCase().startsWith('image/');
    if (is_image) size.images += 1;
    else size.documents += 1;
    const located = fileUri === undefined ? {} : { url: fileUri };
    const held_bytes = addHeld(
      size,
      data === undefined ? { ...rest, ...located } : { ...rest, data, media_type: type },
    );
    if (!is_image && !type.toLowerCase().startsWith('audio/')) size.document_bytes += held_bytes;
  }
  return held;
}

const labels: ReadonlySet<string> = new Set(['type', 'media_type', 'format', 'detail', 'file_id', 'filename']);
const label_length_max = 256;

/** Members of an image or document that are neither it nor text: what it counts for has room for them. */
function isLabel(key: string, value: Json | undefined): boolean {
  return labels.has(key) && typeof value === 'string' && value.length <= label_length_max;
}

/** Members that carry its bytes or its address. */
const payloads: readonly string[] = ['data', 'url', 'file_data'];

/** Decoded bytes of what is held as base64: in a source's `data`, a data URL, a file's `file_data`. The rest is text. */
function addHeld(size: InputSize, held: Json | undefined): number {
  if (typeof held === 'string') return addLocated(size, held);
  if (!isObject(held)) {
    addValue(size, held, false);
    return 0;
  }
  const payload = payloads.find((key) => typeof held[key] === 'string');
  for (const key in held) if (key !== payload && !isLabel(key, held[key])) addValue(size, held[key], false);
  const text = payload === undefined ? undefined : held[payload];
  if (typeof text !== 'string') return 0;
  if (payload !== 'data') return addLocated(size, text);
  const { media_type } = held;
  return addEncoded(size, text, typeof media_type === 'string' ? media_type : '');
}

/** Longer than any type with its parameters, such as the name of a file. */
const prefix_length_max = 4_096;

/** A type, of which no honest one is longer (RFC 6838), and its parameters. */
const data_url = /^data:([^;,]{0,255})(;[^,]*)?,/i;

/** Longer ones are no links that anybody gives. */
const link_length_max = 8_192;

function isBase64(text: string): boolean {
  return /^[\w+/-]{64}/.test(text) && !/[^\w+/=\r\n-]/.test(text);
}

/** Adds a file that is named by a text. Nothing is counted if it is elsewhere; a data URL, or base64 alone, is here. */
function addLocated(size: InputSize, text: string): number {
  if (/^https?:/i.test(text) && text.length <= link_length_max) return 0;
  const [prefix, type = '', parameters = ''] = data_url.exec(text.slice(0, prefix_length_max)) ?? [];
  if (prefix === undefined && isBase64(text)) return addEncoded(size, text, '');
  if (prefix === undefined || !/;\s*base64\s*$/i.test(parameters)) {
    addText(size, text);
    return 0;
  }
  return addEncoded(size, text.slice(prefix.length), type);
}

/**
 * Types under `application/`, with or without `x-`, that are read as text. They are listed, since most others
 * are none: `x-pdf` or `x-zip-compressed` as text would be held for as a million tokens.
 */
const text_types: ReadonlySet<string> = new Set(
  (
    'json json5 json-seq jsonl jsonlines ndjson xml xml-dtd yaml yml toml csv tab-separated-values sql graphql ' +
    'javascript ecmascript typescript python python-code ruby perl php httpd-php httpd-php-source lua rust go ' +
    'sh shellscript bash csh zsh powershell bat tcl awk makefile diff patch ' +
    'tex latex texinfo bibtex rtf markdown subrip troff www-form-urlencoded'
  ).split(' '),
);

/** Tells whether upstreams get or read files of this type as text. */
function isText(media_type: string): boolean {
  const [plain = ''] = media_type.split(';', 1);
  const type = plain.trim().toLowerCase();
  if (/^(text|message)\//.test(type)) return true;
  const [, name] = /^application\/(?:x-)?(.+)$/.exec(type) ?? [];
  return name !== undefined && (text_types.has(name) || /\+(json|xml|yaml)$/.test(name));
}

function addEncoded(size: InputSize, base64: string, media_type: string): number {
  if (!isText(media_type)) return Math.floor((base64.length * 3) / 4);
  addText(size, Buffer.from(base64, 'base64').toString());
  return 0;
}
