import type { Json, JsonObject } from '../catalog/model.ts';
import { isId } from '../lib/ids.ts';
import { isObject, memberOf, mistake } from './fields.ts';

/**
 * Files that callers have uploaded here and name by their id. They are found by the parts that the styles have for them,
 * and stand in the body as their own bytes from then on: what is counted, held for and sent is the same as if the caller
 * had sent them. Ids of other places are left to the rules of the style.
 */

/** An uploaded file with its bytes. */
export type UploadedFile = { content_type: string; filename: string; bytes: Buffer };

/** A part of a body that names a file. `replace`: the same part with the file in it; throws ApiError 400 for what no chat takes. */
export type Upload = {
  file_id: string;
  at: string;
  place: readonly (string | number)[];
  replace(file: UploadedFile): JsonObject;
};

/** Returns the parts of a body that name files of ours, in their order. Throws ApiError 400 for those that are not offered. */
export function findUploads(body: JsonObject, turns_field: string): Upload[] {
  const uploads: Upload[] = [];
  findIn(body[turns_field], [turns_field], uploads);
  return uploads;
}

/** Members of turns and parts that hold further parts. */
const holders = ['content', 'output', 'source', 'parts', 'functionResponse'] as const;

function findIn(value: Json | undefined, place: (string | number)[], uploads: Upload[]): void {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) findAt(value[index], index, place, uploads);
  } else if (isObject(value)) {
    const upload = uploadIn(value, place);
    if (upload) uploads.push(upload);
    else for (const name of holders) findAt(value[name], name, place, uploads);
  }
}

function findAt(value: Json | undefined, step: string | number, place: (string | number)[], uploads: Upload[]): void {
  if (typeof value !== 'object' || value === null) return;
  place.push(step);
  findIn(value, place, uploads);
  place.pop();
}

type Put = (part: JsonObject, file: UploadedFile, at: string) => JsonObject;

function uploadIn(part: JsonObject, place: readonly (string | number)[]): Upload | undefined {
  const named = idIn(part);
  if (!named || !isId('file', named.file_id)) return undefined;
  const { file_id, step, put } = named;
  const at = [...place, ...step].map((name, index) => stepText(name, index)).join('');
  return { file_id, at, place: [...place], replace: (file) => put(part, file, at) };
}

function stepText(step: string | number, index: number): string {
  if (typeof step === 'number') return `[${step}]`;
  return index === 0 ? step : `.${step}`;
}

function idIn(part: JsonObject): { file_id: string; step: string[]; put: Put } | undefined {
  const { type, file, source } = part;
  const own = memberOf(part, 'file_id');
  const { fileData } = part;
  if (isObject(fileData)) {
    const file_id = idInUri(memberOf(fileData, 'fileUri'));
    return file_id === undefined ? undefined : { file_id, step: ['fileData', 'fileUri'], put: putInline };
  }
  if ((type === 'input_file' || type === 'input_image' || type === 'container_upload') && typeof own === 'string')
    return { file_id: own, step: ['file_id'], put: type === 'container_upload' ? refuseContainer : putInput };
  const holder = type === 'file' ? file : type === 'image' || type === 'document' ? source : undefined;
  const inner = isObject(holder) ? memberOf(holder, 'file_id') : undefined;
  if (typeof inner !== 'string') return undefined;
  return type === 'file'
    ? { file_id: inner, step: ['file', 'file_id'], put: putFile }
    : { file_id: inner, step: ['source', 'file_id'], put: putSource };
}

const refuseContainer: Put = (_part, _file, at) => {
  const why = 'of a container_upload is not offered: no container runs here, send the file as a document';
  throw mistake(at, why, 'unsupported_field');
};

/** Chat completions: `{type: "file", file: {file_id}}`. Their servers take PDF alone as a file, so a text is a text. */
const putFile: Put = (part, file, at) => {
  const { type: _, file: __, ...rest } = part;
  const url = dataUrl(file);
  switch (kindOf(file)) {
    case 'image':
      return { ...rest, type: 'image_url', image_url: { url } };
    case 'text':
      return { ...rest, type: 'text', text: titled(file) };
    case 'pdf':
      return { ...rest, type: 'file', file: { filename: file.filename, file_data: url } };
    case 'audio':
      return { ...rest, type: 'input_audio', input_audio: { data: base64(file), format: audioFormat(file) } };
    case 'other':
      throw notTaken(at, file);
  }
};

/** Responses: `{type: "input_file" | "input_image", file_id}`. */
const putInput: Put = (part, file, at) => {
  const { type: _, file_id: __, filename: ___, detail, ...rest } = part;
  switch (kindOf(file)) {
    case 'image':
      return { ...rest, type: 'input_image', image_url: dataUrl(file), detail: detail ?? 'auto' };
    case 'text':
      return { ...rest, type: 'input_text', text: titled(file) };
    case 'pdf':
      return { ...rest, type: 'input_file', filename: file.filename, file_data: dataUrl(file) };
    default:
      throw notTaken(at, file);
  }
};

/** Messages: `{type: "image" | "document", source: {type: "file", file_id}}`. */
const putSource: Put = (part, file, at) => {
  const { title } = part;
  switch (kindOf(file)) {
    case 'image':
      return { ...part, type: 'image', source: { type: 'base64', media_type: file.content_type, data: base64(file) } };
    case 'text': {
      const source = { type: 'text', media_type: 'text/plain', data: file.bytes.toString('utf8') };
      return { ...part, type: 'document', source, title: title ?? file.filename };
    }
    case 'pdf': {
      const source = { type: 'base64', media_type: file.content_type, data: base64(file) };
      return { ...part, type: 'document', source, title: title ?? file.filename };
    }
    default:
      throw notTaken(at, file);
  }
};

/** The id alone, as `files/ID`, or at the end of a path of ours. */
function idInUri(uri: Json | undefined): string | undefined {
  if (typeof uri !== 'string' || uri.length > uri_length_max) return undefined;
  return /^(?:(?:https?:\/\/[^/?#]+\/v1(?:beta)?\/)?files\/)?(file_[0-9a-z]+)$/.exec(uri)?.[1];
}

const uri_length_max = 2_048;

/** Gemini: `{fileData: {fileUri}}`. */
const putInline: Put = (part, file, at) => {
  const { fileData: _, ...rest } = part;
  if (kindOf(file) === 'other') throw notTaken(at, file);
  return { ...rest, inlineData: { mimeType: file.content_type, data: base64(file), displayName: file.filename } };
};

function kindOf({ content_type }: UploadedFile): 'image' | 'text' | 'pdf' | 'audio' | 'other' {
  if (content_type.startsWith('image/')) return 'image';
  if (content_type.startsWith('text/') || /^application\/jsonl?$/.test(content_type)) return 'text';
  if (content_type === 'application/pdf') return 'pdf';
  return content_type.startsWith('audio/') ? 'audio' : 'other';
}

function notTaken(at: string, { content_type }: UploadedFile): Error {
  return mistake(at, `names a file of the type ${content_type}, which chat does not take here`, 'unsupported_file');
}

function audioFormat({ content_type }: UploadedFile): string {
  return content_type === 'audio/mpeg' ? 'mp3' : content_type.slice('audio/'.length);
}

function titled({ filename, bytes }: UploadedFile): string {
  return `${filename}:\n\n${bytes.toString('utf8')}`;
}

function base64({ bytes }: UploadedFile): string {
  return bytes.toString('base64');
}

function dataUrl(file: UploadedFile): string {
  return `data:${file.content_type};base64,${base64(file)}`;
}
