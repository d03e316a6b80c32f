import type { Json, JsonObject } from '../../catalog/model.ts';
import { readDataUrl } from '../../lib/data-url.ts';
import { InputRefused } from '../provider.ts';

/** The file of a field of the input, which is a data URL by now. Throws InputRefused if it is none. */
export function fileOf(field: string, value: Json | undefined): { content_type: string; bytes: Buffer } {
  const file = typeof value === 'string' ? readDataUrl(value) : undefined;
  if (file) return file;
  throw new InputRefused('invalid_request', `${field} holds no file.`);
}

/** Adds the file of a field; upstreams look at the end of its name. */
export function appendFile(form: FormData, name: string, field: string, value: Json | undefined): void {
  const { content_type, bytes } = fileOf(field, value);
  form.append(name, new Blob([new Uint8Array(bytes)], { type: content_type }), fileName(content_type));
}

/** A name for a file of this type, such as `image.png`. */
export function fileName(content_type: string): string {
  const [kind = 'file', format = ''] = content_type.split('/');
  return `${kind}.${extensions[format] ?? format.replaceAll(/^x-|\W.*$/g, '')}`;
}

/** Subtypes that are not called like the files that they are of. */
const extensions: Record<string, string> = {
  mpeg: 'mp3',
  'x-m4a': 'm4a',
  wave: 'wav',
  'vnd.wave': 'wav',
  quicktime: 'mov',
};

/** Adds fields that are no files: members of a list as `name[]`, objects as JSON. */
export function appendFields(form: FormData, fields: JsonObject, listName = (name: string) => `${name}[]`): void {
  for (const [name, value] of Object.entries(fields)) {
    if (value === null) continue;
    if (Array.isArray(value)) for (const item of value) form.append(listName(name), textOf(item));
    else form.append(name, textOf(value));
  }
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
