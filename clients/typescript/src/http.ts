import { ApiError, ConnectionError, errorOfAnswer, isErrorType, MedleyError, RequestTimeoutError } from './errors.ts';

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

/** Options of every call. */
export type CallOptions = {
  /** Ends the call, its retries and its waiting; the call rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** Milliseconds for one attempt; without it, those of the client. */
  timeout_ms?: number | undefined;
  /** Further attempts after the first; without it, those of the client. */
  max_retries?: number | undefined;
  /** Repeats after a 429, 502, 503 and 504, too, as it does after a lost answer; true unless set. */
  repeat_refusals?: boolean | undefined;
};

export type QueryValue = string | number | Date | Readonly<Record<string, string>> | readonly string[] | undefined;

export type HttpRequest = {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  /** Below the base URL, or a whole address, to which the key is not sent. */
  path: string;
  query?: Readonly<Record<string, QueryValue>>;
  headers?: Readonly<Record<string, string>>;
  /** Makes the body of an attempt. */
  body?: () => RequestBody | Promise<RequestBody>;
  /** Safe to send again after an answer was lost. */
  is_repeatable: boolean;
  /** Safe to send again after an error of the service, which charges nothing then, though not after a lost answer. */
  repeats_errors?: boolean;
  /** The body cannot be made again. */
  has_one_attempt?: boolean;
  /** Seconds that the service may wait before it answers, beside `timeout_ms`. */
  wait_s?: number;
  /** Milliseconds for one attempt, unless the call or the client has others. */
  usual_timeout_ms?: number;
  /** The answer of an attempt is awaited after an abort, too; what was lost is sent again. */
  outlives_abort?: boolean;
};

export type RequestBody = string | FormData | ReadableStream<Uint8Array>;

export type HttpSettings = {
  base_url: string;
  api_key: string;
  fetch: Fetch;
  max_retries: number;
  /** Undefined: that of each request. */
  timeout_ms: number | undefined;
};

const usual_timeout_ms = 60_000;

const retried_statuses = [429, 502, 503, 504];

/** A pause of the service that is longer is the caller's to decide about. */
const retry_after_ms_max = 120_000;
const backoff_ms = { first: 500, most: 8_000 };

/** Sends requests, again where that is safe and may help. */
export class Http {
  readonly #settings: HttpSettings;

  constructor(settings: HttpSettings) {
    this.#settings = settings;
  }

  /** Returns what `read` makes of a good answer. Throws ApiError, ConnectionError, or the reason of the signal. */
  async send<T>(request: HttpRequest, options: CallOptions, read: (response: Response) => Promise<T>): Promise<T> {
    const retries_max = request.has_one_attempt ? 0 : (options.max_retries ?? this.#settings.max_retries);
    const { signal } = options;
    for (let retries = 0, is_lost = false; ; retries++) {
      if (!(request.outlives_abort && is_lost)) signal?.throwIfAborted();
      try {
        return await this.#attempt(request, options, read);
      } catch (error) {
        if (signal?.aborted && !request.outlives_abort) throw signal.reason;
        if (error instanceof ApiError) error.follows_lost_answer = is_lost;
        if (error instanceof ConnectionError) is_lost = true;
        const pause_ms = pauseBefore(request, options, error, retries);
        if (pause_ms === undefined || retries >= retries_max) throw error;
        await pause(pause_ms, request.outlives_abort && is_lost ? undefined : signal);
      }
    }
  }

  async #attempt<T>(request: HttpRequest, options: CallOptions, read: (response: Response) => Promise<T>): Promise<T> {
    const timeout_ms = this.timeoutOf(request, options) + (request.wait_s ?? 0) * 1000;
    const body = await request.body?.();
    const controller = new AbortController();
    let is_late = false;
    const timer = setTimeout(() => {
      is_late = true;
      controller.abort();
    }, timeout_ms);
    const signal = request.outlives_abort ? undefined : options.signal;
    const onAbort = () => controller.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const response = await this.#settings.fetch(this.#url(request), this.#init(request, body, controller.signal));
      if (!response.ok) throw errorOfAnswer(response.status, response.headers, await response.text());
      return await read(response);
    } catch (error) {
      if (error instanceof MedleyError || signal?.aborted) throw error;
      if (is_late) throw new RequestTimeoutError(`No complete answer came within ${timeout_ms} ms.`, { cause: error });
      throw new ConnectionError('The connection to the service failed.', { cause: error });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
    }
  }

  timeoutOf(request: HttpRequest, options: CallOptions): number {
    return options.timeout_ms ?? this.#settings.timeout_ms ?? request.usual_timeout_ms ?? usual_timeout_ms;
  }

  #url({ path, query = {} }: HttpRequest): string {
    if (!path.startsWith('/')) return path;
    const pairs = Object.entries(query).flatMap(([name, value]) => pairsOf(name, value));
    const text = new URLSearchParams(pairs).toString();
    return `${this.#settings.base_url}${path}${text === '' ? '' : `?${text}`}`;
  }

  #init(request: HttpRequest, body: RequestBody | undefined, signal: AbortSignal): RequestInit {
    const is_own = request.path.startsWith('/');
    return {
      method: request.method,
      headers: { ...(is_own && { authorization: `Bearer ${this.#settings.api_key}` }), ...request.headers },
      signal,
      // A redirect would turn a POST into a GET. Results may be elsewhere, in a bucket.
      redirect: is_own ? 'error' : 'follow',
      ...(body !== undefined && { body }),
      ...(body instanceof ReadableStream && { duplex: 'half' }),
    };
  }
}

function pairsOf(name: string, value: QueryValue): [string, string][] {
  if (value === undefined) return [];
  if (typeof value === 'string' || typeof value === 'number') return [[name, String(value)]];
  if (value instanceof Date) return [[name, value.toISOString()]];
  if (isTexts(value)) return [[name, value.join(',')]];
  return Object.entries(value).map(([key, text]): [string, string] => [`${name}[${key}]`, text]);
}

function isTexts(value: object): value is readonly string[] {
  return Array.isArray(value);
}

/** Returns the milliseconds to wait before the next attempt; undefined if there must be none. */
function pauseBefore(
  { is_repeatable, repeats_errors = false }: HttpRequest,
  { repeat_refusals = true }: CallOptions,
  error: unknown,
  retries: number,
): number | undefined {
  const usual_ms = Math.min(backoff_ms.most, backoff_ms.first * 2 ** retries) * (0.75 + Math.random() / 4);
  if (error instanceof ConnectionError) return is_repeatable ? usual_ms : undefined;
  if (!(error instanceof ApiError) || error.headers.get('x-should-retry') === 'false') return undefined;
  const asked_ms = retryAfter(error.headers.get('retry-after'));
  // The same Idempotency-Key is at work: an earlier attempt has not been answered yet.
  const is_in_flight = error.status === 409 && asked_ms !== undefined;
  if (!repeat_refusals && !is_in_flight) return undefined;
  const is_refused = error.status === 429;
  // Behind the 504 of a proxy the service may be at work still.
  const is_safe = is_repeatable || (repeats_errors && isErrorType(error.type));
  if (!is_in_flight && !is_refused && !(is_safe && retried_statuses.includes(error.status))) return undefined;
  if (asked_ms !== undefined && asked_ms > retry_after_ms_max) return undefined;
  return asked_ms ?? usual_ms;
}

/** Returns milliseconds for the seconds or the date of the header. */
function retryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date_ms = Date.parse(value);
  return Number.isNaN(date_ms) ? undefined : Math.max(0, date_ms - Date.now());
}

/** Rejects with the reason of the signal as soon as it is aborted. */
export function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      if (signal?.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end, { once: true });
    if (signal?.aborted) end();
  });
}

/** Returns the JSON of an answer, which `types.ts` describes: a test compares them with the service. */
export async function readJson<T>(response: Response): Promise<T> {
  const text = await response.text();
  try {
    const value: T = JSON.parse(text);
    return value;
  } catch {
    throw new MedleyError('The answer is not JSON. Is base_url the address of a Medley service?');
  }
}

/** Returns the id as one segment of a path. */
export function segment(id: string): string {
  if (id === '' || id === '.' || id === '..') throw new MedleyError(`${JSON.stringify(id)} is not an id.`);
  return encodeURIComponent(id);
}
