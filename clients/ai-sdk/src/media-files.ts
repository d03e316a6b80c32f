import { UnsupportedFunctionalityError, type JSONValue } from '@ai-sdk/provider';
import { convertBase64ToUint8Array, convertToBase64, detectMediaType } from '@ai-sdk/provider-utils';
import type { Medley } from '@medley/client';
import type { InputDraft, MediaKind } from './fields.ts';

/** A file of a call: bytes (base64 as text), or a link, which the service fetches. */
export type MediaFile =
  | { type: 'file'; mediaType: string; data: string | Uint8Array }
  | { type: 'url'; url: string; mediaType?: string };

/** Files for one field of the input. */
export type Placed = { field: string; is_list: boolean; files: readonly MediaFile[] };

/** Of several fields for files, the one that means what is worked on. */
const main_fields =
  /^(?:input_|init_|reference_)?(?:image|images|audio|file|video)(?:_input|_url|_urls|s)?$|^(?:first|start)_/i;

/**
 * Finds the field for files: one that is meant, a list if there are several files. Throws UnsupportedFunctionalityError:
 * a result without its files would be paid and useless.
 */
export function placeFiles(
  draft: InputDraft,
  setting: string,
  files: readonly MediaFile[],
  { kind, isMeant }: { kind: MediaKind; isMeant: (name: string) => boolean },
): Placed {
  const own = [...draft.fields.values()].filter(({ name, media }) => media === kind && isMeant(name));
  const able = files.length > 1 ? own.filter(({ is_list }) => is_list) : own;
  const field = able.find(({ name }) => main_fields.test(name)) ?? able[0];
  if (field) return { field: field.name, is_list: field.is_list, files };
  const names = own.map(({ name }) => name).join(' and ');
  const why = own.length === 0 ? `has no field for it` : `takes one file in ${names}, and not ${files.length}`;
  throw new UnsupportedFunctionalityError({ functionality: setting, message: `${setting}: ${draft.model} ${why}.` });
}

/** More goes up before the task, and is deleted after it: a request of a task has at most 20 MB. */
const inline_characters_max = 12_000_000;

/** The texts that stand for files in an input, and the ids of those that were uploaded for it. */
export type Resolved = { values: [field: string, value: JSONValue][]; uploaded: string[] };

/** Writes files as data URLs and links, or uploads them where they are large. */
export async function resolveFiles(
  placed: readonly Placed[],
  client: Medley,
  signal: AbortSignal | undefined,
): Promise<Resolved> {
  const size = placed.flatMap(({ files }) => files).reduce((sum, file) => sum + sizeOf(file), 0);
  const uploaded: string[] = [];
  const values: Resolved['values'] = [];
  for (const { field, is_list, files } of placed) {
    const texts: string[] = [];
    for (const file of files) {
      if (file.type === 'url') texts.push(file.url);
      else if (size <= inline_characters_max) texts.push(dataUrl(file));
      else {
        const { id } = await client.files.upload(blobOf(file), { purpose: 'user_data', signal });
        uploaded.push(id);
        texts.push(id);
      }
    }
    values.push([field, is_list ? texts : (texts[0] ?? null)]);
  }
  return { values, uploaded };
}

function sizeOf(file: MediaFile): number {
  if (file.type === 'url') return 0;
  return typeof file.data === 'string' ? file.data.length : Math.ceil((file.data.length * 4) / 3);
}

function dataUrl({ mediaType, data }: MediaFile & { type: 'file' }): string {
  return `data:${wholeType(mediaType, data)};base64,${convertToBase64(data)}`;
}

function blobOf({ mediaType, data }: MediaFile & { type: 'file' }): Blob {
  const bytes = typeof data === 'string' ? convertBase64ToUint8Array(data) : data;
  return new Blob([Uint8Array.from(bytes)], { type: wholeType(mediaType, data) });
}

/** `image/*` is no type. The service looks at the bytes in the end. */
function wholeType(mediaType: string, data: string | Uint8Array): string {
  if (/^[\w.+-]+\/[\w.+-]+$/.test(mediaType)) return mediaType;
  return detectMediaType({ data }) ?? 'application/octet-stream';
}
