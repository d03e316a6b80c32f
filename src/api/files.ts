import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { ApiError, service_errors, type ErrorExtras, type ErrorKind } from '../errors.ts';
import { parseKey, thumbnail_sizes, type KeyParts, type ThumbnailSize } from '../storage/key.ts';
import { verifyLink } from '../storage/links.ts';
import { mediaType } from '../storage/media-types.ts';
import { parseRange } from '../storage/range.ts';
import type { ByteRange, Storage, StoredFile } from '../storage/storage.ts';
import type { Thumbnails } from '../storage/thumbnails.ts';

export type FileRequest = {
  method: string;
  /** The rest of the path after `/files/`, as sent: not percent-decoded. */
  key: string;
  query: Record<string, unknown>;
  /** Names in lower case. */
  headers: Record<string, string | string[] | undefined>;
  request_id: string;
};

/** The request for a file, after its permission has been checked. */
type FilePath = Omit<FileRequest, 'query'>;

/** At most one of `stream` and `body`. A stream must be piped to its end or destroyed. */
export type FileReply = {
  status: number;
  headers: Record<string, string>;
  stream?: Readable;
  body?: string;
};

export type FileServing = { storage: Storage; thumbnails: Pick<Thumbnails, 'keyOf'>; secret: string; now_ms: number };

/** An hour: what the browser keeps of a removed file should not outlive it by much. */
const cache_s_max = 3600;

/** The SDK renews credentials five minutes before their end, with which an address that they have signed ends too. */
const redirect_cache_s_max = 300;

/**
 * Chromium wraps a video that is opened directly in a page of its own, which needs `media-src` to
 * load it and an inline style to place it; without scripts, the sandbox only forbids autoplay.
 */
const content_security_policy = "sandbox; default-src 'none'; media-src 'self'; style-src 'unsafe-inline'";

/** GET and HEAD of `/files/…`: one stored file for whoever holds a valid link to it. */
export async function serveFile(serving: FileServing, request: FileRequest): Promise<FileReply> {
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    return refusedFile(request, 405, 'method_not_allowed', 'Files are read by GET and HEAD.', {
      headers: { allow: 'GET, HEAD' },
    });
  }
  const { exp, sig } = request.query;
  const expires_s = verifyLink(serving.secret, { key: request.key, exp, sig }, serving.now_ms);
  const left_s = Math.floor((expires_s ?? 0) - serving.now_ms / 1000);
  const reply = expires_s === undefined ? undefined : await serveLinked(serving, request, left_s);
  return reply ?? refusedFile(request, 404, 'not_found', 'There is no such file, or the link to it has expired.');
}

async function serveLinked(
  { storage, thumbnails }: FileServing,
  request: FileRequest,
  left_s: number,
): Promise<FileReply | undefined> {
  const { thumbnail } = request.query;
  if (thumbnail === undefined)
    return (await leadOn(storage, request, left_s)) ?? (await serveStored(storage, request, left_s));
  const size = thumbnailSize(thumbnail);
  if (size === undefined) {
    return refusedFile(request, 400, 'invalid_request', `thumbnail must be ${thumbnail_sizes.join(' or ')}.`, {
      param: 'thumbnail',
    });
  }
  const reply = await serveThumbnail({ storage, thumbnails }, request, size, left_s);
  return reply ?? refusedFile(request, 404, 'not_found', 'There is no thumbnail of this file.');
}

/** The size that a query names; undefined if it names none that there is. */
function thumbnailSize(text: unknown): ThumbnailSize | undefined {
  return thumbnail_sizes.find((size) => String(size) === text);
}

/** The thumbnail of a stored file for somebody who may have it; undefined if there is none. */
export async function serveThumbnail(
  { storage, thumbnails }: Pick<FileServing, 'storage' | 'thumbnails'>,
  request: FilePath,
  size: ThumbnailSize,
  cache_s: number,
): Promise<FileReply | undefined> {
  const key = await thumbnails.keyOf(request.key, size);
  return key === undefined ? undefined : serveStored(storage, { ...request, key }, cache_s);
}

/** The longest time for which S3 signs an address. */
const presign_s_max = 604_800;

/**
 * Leads on to the bucket, where that serves files itself, at an address that lasts as long as the link. Pages of our
 * own get the bytes from us, since their content security policy lets them load nothing from elsewhere.
 */
async function leadOn({ presign, stat }: Storage, request: FilePath, left_s: number): Promise<FileReply | undefined> {
  const parts = parseKey(request.key);
  if (!presign || !parts || left_s < 1 || request.method !== 'GET') return undefined;
  if (request.headers['sec-fetch-site'] === 'same-origin') return undefined;
  if (!(await stat(request.key))) return undefined;
  const { content_type, content_disposition } = descriptionOf(parts);
  const lifetime_s = Math.min(left_s, presign_s_max);
  const location = await presign(request.key, { lifetime_s, content_type, content_disposition });
  return {
    status: 302,
    headers: {
      location,
      'cache-control': `private, max-age=${Math.min(lifetime_s, redirect_cache_s_max)}`,
      'referrer-policy': 'no-referrer',
      'cross-origin-resource-policy': 'cross-origin',
    },
  };
}

/** A stored file for somebody who may have it; undefined if it is not there. */
export async function serveStored(
  storage: Storage,
  request: FilePath,
  cache_s: number,
): Promise<FileReply | undefined> {
  const parts = parseKey(request.key);
  // Overwritten between our two looks (only a task that is being finished does that): look again.
  for (let tries_left = 3; parts && tries_left > 0; tries_left -= 1) {
    const file = await storage.stat(request.key);
    if (!file) return undefined;
    const reply = await answer(storage, request, parts, file, cache_s);
    if (reply) return reply;
  }
  return undefined;
}

/** Conditions, then the range, then the bytes. Undefined if the file is no longer the same. */
async function answer(
  storage: Storage,
  request: FilePath,
  parts: KeyParts,
  file: StoredFile,
  cache_s: number,
): Promise<FileReply | undefined> {
  const etag = `"${createHash('sha256').update(`${request.key}\n${file.version}`).digest('base64url').slice(0, 27)}"`;
  const headers = fileHeaders(parts, etag, cache_s);
  const { 'if-match': if_match, 'if-none-match': if_none_match } = request.headers;
  if (if_match !== undefined && !matches(if_match, etag, 'strong')) {
    return refusedFile(request, 412, 'invalid_request', 'The file does not match If-Match.', {
      code: 'precondition_failed',
    });
  }
  if (if_none_match !== undefined && matches(if_none_match, etag, 'weak')) return { status: 304, headers };
  const range = requestedRange(request, etag, file.size_bytes);
  if (range === 'unsatisfiable') {
    return refusedFile(request, 416, 'invalid_request', `The file has ${file.size_bytes} bytes.`, {
      code: 'range_not_satisfiable',
      headers: { 'content-range': `bytes */${file.size_bytes}`, 'accept-ranges': 'bytes' },
    });
  }
  return send(storage, request, file, headers, range);
}

async function send(
  storage: Storage,
  request: FilePath,
  file: StoredFile,
  headers: Record<string, string>,
  range: ByteRange | undefined,
): Promise<FileReply | undefined> {
  if (request.method === 'HEAD') {
    return { status: 200, headers: { ...headers, 'content-length': String(file.size_bytes) } };
  }
  const opened = await storage.open(request.key, range);
  if (opened?.version !== file.version) {
    opened?.stream.destroy();
    return undefined;
  }
  const { stream, start, end, size_bytes } = opened;
  headers['content-length'] = String(end - start + 1);
  if (!range) return { status: 200, headers, stream };
  headers['content-range'] = `bytes ${start}-${end}/${size_bytes}`;
  return { status: 206, headers, stream };
}

function fileHeaders(parts: KeyParts, etag: string, cache_s: number): Record<string, string> {
  const { content_type, content_disposition } = descriptionOf(parts);
  return {
    'content-type': content_type,
    'content-disposition': content_disposition,
    'accept-ranges': 'bytes',
    etag,
    'cache-control': `private, max-age=${Math.min(cache_s, cache_s_max)}`,
    'x-content-type-options': 'nosniff',
    'content-security-policy': content_security_policy,
    // The link is the whole authorisation, no cookie is involved: pages may embed what they hold.
    'cross-origin-resource-policy': 'cross-origin',
  };
}

function descriptionOf(parts: KeyParts): { content_type: string; content_disposition: string } {
  const { content_type, inline } = mediaType(parts.extension);
  const { owner_id, index, extension, thumbnail } = parts;
  const name = `${owner_id}-${index}${thumbnail === undefined ? '' : `-${thumbnail}`}.${extension}`;
  return { content_type, content_disposition: `${inline ? 'inline' : 'attachment'}; filename="${name}"` };
}

/** The Range header is for GET only, and void if If-Range names another version (RFC 9110, 13.1.5). */
function requestedRange(request: FilePath, etag: string, size_bytes: number) {
  const { range, 'if-range': if_range } = request.headers;
  if (request.method !== 'GET' || typeof range !== 'string') return undefined;
  if (if_range !== undefined && if_range !== etag) return undefined;
  return parseRange(range, size_bytes);
}

/**
 * Tells whether a list of entity tags contains ours. Ours is strong: a weak one equals it only in a weak
 * comparison.
 */
function matches(header: string | string[], etag: string, comparison: 'strong' | 'weak'): boolean {
  const list = [header].flat().join(',');
  if (list.trim() === '*') return true;
  const tags = list.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => tag === etag || (comparison === 'weak' && tag === `W/${etag}`));
}

function refusedFile(
  request: FilePath,
  status: number,
  kind: ErrorKind,
  message: string,
  extras: ErrorExtras = {},
): FileReply {
  const error = new ApiError(kind, message, extras);
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    ...extras.headers,
  };
  if (request.method === 'HEAD') return { status, headers };
  return { status, headers, body: JSON.stringify(service_errors.render(error, request.request_id)) };
}
