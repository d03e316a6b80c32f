import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError } from '../errors.ts';

/** Connections on which a request was refused for its framing: what comes after it may be a part of it. */
const refused = new WeakSet<Socket>();

/**
 * Returns an error for bad framing that Node's parser accepts; undefined if the framing is fine. The parser
 * takes any list of codings that ends with `chunked`; a server before us may read the body differently, and
 * take a part of it for the next request.
 */
export function framingError(raw: IncomingMessage): ApiError | undefined {
  const coding = raw.headers['transfer-encoding'];
  if (coding === undefined || (coding === 'chunked' && raw.httpVersion === '1.1')) return undefined;
  refused.add(raw.socket);
  const message = 'The request is not valid HTTP: its transfer coding must be exactly "chunked", in HTTP/1.1.';
  return new ApiError('invalid_request', message, { headers: { connection: 'close' } });
}

/** Returns true for what came after such a request on its connection: nobody answers it, nothing of it is run. */
export function isBehindRefused(raw: IncomingMessage): boolean {
  return refused.has(raw.socket);
}
