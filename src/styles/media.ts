import type { JsonObject } from '../catalog/model.ts';
import type { Part, Source } from './conversation.ts';
import { mistake, needObject, needText, notCarried, readText } from './fields.ts';

/** Longer than any type with its parameters, such as the name of a file. */
const head_length_max = 4_096;

type DataUrl = { media_type: string; data: string };

/**
 * The parts of a `data:` URL, its data as base64 whatever it was; parameters such as a charset or a name
 * are left out. Undefined if `url` is no such URL.
 */
function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.slice(0, head_length_max).indexOf(',');
  if (comma === -1 || !/^data:/i.test(url)) return undefined;
  const [type = '', ...parameters] = url
    .slice('data:'.length, comma)
    .split(';')
    .map((each) => each.trim().toLowerCase());
  const data = url.slice(comma + 1);
  if (parameters.at(-1) === 'base64') return { media_type: plainType(type), data };
  try {
    return { media_type: plainType(type), data: Buffer.from(decodeURIComponent(data)).toString('base64') };
  } catch {
    return undefined;
  }
}

function plainType(type: string): string {
  return type === 'image/jpg' ? 'image/jpeg' : type;
}

/**
 * Reads the link or the inline bytes of `url`. Throws ApiError 400 naming `at` for addresses that nobody could
 * fetch.
 */
export function readSource(url: string, at: string): Source {
  if (/^https?:\/\//i.test(url)) return { type: 'url', url };
  const inline = readDataUrl(url);
  if (!inline) throw mistake(at, 'must be an http(s) URL or a data URL');
  if (inline.media_type === '') throw mistake(at, 'does not say its media type');
  return { type: 'base64', ...inline };
}

const image_types: readonly string[] = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];

/** Throws ApiError 400 naming `at` for images that upstreams of messages style do not read. */
export function checkImageType(source: Source, at: string): void {
  if (source.type === 'url' || image_types.includes(source.media_type)) return;
  throw notCarried(at, `An image that is none of ${image_types.join(', ')}`);
}

/** Reads a part `input_audio`, as chat completions and responses have it. Throws ApiError 400. */
export function readAudio(part: JsonObject, at: string): Part {
  const audio = needObject(part['input_audio'], `${at}.input_audio`);
  const data = needText(audio, 'data', `${at}.input_audio.data`);
  return { type: 'audio', format: readText(audio, 'format', `${at}.input_audio.format`) ?? 'wav', data, at };
}
