import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { Busboy, type BusboyInstance } from '@fastify/busboy';
import { ApiError } from '../errors.ts';
import { refuseEncoding, watchArrival } from './arriving.ts';
import { megabyte } from './body.ts';

/** Bodies of multipart/form-data: fields, and files that are handed on while they arrive. */

export type FormFile<T> = { name: string; filename: string; value: T };

export type Form<T> = {
  fields: ReadonlyMap<string, string>;
  /** Fields whose names end in `[]`, which may be there several times. */
  lists: ReadonlyMap<string, readonly string[]>;
  files: readonly FormFile<T>[];
};

export type FormLimits = {
  files_max: number;
  file_bytes_max: number;
  /** Of all files together; without it, each may be as large as one may be. */
  files_bytes_max?: number;
};

/** Takes the bytes of one file while they arrive; must read them to their end, or throw. */
export type TakeFile<T> = (stream: Readable) => Promise<T>;

/** A body that has not been read yet. */
export type FormReader = <T>(limits: FormLimits, take: TakeFile<T>) => Promise<Form<T>>;

const parts_max = 64;
const field_name_bytes_max = 100;
const field_bytes_max = 65_536;
const part_headers_max = 16;
const part_header_bytes_max = 4_096;
const filename_length_max = 255;

/** Bytes allowed in addition to the files: fields, names and boundaries. */
const overhead_bytes_max = parts_max * (field_bytes_max + part_header_bytes_max);

/**
 * Refuses by the headers alone where they say enough, then lets the form be read once. Throws ApiError 413, 415 or
 * 400, and what `take` throws. After a throw the rest of the body is still on its way.
 */
export function openForm(raw: IncomingMessage, idle_ms: number, sendContinue: () => void): FormReader {
  checkFormHeaders(raw.headers);
  return async (limits, take) => {
    const { files_max, file_bytes_max, files_bytes_max = files_max * file_bytes_max } = limits;
    const bytes_max = files_bytes_max + overhead_bytes_max;
    if (Number(raw.headers['content-length'] ?? 0) > bytes_max) throw tooLarge(limits);
    const parser = makeParser(raw.headers, limits);
    sendContinue();
    return readForm(raw, parser, { ...limits, bytes_max, idle_ms }, take);
  };
}

export function isForm(headers: IncomingHttpHeaders): boolean {
  return /^multipart\/form-data\s*(;|$)/i.test(headers['content-type'] ?? '');
}

/** RFC 2046: 1 to 70 characters, in quotes or not. */
const boundary_form = /;\s*boundary=(?:"[^"\\]{1,70}"|[^\s;"]{1,70})\s*(?:;|$)/i;

function checkFormHeaders(headers: IncomingHttpHeaders): void {
  refuseEncoding(headers['content-encoding']);
  const type = headers['content-type'] ?? '';
  if (!isForm(headers)) {
    const got = type === '' ? 'got no content-type' : `got ${JSON.stringify(type.slice(0, 60))}`;
    throw new ApiError('unsupported_media_type', `Send the body as "content-type: multipart/form-data" (${got}).`);
  }
  if (!boundary_form.test(type)) throw malformed('its content-type has no boundary of 1 to 70 characters');
}

function makeParser(headers: IncomingHttpHeaders, limits: FormLimits): BusboyInstance {
  try {
    return Busboy({
      headers: { 'content-type': headers['content-type'] ?? '' },
      limits: {
        files: limits.files_max,
        fileSize: limits.file_bytes_max,
        parts: parts_max,
        fieldNameSize: field_name_bytes_max,
        fieldSize: field_bytes_max,
        headerPairs: part_headers_max,
        headerSize: part_header_bytes_max,
      },
    });
  } catch {
    throw malformed('it cannot be read');
  }
}

type Reading = FormLimits & { bytes_max: number; idle_ms: number };

async function readForm<T>(
  raw: IncomingMessage,
  parser: BusboyInstance,
  limits: Reading,
  take: TakeFile<T>,
): Promise<Form<T>> {
  const fields = new Map<string, string>();
  const lists = new Map<string, string[]>();
  const files: Promise<FormFile<T>>[] = [];
  const open = new Set<Readable>();
  const { promise: parsed, resolve, reject } = Promise.withResolvers<void>();
  parser.on('partsLimit', () => reject(malformed(`it has more than ${parts_max} parts`)));
  const too_many = `it has more than ${limits.files_max} file${limits.files_max === 1 ? '' : 's'}`;
  parser.on('filesLimit', () => reject(malformed(too_many)));
  parser.on('field', (name, value, name_cut, value_cut) => {
    const problem = fieldProblem(fields, name, name_cut || value_cut);
    if (problem !== undefined) reject(malformed(problem));
    else if (name.endsWith('[]')) lists.set(name, [...(lists.get(name) ?? []), value]);
    else fields.set(name, value);
  });
  parser.on('file', (name, stream, filename) => {
    stream.on('error', () => {}); // the parser reports it too
    if (name === undefined) {
      stream.resume();
      return reject(malformed('it has a part without a name'));
    }
    open.add(stream);
    stream.on('limit', () => reject(tooLarge(limits)));
    const taken = take(stream).then((value) => ({ name, filename: plainName(filename), value }));
    taken.then(() => open.delete(stream), reject);
    files.push(taken);
  });
  parser.on('error', () => reject(malformed('its parts do not match its boundary, or it ends too early')));
  parser.on('finish', resolve);
  const watching = { ...limits, tooLarge: () => tooLarge(limits) };
  const stopWatching = watchArrival(raw, watching, reject);
  try {
    raw.pipe(parser);
    await parsed;
    return { fields, lists, files: await Promise.all(files) };
  } catch (error) {
    raw.unpipe(parser);
    for (const stream of open) stream.destroy(error instanceof Error ? error : undefined);
    await Promise.allSettled(files);
    throw error;
  } finally {
    stopWatching();
  }
}

function fieldProblem(fields: ReadonlyMap<string, string>, name: string | undefined, cut: boolean): string | undefined {
  if (name === undefined) return 'it has a part without a name';
  if (cut)
    return `its fields may have names of ${field_name_bytes_max} bytes and values of ${field_bytes_max / 1024} KiB`;
  return fields.has(name) ? `it has the field ${JSON.stringify(name.slice(0, 60))} twice` : undefined;
}

/** A name as it may stand in answers and headers: without folders, control characters and lone surrogates. */
export function plainName(filename: string | undefined): string {
  const base = (filename ?? '').split(/[\\/]/).at(-1) ?? '';
  const plain = base
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, '')
    .trim()
    .slice(0, filename_length_max)
    .toWellFormed();
  return plain === '' ? 'file' : plain;
}

function tooLarge({ file_bytes_max }: FormLimits): ApiError {
  return new ApiError('too_large', `A file may have at most ${file_bytes_max / megabyte} MB.`);
}

function malformed(problem: string): ApiError {
  return new ApiError('invalid_request', `The form cannot be read: ${problem}.`, { code: 'invalid_form' });
}
