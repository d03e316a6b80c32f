import type { Readable } from 'node:stream';
import { Dicer } from '@fastify/busboy';
import { ApiError } from '../errors.ts';

/** Bodies of multipart/related with two parts: JSON about a file, then the file (RFC 2387). */

const boundary_form = /;\s*boundary=(?:"([^"\\]{1,70})"|([^\s;"]{1,70}))\s*(?:;|$)/i;
const about_bytes_max = 65_536;
const headers_max = 16;

/** Returns the boundary of a content-type. Throws ApiError 415, and 400 if it has none. */
export function relatedBoundary(content_type = ''): string {
  if (!/^multipart\/related\s*(;|$)/i.test(content_type)) {
    const got = JSON.stringify(content_type.slice(0, 60));
    throw new ApiError('unsupported_media_type', `Send the body as "content-type: multipart/related" (got ${got}).`);
  }
  const [, quoted, plain] = boundary_form.exec(content_type) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw malformed('its content-type has no boundary of 1 to 70 characters');
  return boundary;
}

export type RelatedBody<T> = { about: Buffer; file: T };

/** Reads both parts from a body; `take` gets the file while it arrives. Throws ApiError 400, and what `take` throws. */
export async function readRelated<T>(
  body: Readable,
  boundary: string,
  take: (stream: Readable) => Promise<T>,
): Promise<RelatedBody<T>> {
  const parser = new Dicer({ boundary, maxHeaderPairs: headers_max });
  const { promise: parsed, resolve, reject } = Promise.withResolvers<void>();
  const about: Buffer[] = [];
  const open: Readable[] = [];
  const files: Promise<T>[] = [];
  let parts = 0;
  parser.on('part', (part) => {
    parts += 1;
    open.push(part);
    part.on('error', () => {}); // whoever reads it hears of it
    if (parts === 1) collect(part, about, reject);
    else if (parts === 2) {
      const taken = take(part);
      taken.catch(reject);
      files.push(taken);
    } else {
      part.resume();
      reject(malformed('it has more than two parts'));
    }
  });
  parser.on('error', () => reject(malformed('its parts do not match its boundary, or it ends too early')));
  parser.on('finish', resolve);
  body.on('error', reject);
  try {
    body.pipe(parser);
    await parsed;
    const [file] = await Promise.all(files);
    if (file === undefined) throw malformed('it has no second part, with the file');
    return { about: Buffer.concat(about), file };
  } catch (error) {
    body.unpipe(parser);
    for (const part of open) part.destroy(error instanceof Error ? error : undefined);
    await Promise.allSettled(files);
    throw error;
  } finally {
    body.off('error', reject);
  }
}

function collect(part: Readable, chunks: Buffer[], fail: (error: ApiError) => void): void {
  let size_bytes = 0;
  part.on('error', () => fail(malformed('it ends too early')));
  part.on('data', (chunk: Buffer) => {
    size_bytes += chunk.length;
    if (size_bytes > about_bytes_max) fail(malformed(`its first part has more than ${about_bytes_max / 1024} KiB`));
    else chunks.push(chunk);
  });
}

function malformed(problem: string): ApiError {
  return new ApiError('invalid_request', `The body cannot be read: ${problem}.`, { code: 'invalid_body' });
}
