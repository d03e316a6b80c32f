import { Cursor, type Page } from './cursor.ts';
import { MedleyError, NotFoundError } from './errors.ts';
import { readJson, segment, type CallOptions, type Http, type RequestBody } from './http.ts';
import type { ListFilesQuery, UploadedFile } from './types.ts';

/** A file to upload; `{ path }` in Node only. */
export type FileSource =
  | Blob
  | ArrayBuffer
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | { path: string };

export type UploadOptions = CallOptions & {
  filename?: string | undefined;
  /** A label of your own. */
  purpose?: string | undefined;
  /** Seconds until the file is removed, if less than the usual time. */
  expires_after_s?: number | undefined;
};

/** Files are large: an attempt may take ten minutes unless the call says otherwise. */
export const transfer_timeout_ms = 600_000;

export class Files {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Uploads a file. Its id may stand in fields of an input that take files. It is not sent again after a lost answer. */
  async upload(source: FileSource, options: UploadOptions = {}): Promise<UploadedFile> {
    const { has_one_attempt, headers, body } = uploadOf(source, options);
    const request = {
      method: 'POST',
      path: '/v1/files',
      headers,
      body,
      is_repeatable: false,
      has_one_attempt,
    } as const;
    return this.#http.send(request, { timeout_ms: transfer_timeout_ms, ...options }, readJson<UploadedFile>);
  }

  async get(id: string, options: CallOptions = {}): Promise<UploadedFile> {
    const request = { method: 'GET', path: `/v1/files/${segment(id)}`, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<UploadedFile>);
  }

  /** Lists files, newest first unless `order` is `asc`. */
  list(query: Omit<ListFilesQuery, 'before_id'> = {}, options: CallOptions = {}): Cursor<UploadedFile> {
    const load = (after: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/files', query: { ...query, after }, is_repeatable: true },
        options,
        readJson<Page<UploadedFile>>,
      );
    return new Cursor(load, query.after);
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    const request = { method: 'DELETE', path: `/v1/files/${segment(id)}`, is_repeatable: true } as const;
    try {
      await this.#http.send(request, options, (response) => response.arrayBuffer());
    } catch (error) {
      if (!(error instanceof NotFoundError && error.follows_lost_answer)) throw error;
    }
  }
}

type Upload = {
  headers: Record<string, string>;
  body: () => Promise<RequestBody>;
  has_one_attempt: boolean;
};

function uploadOf(source: FileSource, options: UploadOptions): Upload {
  const fields = fieldsOf(options);
  if (source instanceof Blob || source instanceof ArrayBuffer || source instanceof Uint8Array) {
    const blob =
      source instanceof Blob ? source : new Blob([source instanceof Uint8Array ? Uint8Array.from(source) : source]);
    return {
      headers: {},
      body: async () => form(fields, blob, options.filename ?? nameOf(blob)),
      has_one_attempt: false,
    };
  }
  if ('path' in source) {
    if (!isNode()) throw new MedleyError('A page has no paths: upload a Blob or a File.');
    return streamed(fields, () => openPath(source.path, options.filename), false);
  }
  if (isNode())
    return streamed(fields, async () => ({ filename: options.filename ?? 'file', bytes: chunksOf(source) }), true);
  // Browsers send a stream over HTTP/2 only, and not all of them: it is read first.
  const body = async () => form(fields, await blobOf(chunksOf(source)), options.filename ?? 'file');
  return { headers: {}, body, has_one_attempt: true };
}

function fieldsOf({ purpose, expires_after_s }: UploadOptions): [string, string][] {
  return [
    ...(purpose === undefined ? [] : [['purpose', purpose] satisfies [string, string]]),
    ...(expires_after_s === undefined
      ? []
      : [
          ['expires_after[anchor]', 'created_at'] satisfies [string, string],
          ['expires_after[seconds]', String(expires_after_s)] satisfies [string, string],
        ]),
  ];
}

function form(fields: readonly [string, string][], blob: Blob, filename: string): FormData {
  const data = new FormData();
  for (const [name, value] of fields) data.append(name, value);
  data.append('file', blob, filename);
  return data;
}

function nameOf(blob: Blob): string {
  return 'name' in blob && typeof blob.name === 'string' && blob.name !== '' ? blob.name : 'file';
}

type NamedBytes = { filename: string; bytes: AsyncIterable<Uint8Array> };

/** A form that is written while the file is read, of whatever length. */
function streamed(
  fields: readonly [string, string][],
  open: () => Promise<NamedBytes>,
  has_one_attempt: boolean,
): Upload {
  const boundary = `medley-client-${Math.random().toString(36).slice(2)}${Math.random().toString(36).slice(2)}`;
  const body = async () => {
    const { filename, bytes } = await open();
    return streamOf(formChunks(boundary, fields, filename, bytes));
  };
  return { headers: { 'content-type': `multipart/form-data; boundary=${boundary}` }, body, has_one_attempt };
}

async function* formChunks(
  boundary: string,
  fields: readonly [string, string][],
  filename: string,
  bytes: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  const encoder = new TextEncoder();
  const head = (name: string) => `--${boundary}\r\ncontent-disposition: form-data; name="${name}"`;
  for (const [name, value] of fields) yield encoder.encode(`${head(name)}\r\n\r\n${value}\r\n`);
  yield encoder.encode(
    `${head('file')}; filename="${quoted(filename)}"\r\ncontent-type: application/octet-stream\r\n\r\n`,
  );
  yield* bytes;
  yield encoder.encode(`\r\n--${boundary}--\r\n`);
}

/** Escapes a name as browsers do. */
function quoted(filename: string): string {
  return filename.replaceAll('"', '%22').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function streamOf(chunks: AsyncGenerator<Uint8Array, void, undefined>): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    async cancel() {
      await chunks.return();
    },
  });
}

/** Safari's streams are not iterable. */
export async function* chunksOf(
  source: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (!(source instanceof ReadableStream)) {
    yield* source;
    return;
  }
  const reader = source.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

async function blobOf(chunks: AsyncIterable<Uint8Array>): Promise<Blob> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for await (const chunk of chunks) parts.push(Uint8Array.from(chunk));
  return new Blob(parts);
}

async function openPath(path: string, filename: string | undefined): Promise<NamedBytes> {
  const { openFile } = await import('./node.ts');
  const file = await openFile(path);
  return { filename: filename ?? file.filename, bytes: file.bytes };
}

export function isNode(): boolean {
  return typeof process !== 'undefined' && typeof process.versions?.node === 'string';
}
