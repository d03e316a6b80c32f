import type { Json, JsonObject } from '../catalog/model.ts';
import { isDataUrl, readDataUrl } from '../lib/data-url.ts';
import { allAt, readPath } from './answer-path.ts';
import type { RunFile } from './provider.ts';

/**
 * The files of an answer of unknown form: every http(s) link and every data URL in it, in its order, each once;
 * where there is none, its text. The route's `output.files` (a path, or a list of them) says where to look.
 */
export function resultsOf(answer: Json | undefined, output: JsonObject): RunFile[] {
  const found = placesIn(answer, output);
  const files = [...new Set(found.flatMap((value) => textsIn(value)))].flatMap(fileOf);
  if (files.length > 0) return files;
  // A list of texts that are no files is one text in pieces, as it was streamed.
  const text = found.flatMap(piecesOf).join('');
  return text === '' ? [] : [{ text, content_type: 'text/plain' }];
}

/** What stands where the route's `output.files` says; all of the answer where it says nothing. */
export function placesIn(answer: Json | undefined, { files }: JsonObject): Json[] {
  if (files === undefined) return [answer ?? null];
  return [files].flat().flatMap((place) => {
    const path = typeof place === 'string' ? readPath(place) : undefined;
    return path ? allAt(answer, path) : [];
  });
}

const depth_max = 8;

function textsIn(value: Json, depth = 0): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null || depth > depth_max) return [];
  return Object.values(value).flatMap((member) => textsIn(member, depth + 1));
}

/** The file that a text is: a link, or a data URL. */
export function fileOf(text: string): RunFile[] {
  if (isDataUrl(text)) {
    const file = readDataUrl(text);
    return file ? [{ bytes: file.bytes }] : [];
  }
  return /^https?:\/\/\S+$/i.test(text) ? [{ url: text }] : [];
}

function piecesOf(value: Json): string[] {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((piece) => typeof piece === 'string') : [];
}
