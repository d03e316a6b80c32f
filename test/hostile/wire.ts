import { connect, type Socket } from 'node:net';

/** An answer as it came over the wire, cut out of the bytes by this file and not by an HTTP library. */
export type Reply = { status: number; headers: Map<string, string>; body: Buffer };

/** Nothing may hang: an answer that takes longer than this is a finding, also on a machine that is busy otherwise. */
const patience_ms = 60_000;

const large_bytes = 1_000_000;
const pause_ms = 20;

type Waiting = { no_body: boolean; resolve: (reply: Reply) => void; reject: (error: Error) => void };

/** One connection at a time to the service; takes any bytes, says what came back. */
export class Wire {
  readonly #port: number;
  readonly #from: string;
  #socket: Socket | undefined;
  #received: Buffer = Buffer.alloc(0);
  #pieces: Buffer[] = [];
  #pieces_bytes = 0;
  #look_timer: NodeJS.Timeout | undefined;
  #waiting: Waiting | undefined;

  /** `from`: an address of this machine. */
  constructor(port: number, from = '127.0.0.1') {
    this.#port = port;
    this.#from = from;
  }

  /** Sends one request and resolves to its answer; rejects if there is none, or not in time. */
  async exchange(bytes: Buffer, no_body: boolean): Promise<Reply> {
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    this.#waiting = { no_body, resolve, reject };
    const timer = setTimeout(() => reject(new Error(`no answer within ${patience_ms / 1000} s`)), patience_ms);
    this.#open().write(bytes);
    try {
      return await promise;
    } catch (error) {
      this.close();
      throw error;
    } finally {
      clearTimeout(timer);
      this.#waiting = undefined;
    }
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = undefined;
    this.#received = Buffer.alloc(0);
    this.#pieces = [];
    this.#pieces_bytes = 0;
    clearTimeout(this.#look_timer);
  }

  #open(): Socket {
    if (this.#socket && !this.#socket.destroyed && !this.#socket.readableEnded) return this.#socket;
    this.close();
    const socket = connect({ port: this.#port, host: '127.0.0.1', localAddress: this.#from });
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      if (socket !== this.#socket) return;
      this.#pieces.push(Buffer.from(chunk));
      this.#pieces_bytes += chunk.length;
      this.#lookSoon();
    });
    socket.on('close', () => socket === this.#socket && this.#look(true));
    return socket;
  }

  /** Answers of megabytes are put together once they have come, not with each piece. */
  #lookSoon(): void {
    clearTimeout(this.#look_timer);
    if (this.#received.length + this.#pieces_bytes < large_bytes) this.#look(false);
    else this.#look_timer = setTimeout(() => this.#look(false), pause_ms);
  }

  #look(ended: boolean): void {
    this.#received = Buffer.concat([this.#received, ...this.#pieces]);
    this.#pieces = [];
    this.#pieces_bytes = 0;
    const waiting = this.#waiting;
    if (!waiting) return;
    const reply = cutReply(this.#received, waiting.no_body, ended);
    if (!reply) {
      if (ended) waiting.reject(new Error(`closed without an answer (${this.#received.length} bytes)`));
      return;
    }
    this.#received = this.#received.subarray(reply.length);
    if (ended || reply.reply.headers.get('connection') === 'close') this.close();
    waiting.resolve(reply.reply);
  }
}

/** The first final answer in `bytes` and where it ends; undefined if it is not there in whole. */
function cutReply(bytes: Buffer, no_body: boolean, ended: boolean): { reply: Reply; length: number } | undefined {
  const head_end = bytes.indexOf('\r\n\r\n');
  if (head_end === -1) return undefined;
  const [status_line = '', ...lines] = bytes.toString('latin1', 0, head_end).split('\r\n');
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(status_line)?.[1]);
  const headers = new Map(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const start = head_end + 4;
  if (status >= 100 && status < 200) {
    const next = cutReply(bytes.subarray(start), no_body, ended);
    return next && { reply: next.reply, length: start + next.length };
  }
  const body = cutBody(bytes.subarray(start), status, headers, no_body, ended);
  return body && { reply: { status, headers, body: body.bytes }, length: start + body.length };
}

function cutBody(
  rest: Buffer,
  status: number,
  headers: Map<string, string>,
  no_body: boolean,
  ended: boolean,
): { bytes: Buffer; length: number } | undefined {
  if (no_body || status === 204 || status === 304) return { bytes: Buffer.alloc(0), length: 0 };
  if (headers.get('transfer-encoding') === 'chunked') return cutChunks(rest);
  const size = headers.get('content-length');
  if (size === undefined) return ended ? { bytes: rest, length: rest.length } : undefined;
  return rest.length < Number(size)
    ? undefined
    : { bytes: Buffer.from(rest.subarray(0, Number(size))), length: Number(size) };
}

function cutChunks(rest: Buffer): { bytes: Buffer; length: number } | undefined {
  const chunks: Buffer[] = [];
  for (let at = 0; ;) {
    const line_end = rest.indexOf('\r\n', at);
    if (line_end === -1) return undefined;
    const size = Number.parseInt(rest.toString('latin1', at, line_end), 16);
    const next = line_end + 2 + size + 2;
    if (next > rest.length) return undefined;
    if (size === 0) return { bytes: Buffer.concat(chunks), length: next };
    chunks.push(rest.subarray(line_end + 2, line_end + 2 + size));
    at = next;
  }
}

/** Every answer in what a connection has sent. Only for answers that have a body or a length. */
export function cutReplies(bytes: Buffer): Reply[] {
  const replies: Reply[] = [];
  for (let rest = bytes; rest.length > 0;) {
    const reply = cutReply(rest, false, true);
    if (!reply) break;
    replies.push(reply.reply);
    rest = rest.subarray(reply.length);
  }
  return replies;
}
