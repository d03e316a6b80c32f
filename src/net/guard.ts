import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { connect as netConnect, isIP, type Socket } from 'node:net';
import { Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { connect as tlsConnect, type SecureContext } from 'node:tls';
import { addressAllowed, checkUserUrl, hostOf, isLocalName, not_public, type AddressRules } from './address.ts';
import { ChunkBuffer } from '../lib/chunk-buffer.ts';
import { systemResolve, type Resolve } from './resolve.ts';
import { secureContextOf, type DialOptions, type TlsParts } from './dial-options.ts';
import { openTunnel, proxyHeaders, TunnelError } from './proxy-tunnel.ts';

/** The phase in which a guarded request failed. `answer`: the status was not the wanted one. */
export type GuardCode =
  | 'address_refused'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'timeout'
  | 'reset'
  | 'protocol'
  | 'too_large'
  | 'answer';

/** Failure of a guarded request; `message` is for people and reveals nothing that is not in the URL. */
export class GuardError extends Error {
  override name = 'GuardError';
  readonly code: GuardCode;
  readonly status: number | undefined;

  constructor(code: GuardCode, message: string, options: { status?: number; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.code = code;
    this.status = options.status;
  }
}

type Limits = {
  rules: AddressRules;
  /** The time for the name, the connection and TLS together. */
  connect_timeout_ms: number;
  /** For all of it. */
  timeout_ms: number;
  /** The caller's own reason to stop: rejects with the signal's reason. */
  signal?: AbortSignal | undefined;
  dial_options?: DialOptions | undefined;
};

export type ConnectOptions = Pick<Limits, 'rules' | 'connect_timeout_ms' | 'dial_options'>;

export type SendOptions = Limits & {
  method: 'POST' | 'PUT' | 'GET';
  headers: Record<string, string>;
  body?: Buffer;
  /** More of the answer is not read. */
  answer_bytes_max: number;
};

export type GuardAnswer = { status: number; headers: IncomingHttpHeaders; answer: Buffer };

export type DownloadOptions = Limits & {
  /** Kept to the origin of the URL: a redirect to another one loses them. */
  headers?: Record<string, string>;
  idle_timeout_ms: number;
  size_bytes_max: number;
  redirects_max: number;
};

export type SavedFile = { size_bytes: number; content_type: string | undefined };

export type DownloadedFile = { bytes: Buffer; content_type: string | undefined };

/**
 * Requests to addresses that a user or an upstream chose. The URL is judged, its name is resolved once,
 * every address of it must be allowed, the connection goes to one of these, and what was dialled is
 * judged again. Each request has a connection of its own: none is shared between accounts, none outlives
 * a change of the rules, none is closed by its peer just when it is used again. A proxy is used only where an operator
 * has named one (`dial_options`).
 */
export type Guard = {
  /** One request; redirects are answers like any other. Rejects with GuardError. */
  send(url: string, options: SendOptions): Promise<GuardAnswer>;
  /** Fetches a file into memory, following redirects, each judged anew. Rejects with GuardError. */
  download(url: string, options: DownloadOptions): Promise<DownloadedFile>;
  /** The same into `file`, which is at its end then, or destroyed. Rejects with GuardError, or with the file's error. */
  save(url: string, file: Writable, options: DownloadOptions): Promise<SavedFile>;
  /** A connection for a client of one's own, judged and dialled like every other. Rejects with GuardError. */
  connect(url: string, options: ConnectOptions): Promise<Socket>;
};

const header_bytes_max = 16_384;

/** "100 Continue" and the like before an answer: without a bound they could keep us parsing for the whole time. */
const preludes_max = 10;

export function openGuard(options: { resolve?: Resolve } = {}): Guard {
  const resolve = options.resolve ?? systemResolve();
  return {
    send: (url, request_options) => send(resolve, url, request_options),
    download: (url, request_options) => download(resolve, url, request_options),
    save: (url, file, request_options) => save(resolve, url, file, request_options),
    connect: async (url, request_options) => {
      const limits = { ...request_options, timeout_ms: request_options.connect_timeout_ms };
      const clock = startClock(limits);
      try {
        return await connect(resolve, judge(url, request_options.rules), limits, clock);
      } finally {
        clock.stop();
      }
    },
  };
}

async function send(resolve: Resolve, url: string, options: SendOptions): Promise<GuardAnswer> {
  const clock = startClock(options);
  try {
    const response = await request(resolve, judge(url, options.rules), options, clock);
    const answer = await readUpTo(response, options.answer_bytes_max, clock);
    return { status: response.statusCode ?? 0, headers: response.headers, answer };
  } finally {
    clock.stop();
  }
}

async function download(resolve: Resolve, url: string, options: DownloadOptions): Promise<DownloadedFile> {
  const chunks = new ChunkBuffer();
  const memory = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  const { content_type } = await save(resolve, url, memory, options);
  return { bytes: chunks.whole(), content_type };
}

async function save(resolve: Resolve, first: string, file: Writable, options: DownloadOptions): Promise<SavedFile> {
  const clock = startClock(options);
  try {
    let url = first;
    for (let redirects = 0; ; redirects++) {
      const target = judge(url, options.rules);
      const headers = target.origin === new URL(first).origin ? options.headers : {};
      const get_options = { ...options, method: 'GET', headers: { ...headers, 'accept-encoding': 'identity' } };
      const response = await request(resolve, target, get_options, clock);
      const next = redirectOf(response, url);
      if (next === undefined) return await saveFile(response, file, options, clock);
      response.destroy();
      if (redirects === options.redirects_max) throw new GuardError('protocol', 'There were too many redirects.');
      url = next;
    }
  } finally {
    clock.stop();
    if (!file.writableFinished) file.destroy();
  }
}

/** Returns the target of a redirect; never from https to http. */
function redirectOf(response: IncomingMessage, url: string): string | undefined {
  const { statusCode = 0, headers } = response;
  if (![301, 302, 303, 307, 308].includes(statusCode) || headers.location === undefined) return undefined;
  if (!URL.canParse(headers.location, url)) throw new GuardError('protocol', 'The redirect leads nowhere.');
  const next = new URL(headers.location, url);
  if (url.startsWith('https:') && next.protocol !== 'https:')
    throw new GuardError('protocol', 'The redirect leads from https to another protocol.');
  return next.href;
}

async function saveFile(
  response: IncomingMessage,
  file: Writable,
  options: DownloadOptions,
  clock: Clock,
): Promise<SavedFile> {
  const { statusCode: status = 0, headers } = response;
  if (status !== 200) {
    response.destroy();
    throw new GuardError('answer', `The address answered ${status}.`, { status });
  }
  const saved = { size_bytes: 0, content_type: headers['content-type'] };
  await pipeline(limited(response, saved, options, clock), file);
  return saved;
}

/** The body's chunks, counted, as long as they keep coming and are not too many. */
async function* limited(
  response: IncomingMessage,
  saved: SavedFile,
  { idle_timeout_ms, size_bytes_max }: DownloadOptions,
  clock: Clock,
): AsyncGenerator<Buffer> {
  const declared_bytes = Number(response.headers['content-length'] ?? 0);
  const idle = () => clock.expire(new GuardError('timeout', 'The address stopped sending.'));
  let timer = setTimeout(idle, idle_timeout_ms);
  try {
    for await (const chunk of arriving(response, clock)) {
      clearTimeout(timer); // how long the file takes it is not the address's fault
      saved.size_bytes += chunk.length;
      if (Math.max(saved.size_bytes, declared_bytes) > size_bytes_max)
        throw new GuardError('too_large', `The file is larger than ${size_bytes_max} bytes.`);
      yield chunk;
      timer = setTimeout(idle, idle_timeout_ms);
    }
  } finally {
    clearTimeout(timer);
  }
}

async function readUpTo(response: IncomingMessage, bytes_max: number, clock: Clock): Promise<Buffer> {
  const chunks = new ChunkBuffer();
  for await (const chunk of arriving(response, clock)) {
    chunks.push(chunk);
    if (chunks.size_bytes >= bytes_max) break;
  }
  return chunks.whole().subarray(0, bytes_max);
}

/** The body's chunks as they come; the connection is closed in any case. */
async function* arriving(response: IncomingMessage, clock: Clock): AsyncGenerator<Buffer> {
  clock.onExpiry((reason) => response.destroy(reason));
  try {
    for await (const chunk of response) yield chunk;
  } catch (error) {
    if (clock.signal.aborted) throw error;
    throw new GuardError('reset', 'The connection was closed in the middle of the answer.', { cause: error });
  }
}

type RequestOptions = Limits & { method: string; headers: Record<string, string>; body?: Buffer };

function judge(url: string, rules: AddressRules): URL {
  const problem = checkUserUrl(url, rules);
  if (problem)
    throw problem === not_public ? addressRefused() : new GuardError('address_refused', `The address ${problem}`);
  return new URL(url);
}

/** Resolves with the answer's head. */
async function request(resolve: Resolve, target: URL, options: RequestOptions, clock: Clock): Promise<IncomingMessage> {
  const socket = await connect(resolve, target, options, clock);
  const { proxy: proxy_url } = options.dial_options ?? {};
  const proxy = target.protocol === 'http:' && proxy_url !== undefined && new URL(proxy_url);
  return new Promise((answered, failed) => {
    const outgoing = httpRequest({
      method: options.method,
      path: proxy ? target.href : target.pathname + target.search,
      headers: {
        ...options.headers,
        ...(proxy && proxyHeaders(proxy)),
        host: target.host,
        connection: 'close',
        ...lengthOf(options.body),
      },
      createConnection: () => socket,
      maxHeaderSize: header_bytes_max,
    });
    const fail = (error: Error) => {
      failed(error);
      outgoing.destroy();
    };
    clock.onExpiry(fail);
    outgoing.on('error', (error) => fail(asGuardError(error)));
    outgoing.on('response', answered);
    let preludes = 0;
    outgoing.on('information', () => {
      preludes += 1;
      if (preludes > preludes_max) fail(new GuardError('protocol', 'The response of the address does not end.'));
    });
    outgoing.on('upgrade', () => fail(new GuardError('protocol', 'The address requires another protocol.')));
    outgoing.end(options.body);
  });
}

function lengthOf(body: Buffer | undefined): Record<string, string> {
  return body ? { 'content-length': String(body.length) } : {};
}

function asGuardError(error: Error): GuardError {
  const code = 'code' in error ? String(error.code) : '';
  if (code.startsWith('HPE_')) return new GuardError('protocol', 'The answer is no HTTP.', { cause: error });
  return new GuardError('reset', 'The connection was closed before an answer came.', { cause: error });
}

/** A connection to an address that may be dialled, with TLS for https. */
async function connect(
  resolve: Resolve,
  target: URL,
  { rules, connect_timeout_ms, dial_options = {} }: Limits,
  clock: Clock,
): Promise<Socket> {
  const phase = startClock({ timeout_ms: connect_timeout_ms, signal: clock.signal });
  try {
    const { proxy, tls } = dial_options;
    const socket =
      proxy === undefined
        ? await reach(resolve, target, rules, phase)
        : await reachByProxy(resolve, target, rules, { ...dial_options, proxy: new URL(proxy) }, phase);
    return target.protocol === 'https:' ? await phase.race(secure(socket, hostOf(target), phase, tls)) : socket;
  } finally {
    phase.stop();
  }
}

/** A connection to one of the addresses of a host. */
async function reach(resolve: Resolve, target: URL, rules: AddressRules, phase: Clock): Promise<Socket> {
  const name = hostOf(target); // without the root's dot, which has no place in TLS
  const addresses = allowedOf(name, isIP(name) ? [name] : await phase.race(resolveAll(resolve, name)), rules);
  const socket = await phase.race(dial(addresses, portOf(target), phase));
  if (addressAllowed(socket.remoteAddress ?? '', rules)) return socket;
  socket.destroy();
  throw addressRefused();
}

function portOf({ port, protocol }: URL): number {
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}

/** Proxies are in the operator's own network, but none is a metadata service. */
const proxy_rules: AddressRules = { allow: [], allow_private: true };

/** A connection to the proxy, and for https through it; the target is judged before as if it were dialled from here. */
async function reachByProxy(
  resolve: Resolve,
  target: URL,
  rules: AddressRules,
  { proxy, proxy_resolves = false }: Omit<DialOptions, 'proxy'> & { proxy: URL },
  phase: Clock,
): Promise<Socket> {
  const name = hostOf(target);
  const addresses = isIP(name)
    ? [name]
    : await phase.race(resolveAll(resolve, name)).catch((error: unknown) => {
        if (proxy_resolves && error instanceof GuardError && error.code === 'dns') return undefined;
        throw error;
      });
  if (addresses) allowedOf(name, addresses, rules);
  try {
    const plain = await reach(resolve, proxy, proxy_rules, phase);
    const socket = proxy.protocol === 'https:' ? await phase.race(secure(plain, hostOf(proxy), phase)) : plain;
    if (target.protocol === 'http:') return socket;
    const place = `${target.hostname.replace(/\.$/, '')}:${portOf(target)}`;
    return await phase.race(openTunnel(socket, proxy, place, phase.onExpiry));
  } catch (error) {
    throw proxyError(error);
  }
}

function proxyError(error: unknown): unknown {
  const begin = 'The proxy of this provider could not be used: ';
  if (error instanceof TunnelError) {
    const status = error.status === undefined ? {} : { status: error.status };
    return new GuardError('connect', `${begin}${error.message}.`, { ...status, cause: error });
  }
  if (!(error instanceof GuardError)) return error;
  const code = error.code === 'address_refused' ? 'connect' : error.code;
  return new GuardError(code, begin + error.message, { cause: error });
}

/**
 * One address that is not allowed spoils a name: its owner may have any other reason to mix them than a
 * good one. Only localhost is our own word, of which `net.allow` may name one half.
 */
function allowedOf(name: string, addresses: readonly string[], rules: AddressRules): string[] {
  const allowed = addresses.filter((address) => addressAllowed(address, rules));
  if (allowed.length === 0 || (allowed.length < addresses.length && !isLocalName(name))) throw addressRefused();
  return allowed;
}

function addressRefused(): GuardError {
  return new GuardError(
    'address_refused',
    'The address is private, local or reserved: it must be reachable from the internet.',
  );
}

async function resolveAll(resolve: Resolve, name: string): Promise<string[]> {
  const addresses = await resolve(name).catch((error: unknown) => {
    throw new GuardError('dns', 'The name of the host could not be resolved.', { cause: error });
  });
  if (addresses.length === 0) throw new GuardError('dns', 'The name of the host has no address.');
  return addresses;
}

/** The first address that can be connected to, in their order. */
async function dial(addresses: readonly string[], port: number, phase: Clock): Promise<Socket> {
  let failure: unknown;
  for (const [i, address] of addresses.entries()) {
    const share_ms = phase.left_ms() / (addresses.length - i);
    try {
      return await dialOne(address, port, share_ms, phase);
    } catch (error) {
      failure = error;
    }
  }
  if (failure instanceof GuardError) throw failure;
  throw new GuardError('connect', 'No connection to the address could be made.', { cause: failure });
}

function dialOne(host: string, port: number, timeout_ms: number, phase: Clock): Promise<Socket> {
  return new Promise((connected, failed) => {
    const socket = netConnect({ host, port, autoSelectFamily: false, noDelay: true });
    const fail = (error: Error) => {
      failed(error);
      socket.destroy();
    };
    const timer = setTimeout(() => fail(timedOut()), timeout_ms);
    phase.onExpiry(fail);
    socket.once('connect', () => {
      clearTimeout(timer);
      connected(socket);
    });
    socket.once('error', (error) => {
      clearTimeout(timer);
      fail(error);
    });
  });
}

async function secure(plain: Socket, name: string, phase: Clock, tls?: TlsParts): Promise<Socket> {
  const context = tls && { secureContext: contextOf(tls) };
  return new Promise((secured, failed) => {
    const servername = tls?.server_name ?? (isIP(name) ? '' : name);
    const socket = tlsConnect({
      socket: plain,
      host: name,
      servername,
      ALPNProtocols: ['http/1.1'],
      ...context,
    });
    phase.onExpiry(() => socket.destroy());
    socket.once('secureConnect', () => secured(socket));
    socket.once('error', (error) => {
      failed(
        new GuardError('tls', 'The connection could not be secured: the certificate must be valid for the host.', {
          cause: error,
        }),
      );
      socket.destroy();
    });
  });
}

function contextOf(tls: TlsParts): SecureContext {
  try {
    return secureContextOf(tls);
  } catch (error) {
    throw new GuardError('tls', 'The certificate for this connection cannot be used.', { cause: error });
  }
}

function timedOut(): GuardError {
  return new GuardError('timeout', 'The address did not answer in time.');
}

/** Bounds of a phase: its time, and the caller's signal. `onExpiry` tells the running step. */
type Clock = {
  readonly signal: AbortSignal;
  left_ms(): number;
  /** Called once, at once if it is over already; a later phase takes the place of an earlier one. */
  onExpiry(fail: (reason: Error) => void): void;
  expire(reason: Error): void;
  race<T>(work: Promise<T>): Promise<T>;
  stop(): void;
};

function startClock({ timeout_ms, signal }: { timeout_ms: number; signal?: AbortSignal | undefined }): Clock {
  const end_at_ms = performance.now() + timeout_ms;
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(timedOut()), timeout_ms);
  const pass = () => over.abort(signal?.reason);
  if (signal?.aborted) pass();
  signal?.addEventListener('abort', pass, { once: true });
  let listener: (() => void) | undefined;
  const reason = (): Error => (over.signal.reason instanceof Error ? over.signal.reason : new Error('aborted'));
  const clock: Clock = {
    signal: over.signal,
    left_ms: () => Math.max(0, end_at_ms - performance.now()),
    onExpiry: (fail) => {
      if (listener) over.signal.removeEventListener('abort', listener);
      listener = () => fail(reason());
      if (over.signal.aborted) listener();
      else over.signal.addEventListener('abort', listener, { once: true });
    },
    expire: (why) => over.abort(why),
    race: (work) =>
      new Promise((resolve, reject) => {
        if (over.signal.aborted) reject(reason());
        over.signal.addEventListener('abort', () => reject(reason()), { once: true });
        work.then(resolve, reject);
      }),
    stop: () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', pass);
    },
  };
  return clock;
}
