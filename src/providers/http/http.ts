import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import { isObject, type Json, type JsonObject, type ProviderConfig } from '../../catalog/model.ts';
import { readBytes } from '../../lib/read-bytes.ts';
import { TokenBucket, type RateClock, type RateLimit } from '../../concurrency/token-bucket.ts';
import type { BodyStream } from './multipart-stream.ts';
import { openConnections, readRefusal, unreached, type Connections } from './connections.ts';
import type { Authorize } from './authorize.ts';
import { openCredentials } from './credentials.ts';
import { ownTexts } from './own-texts.ts';
import { NotStarted, type RunState, type UpstreamParts } from '../provider.ts';
import { refusalError, retryAfter, runFailure, type Hints, type RunTrouble } from './refusal.ts';
import { closedFor } from './request-windows.ts';
import { traceHeaders } from '../../tracing/tracer.ts';

/** The HTTP of an upstream that makes media: one key, its own hosts, its rate limit. */
export type Upstream = {
  /**
   * One request; redirects and refusals are answers like any other. Throws NotStarted when a submit was not sent;
   * any other error means that nobody knows whether it was taken. `signal` closes the connection.
   */
  call(request: UpstreamRequest): Promise<Answer>;
  /**
   * A link that the upstream named, if the key may go there: to the origin of `base_url`, or by https to one
   * of `hosts`. Else undefined: the adapter makes the path from the run's id.
   */
  link(url: Json | undefined): string | undefined;
  /**
   * Returns the error of a submit whose response is no 2xx; its message does not contain our key. If a gateway lost the
   * response, it is neither NotStarted nor InputRefused: nobody knows whether there is a run.
   */
  refusal(answer: Answer, hints?: Hints): Error;
  /** A run that started and failed, in words that the caller may see. */
  failure(trouble: RunTrouble, hints?: Hints): RunState & { phase: 'failed' };
  /** Texts that no message may contain: the key, and the parts of one that has two. */
  readonly secrets: readonly string[];
  close(): Promise<void>;
};

export type UpstreamOptions = {
  /** Sent with every call: the key, a version. A function if they are made anew for each. */
  headers?: Record<string, string> | (() => Record<string, string>);
  /** Hosts beside that of `base_url` which get the key, by https: `api.example.com`, or `*.example.com` for any below. */
  hosts?: readonly string[];
  /** The limit of GET calls with this key. */
  rate_limit?: RateLimit;
};

export type UpstreamRequest = {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  query?: Record<string, string>;
  headers?: Record<string, string>;
  /** It is about a run that exists, as every GET is unless this says no: its failure tells nothing of the run. */
  is_read?: boolean;
  /** The limit of this call, instead of the upstream's; calls with the same limit share it. */
  rate_limit?: RateLimit;
  /** One of these four at most. `body` wants a `content-type` header. */
  json?: JsonObject;
  body?: Buffer;
  form?: FormData;
  stream?: BodyStream;
  signal: AbortSignal;
  /** More of a 2xx is an error. */
  answer_bytes_max?: number;
} & (
  | {
      /** Below the path of `base_url`, from its slash on, each part encoded. */
      path: string;
    }
  | {
      /** One that `link` gave. */
      url: string;
    }
);

export type Answer = {
  status: number;
  /** 2xx. */
  ok: boolean;
  /** By lower-case names, the first of each. */
  headers: Record<string, string | undefined>;
  bytes: Buffer;
  text(): string;
  /** Throws if the answer is no JSON: the HTML of a proxy, or half of it. */
  json(): Json;
  /** The same, and it has to be an object. */
  object(): JsonObject;
};

const connect_timeout_ms = 10_000;
/** Of a read: the time until its answer begins, and between two parts of that. A submit has the time of its route. */
const read_limits = { headersTimeout: 15_000, bodyTimeout: 30_000 };
const answer_bytes_max = 4_194_304;
/** Of a read without files in its answer: who sends a byte now and then keeps a place from others. */
const read_timeout_ms = 60_000;
/** Some say the whole input again beside what is wrong with it. */
const refusal_limits = { bytes_max: 2_097_152, wait_ms: 5_000 };

export function openUpstream(
  config: ProviderConfig & { base_url: string },
  parts: UpstreamParts,
  options: UpstreamOptions = {},
): Upstream {
  const base = new URL(config.base_url);
  const prefix = base.pathname.replace(/\/+$/, '');
  const connections = openConnections(parts.guard, config);
  const bucketOf = openBuckets(parts.rate_clock);
  const texts = ownTexts(config);
  const { secrets } = texts;
  const windows = new SubmitWindows();
  const authorize = openCredentials(config, parts);
  const link = (url: Json | undefined) => ownLink(url, base.origin, options.hosts ?? []);
  return {
    call: async (request) => {
      const is_read = request.is_read ?? request.method === 'GET';
      const target = 'path' in request ? below(base.origin + prefix, request.path) : new URL(request.url);
      if (link(target.href) === undefined) throw new Error('the upstream named an address that is not its own');
      for (const [name, value] of Object.entries(request.query ?? {})) target.searchParams.set(name, value);
      const bucket = is_read ? bucketOf(request.rate_limit ?? options.rate_limit) : undefined;
      await bucket?.take(request.signal);
      const is_submit = !is_read && (request.json ?? request.form ?? request.body ?? request.stream) !== undefined;
      if (is_submit) windows.check(target.pathname, request);
      const own = typeof options.headers === 'function' ? options.headers() : options.headers;
      const headers = texts.headers({ 'user-agent': 'Medley', ...own, ...request.headers, ...traceHeaders() });
      const path = texts.path(target.pathname + target.search);
      const place = { origin: target.origin, path, authorize };
      const answer = await exchange(connections, place, { ...request, headers, is_read });
      if (!answer.ok) bucket?.pause(pauseAfter(answer));
      if (answer.ok && is_submit) windows.note(target.pathname, request, answer);
      return answer;
    },
    link,
    refusal: (answer, hints) => {
      if (isLost(answer, hints)) return new Error(`answered ${answer.status}: the upstream may be at work on it`);
      return refusalError(refusalOf(answer), secrets, hints);
    },
    failure: (trouble, hints) => runFailure(trouble, secrets, hints),
    secrets,
    close: () => connections.close(),
  };
}

/** Statuses of a gateway that has not seen the upstream's answer. The last two are Cloudflare's. */
const lost_statuses = [502, 504, 520, 524];

/** Tells whether the upstream may have the run all the same. Where the answer is the result, only a late one was begun. */
function isLost({ status }: Answer, { is_synchronous = false }: Hints = {}): boolean {
  return is_synchronous ? status === 504 || status === 524 : lost_statuses.includes(status);
}

/**
 * Windows of submits that are used up, by the upstream's headers. Nobody asks before such a window ends: the refusal is
 * known, and goes the way of one that the upstream gave.
 */
class SubmitWindows {
  readonly #closed_until_ms = new Map<string, number>();

  /** Throws NotStarted if the window of such a submit is used up. */
  check(path: string, request: UpstreamRequest): void {
    const name = nameOf(path, request);
    const wait_ms = (this.#closed_until_ms.get(name) ?? 0) - performance.now();
    if (wait_ms <= 0) return void this.#closed_until_ms.delete(name);
    const options = { retry_after_ms: Math.ceil(wait_ms), wait_basis: 'window' } as const;
    throw new NotStarted('rate_limited', 'the requests of this minute are used up, by its headers', options);
  }

  note(path: string, request: UpstreamRequest, { headers }: Answer): void {
    const wait_ms = closedFor(headers, Date.now());
    if (wait_ms !== undefined) this.#closed_until_ms.set(nameOf(path, request), performance.now() + wait_ms);
  }
}

/** Upstreams count the requests of each model. */
function nameOf(path: string, { json, form }: UpstreamRequest): string {
  return `${path} ${String(json?.['model'] ?? form?.get('model') ?? '')}`;
}

/** An upstream's id is in the path: it must stay where it is put. */
function below(base: string, path: string): URL {
  const url = new URL(base + path);
  if (url.href.startsWith(`${base}/`) && !dots.test(path)) return url;
  throw new Error('a part of the path leads out of it');
}

const dots = /(?:^|\/)(?:\.|%2e){1,2}(?:\/|$)/i;

/** One bucket for each rate limit: what configuration alone drives may have several. */
function openBuckets(clock: RateClock | undefined): (limit: RateLimit | undefined) => TokenBucket | undefined {
  const buckets = new Map<string, TokenBucket>();
  return (limit) => {
    if (limit === undefined) return undefined;
    const name = `${limit.per_minute} ${limit.burst}`;
    const bucket = buckets.get(name) ?? new TokenBucket(limit, clock);
    buckets.set(name, bucket);
    return bucket;
  };
}

function ownLink(link: Json | undefined, origin: string, hosts: readonly string[]): string | undefined {
  if (typeof link !== 'string' || !URL.canParse(link)) return undefined;
  const url = new URL(link);
  if (url.username !== '' || url.password !== '') return undefined;
  if (url.origin === origin) return url.href;
  const is_own = url.protocol === 'https:' && url.port === '' && hosts.some((host) => fits(url.hostname, host));
  return is_own ? url.href : undefined;
}

function fits(hostname: string, host: string): boolean {
  return host.startsWith('*.') ? hostname.endsWith(host.slice(1)) : hostname === host;
}

/** A poll that was refused for its rate is a word to all polls of this key; without that word there is no pause. */
function pauseAfter(answer: Answer): number {
  const says_wait = answer.status === 429 || answer.headers['retry-after'] !== undefined;
  return says_wait ? retryAfter(refusalOf(answer)) : 0;
}

function refusalOf({ status, headers, bytes }: Answer) {
  const window_ms = closedFor(headers, Date.now());
  return { status, retry_after: headers['retry-after'], window_ms, body: bytes.toString('utf8') };
}

async function exchange(
  connections: Connections,
  target: { origin: string; path: string; authorize: Authorize | undefined },
  request: UpstreamRequest & { is_read: boolean },
): Promise<Answer> {
  const { method, stream, is_read } = request;
  const signal =
    is_read && request.answer_bytes_max === undefined
      ? AbortSignal.any([request.signal, AbortSignal.timeout(read_timeout_ms)])
      : request.signal;
  const own_headers = { ...request.headers };
  if (request.json !== undefined) own_headers['content-type'] = 'application/json';
  const { origin, authorize } = target;
  const is_streamed = stream !== undefined && authorize === undefined;
  const bytes = is_streamed ? undefined : await bytesOf(request, own_headers);
  const { path = target.path, headers = own_headers } =
    (await authorize?.({ method, origin, path: target.path, headers: own_headers, body: bytes })) ?? {};
  // Asking twice does no harm; whatever else may be taken twice has a connection of its own.
  const pool = connections.to(origin, { connect_timeout_ms, keep_alive: method === 'GET' });
  const sent = is_streamed ? openBody(stream, headers) : { body: bytes ?? null, failure: () => undefined };
  const sending = pool.request({ path, method, headers, body: sent.body, signal, ...(is_read && read_limits) });
  const answer = await (is_read
    ? sending
    : sending.catch((error: unknown) => {
        throw sent.failure() ?? unreached(error);
      }));
  return readAnswer(answer, request.answer_bytes_max ?? answer_bytes_max);
}

/** The body of a request in memory: what is signed has to be there before it is sent. */
async function bytesOf(
  { json, body, form, stream }: UpstreamRequest,
  headers: Record<string, string>,
): Promise<Buffer | undefined> {
  if (json !== undefined) return Buffer.from(JSON.stringify(json));
  if (form) return encodeForm(form, headers);
  if (!stream) return body;
  headers['content-type'] = stream.content_type;
  return readBytes(stream.chunks(), stream.size_bytes);
}

/** A body that is made while it is sent. Where that fails nobody has a whole request: nothing was started. */
function openBody(stream: BodyStream, headers: Record<string, string>) {
  headers['content-type'] = stream.content_type;
  headers['content-length'] = String(stream.size_bytes);
  let failure: NotStarted | undefined;
  const chunks = async function* () {
    try {
      yield* stream.chunks();
    } catch (cause) {
      const message = 'a file of the input could not be read while it was sent';
      failure = new NotStarted('unavailable', message, { simulated: true, cause }); // health does not count it
      throw cause;
    }
  };
  return { body: Readable.from(chunks(), { objectMode: false }), failure: () => failure };
}

/** The form as bytes; the headers get its type, which names what stands between its parts. */
async function encodeForm(form: FormData, headers: Record<string, string>): Promise<Buffer> {
  const encoded = new Response(form);
  headers['content-type'] = encoded.headers.get('content-type') ?? '';
  return Buffer.from(await encoded.arrayBuffer());
}

async function readAnswer({ statusCode, headers, body }: Dispatcher.ResponseData, bytes_max: number): Promise<Answer> {
  const ok = statusCode >= 200 && statusCode < 300;
  const bytes = ok ? await readBytes(body, bytes_max) : await readRefusal(body, refusal_limits);
  const first = Object.entries(headers).map(([name, value]) => [name, [value].flat()[0]] as const);
  let parsed: { value: Json } | undefined; // an answer with files has megabytes, and is asked for several of its parts
  const json = (): Json => (parsed ??= { value: JSON.parse(bytes.toString('utf8')) }).value;
  return {
    status: statusCode,
    ok,
    headers: Object.fromEntries(first),
    bytes,
    text: () => bytes.toString('utf8'),
    json,
    object: () => {
      const value = json();
      if (isObject(value)) return value;
      throw new Error('the answer is no JSON object');
    },
  };
}
