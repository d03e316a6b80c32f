import { Readable } from 'node:stream';
import { isObject, type Json } from '../../../catalog/model.ts';
import { readDataUrl } from '../../../lib/data-url.ts';
import type { UpstreamRequest } from '../../http/http.ts';
import { fileName } from '../../http/multipart.ts';
import { fileStream, formStream, type FormPart } from '../../http/multipart-stream.ts';
import { InputRefused, type InputFile, type InputFiles } from '../../provider.ts';
import type { Call } from './plan.ts';

/** Bodies of calls: JSON, a form with files, a form of texts, or one file. */

type Body = Pick<UpstreamRequest, 'json' | 'body' | 'stream' | 'headers'>;

/** Returns the body of a call; a text in `files`, or that is a data URL, is a file. Throws InputRefused if one is missing. */
export function encodeBody({ body_as, lists }: Call, body: Json | undefined, files: InputFiles): Body {
  if (body === undefined) return {};
  if (body_as === 'file') return { stream: fileStream(onlyFile(body, files)) };
  if (!isObject(body)) return {};
  if (body_as === 'json') return { json: body };
  const fields = Object.entries(body).flatMap(([name, value]) => fieldsOf(name, value, lists));
  if (body_as === 'multipart') return { stream: formStream(fields.map((field) => partOf(field, files))) };
  const text = new URLSearchParams(fields.map(({ name, text: value }): [string, string] => [name, value])).toString();
  return { body: Buffer.from(text), headers: { 'content-type': 'application/x-www-form-urlencoded' } };
}

function onlyFile(body: Json, files: InputFiles): InputFile {
  const file = typeof body === 'string' ? fileIn(body, files) : undefined;
  if (file) return file;
  throw new InputRefused('invalid_request', 'The input holds no file to send.');
}

type Field = { name: string; text: string };

/** A field with its value, as texts: a list is repeated, or one JSON text. */
function fieldsOf(name: string, value: Json, lists: Call['lists']): Field[] {
  if (value === null) return [];
  if (!Array.isArray(value) || lists === 'json') return [{ name, text: textOf(value) }];
  const item_name = lists === 'brackets' ? `${name}[]` : name;
  return value.filter((item) => item !== null).map((item) => ({ name: item_name, text: textOf(item) }));
}

function textOf(value: Json): string {
  return (typeof value === 'string' ? value : JSON.stringify(value)).toWellFormed();
}

function partOf(field: Field, files: InputFiles): FormPart {
  const file = fileIn(field.text, files);
  return file ? { name: field.name, filename: fileName(file.content_type), file } : field;
}

function fileIn(text: string, files: InputFiles): InputFile | undefined {
  const streamed = files.get(text);
  if (streamed) return streamed;
  const inline = readDataUrl(text);
  if (!inline) return undefined;
  const { content_type, bytes } = inline;
  return { content_type, size_bytes: bytes.length, open: async () => Readable.from([bytes]) };
}

/** Tells whether a text of the input stands for a file. */
export function isFileText(text: string, files: InputFiles): boolean {
  return files.has(text) || readDataUrl(text) !== undefined;
}
