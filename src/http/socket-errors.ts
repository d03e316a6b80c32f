import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import { ApiError, service_errors, type ErrorFormat } from '../errors.ts';
import { newId } from '../lib/ids.ts';
import { closed_policy } from './browser-headers.ts';
import { errorAnswer, formatOfPath } from './error-answer.ts';
import type { Exchange } from './exchange.ts';
import { absolute_form, decodePath } from './routes.ts';

/** Time that a socket with invalid data may go on sending before it is cut. */
const linger_ms = 1_000;

type Log = (fields: object, message: string) => void;

export type SocketErrors = ReturnType<typeof makeSocketErrors>;

/**
 * Answers what Node's HTTP parser refuses, so before there is a request: malformed HTTP, headers that
 * are too large or too slow. The answer has our format, and the connection ends with it.
 */
export function makeSocketErrors(log: Log, transport_security: () => string | undefined = () => undefined) {
  const answered = new WeakSet<Duplex>();
  const newest = new WeakMap<Duplex, Exchange>();
  const endWith = (socket: Duplex, error: ApiError, format: ErrorFormat, request_id: string) => {
    const hsts = transport_security();
    const own = hsts === undefined ? {} : { 'strict-transport-security': hsts };
    writeAnswer(socket, { ...errorAnswer(error, format, request_id), format, request_id, own });
  };
  return {
    /** Tells of a request whose body the parser may still stumble over. */
    track(socket: Duplex, exchange: Exchange): void {
      newest.set(socket, exchange);
    },
    /** Ends a connection that asks for what is no request, such as CONNECT. */
    refuse(socket: Duplex, error: ApiError): void {
      endWith(socket, error, service_errors, newId('req'));
    },
    answer(error: Error, socket: Duplex): void {
      if (answered.has(socket)) return;
      answered.add(socket);
      const exchange_there = newest.get(socket);
      const open = exchange_there && !exchange_there.response.writableFinished ? exchange_there : undefined;
      const answerNow = (exchange?: Exchange) => {
        const { format, id } = exchange ?? { format: formatOfPath(pathOf(error)), id: newId('req') };
        const refused = toApiError(error);
        log({ request_id: id, status: refused.status, code: codeOf(error) }, 'refused by the HTTP parser');
        endWith(socket, refused, format, id);
      };
      if (!socket.writable || codeOf(error) === 'ECONNRESET') {
        socket.destroy();
      } else if (open?.request.complete) {
        // The nonsense came after it: its own answer first, or a task would be there that nobody heard of.
        open.response.once('close', () => (socket.writable ? answerNow() : socket.destroy()));
      } else if (open?.response.headersSent) {
        socket.destroy();
      } else {
        answerNow(open);
      }
    },
  };
}

function codeOf(error: Error): unknown {
  return 'code' in error ? error.code : undefined;
}

function toApiError(error: Error): ApiError {
  const code = codeOf(error);
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new ApiError('invalid_request', 'The headers are larger than 64 KiB, or more than 1,000.');
  }
  if (code === 'HPE_CHUNK_EXTENSIONS_OVERFLOW') return new ApiError('too_large', 'The chunk extensions are too large.');
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return new ApiError('invalid_request', 'The request arrived too slowly.');
  return new ApiError('invalid_request', 'The request is not valid HTTP.');
}

/** A request line wherever it may begin: at the start, after a line, after any body; not in a header's value. */
const request_lines = /(?<![:\w-] *)\b[a-z][a-z-]* +(\/[^ ?"\r\n]*|https?:\/\/[^ ?"\r\n]*)/gi;

/** The path of the last request line that begins before what the parser refused; `/` if there is none. */
function pathOf(error: Error): string {
  if (!('rawPacket' in error) || !Buffer.isBuffer(error.rawPacket)) return '/';
  const parsed = 'bytesParsed' in error && typeof error.bytesParsed === 'number' ? error.bytesParsed : 0;
  const lines = [...error.rawPacket.toString('latin1').matchAll(request_lines)];
  const line = lines.findLast(({ index }) => index <= parsed);
  return decodePath((line?.[1] ?? '/').replace(absolute_form, ''));
}

type Written = ReturnType<typeof errorAnswer> & {
  format: ErrorFormat;
  request_id: string;
  /** Headers of every answer of this service. */
  own: Record<string, string>;
};

function writeAnswer(socket: Duplex, { status, headers, body, format, request_id, own }: Written): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    ...Object.entries({ ...headers, ...own }).map(([name, value]) => `${name}: ${value}`),
    `x-request-id: ${request_id}`,
    ...(format.request_id_header === undefined ? [] : [`${format.request_id_header}: ${request_id}`]),
    'x-content-type-options: nosniff',
    `content-security-policy: ${closed_policy}`,
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
  ];
  socket.end(`${lines.join('\r\n')}\r\n\r\n${body}`);
  // Cut at once, what is unread makes the kernel reset the connection, and the answer is lost.
  const timer = setTimeout(() => socket.destroy(), linger_ms);
  socket.on('close', () => clearTimeout(timer));
  socket.on('error', () => {});
  socket.resume();
}
