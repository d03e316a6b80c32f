import type { ServerResponse } from 'node:http';
import { finished, Readable } from 'node:stream';
import type { Answer, BodyWriter } from './endpoint.ts';

const json = 'application/json; charset=utf-8';

/** Names in lower case. */
export type Headers = Record<string, string | string[]>;

/** Sends what an endpoint answered, with `common_headers` and its own. `fail` is called if a stream has no first byte. */
export function sendAnswer(
  response: ServerResponse,
  common_headers: Headers,
  { status, headers: own, body }: Answer,
  fail: (error: Error) => void,
): void {
  const headers = { ...common_headers, ...own };
  if (body === undefined) return sendHead(response, status, headers);
  if (isBodyWriter(body)) {
    setHead(response, status, headers);
    return body.writeTo(response);
  }
  headers['content-type'] ??= json;
  if (body instanceof Readable) {
    setHead(response, status, headers);
    return sendStream(response, body, fail);
  }
  sendBytes(response, status, headers, typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body));
}

/** Sends a body whose size is known. */
export function sendBytes(response: ServerResponse, status: number, headers: Headers, bytes: Buffer | string): void {
  headers['content-length'] = String(Buffer.byteLength(bytes));
  response.writeHead(status, headers).end(bytes);
}

/** Sends an answer without a body. */
function sendHead(response: ServerResponse, status: number, headers: Headers): void {
  const has_none = status === 204 || status === 304 || response.req.method === 'HEAD';
  if (!has_none) headers['content-length'] = '0';
  response.writeHead(status, headers).end();
}

function setHead(response: ServerResponse, status: number, headers: Headers): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

/** Its head goes out with the first byte: until then a file may turn out not to be there. */
function sendStream(response: ServerResponse, stream: Readable, fail: (error: Error) => void): void {
  finished(stream, { writable: false }, (error) => {
    if (!error) return;
    if (response.headersSent || response.destroyed) response.destroy();
    else fail(error);
  });
  finished(response, () => stream.destroy());
  stream.pipe(response);
}

function isBodyWriter(body: object | string): body is BodyWriter {
  return typeof body === 'object' && 'writeTo' in body && typeof body.writeTo === 'function';
}
