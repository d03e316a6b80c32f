import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { key_headers, type Caller } from '../accounts/authenticate.ts';
import { checkKeyRules } from '../accounts/key-rules.ts';
import { checkLimitedKey } from '../accounts/limited-keys.ts';
import { ApiError, service_errors } from '../errors.ts';
import { SpoolError } from '../files/spool.ts';
import { StorageUnavailable } from '../storage/storage.ts';
import { assert } from '../lib/assert.ts';
import { newId } from '../lib/ids.ts';
import type { WindowName } from '../limits/window.ts';
import { noteRefusal } from '../money/refusals.ts';
import { sendAnswer, sendBytes } from './answer.ts';
import { closed_policy } from './browser-headers.ts';
import { takeBodyMemory } from './body-memory.ts';
import { openBodyStream, type BodyStreamReader } from './body-stream.ts';
import { discardRest, megabyte, readBody } from './body.ts';
import { corsHeaders, preflightHeaders } from './cors.ts';
import type { Answer, Endpoint, PublicCall, Query, SessionEndpoint } from './endpoint.ts';
import { errorAnswer, expectedError, formatOfPath, internalError } from './error-answer.ts';
import { Exchange } from './exchange.ts';
import { framingError, isBehindRefused } from './framing.ts';
import { isForm, openForm, type FormReader } from './form.ts';
import { parseJsonObject } from './json.ts';
import type { PipelineOptions, Timeouts } from './options.ts';
import { parseQuery } from './query.ts';
import { isWithin } from '../net/address.ts';
import { decodePath, isBeta, type RouteTable } from './routes.ts';
import { scopesOf } from './scopes.ts';
import type { SocketErrors } from './socket-errors.ts';
import { passOn } from '../tracing/tracer.ts';
import { admitStranger } from './strangers.ts';
import { windowError, windowHeaders } from './window-headers.ts';

const url_length_max = 2048;
const default_body_limit_bytes = megabyte;

/** Everything that the steps of the pipeline share. */
export type Context<App> = PipelineOptions<App> & {
  timeouts: Timeouts;
  elapsed_ms: () => number;
  routes: RouteTable<App>;
  draining: AbortSignal;
  /** Aborted with an ApiError when a stop of the service closes the connections that are left. */
  cut: AbortSignal;
  socketErrors: SocketErrors;
  /** Requests that wait for `100 Continue` before they send their body. */
  expecting: WeakSet<IncomingMessage>;
};

/** First of all: an id, the headers of every answer, a line in the log when it is over; then `next`. */
export function receive<App>(
  context: Context<App>,
  request: IncomingMessage,
  response: ServerResponse,
  next: (exchange: Exchange) => Promise<void>,
): void {
  if (isBehindRefused(request)) return;
  const exchange = begin(context, request, response);
  const unframed = framingError(request);
  if (unframed) return sendError(context, exchange, unframed);
  const origins = context.cors_origins();
  if (origins.length > 0) {
    const preflight = preflightHeaders(origins, exchange.method, request.headers);
    Object.assign(exchange.headers, preflight ?? corsHeaders(origins, request.headers));
    if (preflight) return void response.writeHead(204, exchange.headers).end();
  }
  void traced(context, exchange, () => next(exchange));
}

/** Requests of the API are in traces; those of health checks, pages and their scripts are not. */
function traced<App>({ tracer, routes }: Context<App>, exchange: Exchange, work: () => Promise<void>): Promise<void> {
  if (!tracer || !routes.needsKey(exchange.path)) return work();
  const { method, id } = exchange;
  const { traceparent } = exchange.request.headers;
  const parent = typeof traceparent === 'string' ? traceparent : undefined;
  const attributes = { 'http.request.method': method, 'medley.request_id': id };
  const span = tracer.begin({ name: method, kind: 'server', attributes }, parent);
  if (!span) return parent === undefined ? work() : passOn(parent, work);
  exchange.span = span;
  return span.run(work);
}

/** The way of a request to a known endpoint; `path_values` are the parts of its path. */
export async function serve<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  exchange: Exchange,
  path_values: Record<string, string | undefined>,
): Promise<void> {
  const { request } = exchange;
  try {
    exchange.route = endpoint.path;
    setFormat(exchange, endpoint.format ?? service_errors);
    if (!endpoint.public && endpoint.session === undefined)
      await admitCaller(context, endpoint.window ?? 'other', exchange, endpoint);
    checkHead(request);
    exchange.params = paramsOf(context, endpoint, exchange, path_values);
    if (endpoint.session !== undefined) await admitPerson(context, endpoint, exchange);
    const declared = endpoint.docs.query ?? {};
    exchange.query = parseQuery(exchange.query_text, endpoint.lenient_query ? undefined : declared);
    if (endpoint.public) admitStranger(context, endpoint, new ReceivedCall(exchange, context));
    if (endpoint.method !== 'GET' && !endpoint.ignores_body) {
      const bytes = await readRequest(context, endpoint, exchange);
      if (bytes) takeBody(endpoint, exchange, bytes);
    }
    const answer = await callEndpoint(context, endpoint, exchange);
    exchange.forgetBody();
    if (endpoint.ignores_body) discardRest(request, context.timeouts.discard_ms);
    if (context.draining.aborted) exchange.headers['connection'] = 'close';
    sendAnswer(exchange.response, exchange.headers, answer, (error) => sendError(context, exchange, error));
  } catch (error) {
    sendError(context, exchange, error);
  } finally {
    exchange.letGo();
  }
}

/** A path or a method that no endpoint has. Below /v1 the key comes first, as everywhere. */
export async function serveUnknown<App>(context: Context<App>, exchange: Exchange): Promise<void> {
  const { path, method } = exchange;
  try {
    if (context.routes.needsKey(path)) await admitCaller(context, context.routes.windowOf(path), exchange);
    checkHead(exchange.request);
    refuseWebSocket(exchange.request);
    throw context.routes.unknown(method, path);
  } catch (error) {
    sendError(context, exchange, error);
  }
}

/**
 * Codex asks for a WebSocket first. It repeats that for seconds after any answer but 426, and asks by HTTP after this one
 * (its `codex-rs/core/src/client.rs`, November 2026).
 */
function refuseWebSocket({ headers }: IncomingMessage): void {
  if (headers.upgrade?.toLowerCase() !== 'websocket') return;
  throw new ApiError('upgrade_refused', 'There is no WebSocket here: send the request by HTTP.', {
    headers: { upgrade: 'HTTP/1.1' },
  });
}

/** A URL that the router cannot read: `part` of it. */
export async function refuseUrl<App>(context: Context<App>, exchange: Exchange, part: string): Promise<void> {
  try {
    if (context.routes.needsKey(exchange.path)) await admitCaller(context, 'other', exchange);
    checkHead(exchange.request);
    throw new ApiError('invalid_request', `'${part}' is not a valid url component`);
  } catch (error) {
    sendError(context, exchange, error);
  }
}

function begin<App>(context: Context<App>, request: IncomingMessage, response: ServerResponse): Exchange {
  const { now_ms = Date.now } = context;
  const id = newId('req', now_ms());
  const exchange = new Exchange(request, response, {
    id,
    started_ms: context.elapsed_ms(),
    headers: {
      'x-request-id': id,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy': closed_policy,
    },
    isTrusted: (address) => isWithin(address, context.trusted_proxies()),
  });
  const hsts = context.transport_security?.();
  if (hsts !== undefined) exchange.headers['strict-transport-security'] = hsts;
  const echo = request.headers['x-client-request-id'];
  if (typeof echo === 'string' && /^[\x20-\x7e]{1,512}$/.test(echo)) exchange.headers['x-client-request-id'] = echo;
  setFormat(exchange, formatOfPath(decodePath(exchange.path)));
  context.socketErrors.track(request.socket, exchange);
  response.on('close', () => {
    exchange.letGo();
    logEnd(context, exchange);
  });
  return exchange;
}

function setFormat(exchange: Exchange, format: Exchange['format']): void {
  exchange.format = format;
  if (format.request_id_header !== undefined) exchange.headers[format.request_id_header] = exchange.id;
}

function paramsOf<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  { method, path }: Exchange,
  path_values: Record<string, string | undefined>,
): Record<string, string> {
  const params = context.routes.params(endpoint, path_values);
  if (!params) throw context.routes.unknown(method, path);
  return params;
}

/** Pages of the dashboard: the person who has signed in, and what they may do with the account of the path. */
async function admitPerson<App>(
  context: Context<App>,
  { session, needs_proof, limited }: SessionEndpoint<App>,
  exchange: Exchange,
): Promise<void> {
  exchange.headers['cache-control'] = 'no-store';
  assert(context.admitPerson, 'endpoints that need a session need a way to know people');
  exchange.person = await context.admitPerson(
    { method: exchange.method, headers: exchange.request.headers, address: exchange.address },
    {
      need: session,
      account_id: exchange.params['account'],
      is_for_limited: limited !== undefined,
      needs_proof: needs_proof === true,
      count: (user_id) => countPerson(context, user_id),
      setCookies: (values) => {
        if (values.length > 0) exchange.headers['set-cookie'] = values;
      },
    },
  );
}

/**
 * A page asks for ten things, and again every few seconds: nobody who looks at several comes near this. An operator who
 * lets keys do more lets people, too.
 */
const dashboard_per_minute_min = 600;

/** Rejects with ApiError 429. */
async function countPerson<App>(context: Context<App>, user_id: string): Promise<void> {
  const limit = Math.max(dashboard_per_minute_min, context.limits().other);
  const taken = await context.windows.take('other', `dashboard ${user_id}`, limit, context.elapsed_ms());
  if (taken.ok) return;
  const seconds = Math.ceil(taken.retry_after_ms / 1000);
  const message = `Too many requests to the dashboard: at most ${taken.limit} per minute. Try again in ${seconds} s.`;
  throw new ApiError('rate_limit', message, { headers: { 'retry-after': String(seconds) } });
}

/** Returns the key of a header other than `authorization`. */
function apiKeyOf(headers: IncomingHttpHeaders): string | undefined {
  const name = key_headers.find((each) => headers[each] !== undefined);
  const value = name && headers[name];
  return Array.isArray(value) ? value[0] : value;
}

/** Returns whether a request carries a key, right or wrong: it comes from an API client. */
export function carriesKey(headers: IncomingHttpHeaders): boolean {
  return headers.authorization !== undefined || apiKeyOf(headers) !== undefined;
}

/** Returns true for a client that would have no use for a page: every browser asks for HTML by name. */
export function wantsJson({
  method = '',
  headers: { accept = '' },
}: Pick<IncomingMessage, 'method' | 'headers'>): boolean {
  if (/text\/html/i.test(accept)) return false;
  return method === 'GET' || method === 'HEAD' || /^application\/json\b/i.test(accept);
}

/** Returns the `key` of a query below /v1beta, as clients of Gemini send it; it is in no log, as no query is. */
function keyInQuery({ path, query_text }: Exchange): string | undefined {
  if (query_text === '' || !isBeta(path)) return undefined;
  return new URLSearchParams(query_text).get('key') ?? undefined;
}

/** Rejects with ApiError 401, 403 or 429. */
async function admitCaller<App>(
  context: Context<App>,
  window: WindowName,
  exchange: Exchange,
  endpoint?: Pick<Endpoint<App>, 'method' | 'path'>,
): Promise<void> {
  const { headers } = exchange.request;
  exchange.headers['cache-control'] = 'no-store';
  const api_key = apiKeyOf(headers) ?? keyInQuery(exchange);
  const caller = await context.authenticate({ authorization: headers.authorization, api_key });
  exchange.caller = caller;
  const { rules } = caller.key;
  if (rules) checkKeyRules(rules, { of_call: endpoint && scopesOf(endpoint), address: exchange.address });
  if (endpoint) checkLimitedKey(caller, endpoint);
  await countCall(context, window, exchange, caller);
}

/** Rejects with ApiError 429. */
async function countCall<App>(
  context: Context<App>,
  window: WindowName,
  exchange: Exchange,
  caller: Caller,
): Promise<void> {
  const { id, requests_per_minute: own_limit = Number.POSITIVE_INFINITY } = caller.key;
  const limit = Math.min(context.limits()[window], own_limit);
  const taken = await context.windows.take(window, id, limit, context.elapsed_ms());
  Object.assign(exchange.headers, windowHeaders(taken));
  if (!taken.ok) throw windowError(window, taken, caller.key);
}

function checkHead(raw: IncomingMessage): void {
  if ((raw.url ?? '').length > url_length_max) {
    throw new ApiError('invalid_request', `The URL is longer than ${url_length_max} characters.`);
  }
  const { host } = raw.headers;
  if (host === undefined && raw.httpVersion === '1.1') {
    throw new ApiError('invalid_request', 'The Host header is missing.');
  }
  // A server before us may have looked at the other one, or at another part of it.
  if (countHosts(raw.rawHeaders) > 1 || !host_form.test(host ?? '')) {
    throw new ApiError('invalid_request', 'There must be one Host header, with a name or an address and a port.');
  }
}

/** Counts the `host` headers in a list of names and values in turn. */
function countHosts(raw_headers: readonly string[]): number {
  let count = 0;
  for (let i = 0; i < raw_headers.length; i += 2) {
    const name = raw_headers[i];
    if (name?.length === 4 && name.toLowerCase() === 'host') count += 1;
  }
  return count;
}

/** Characters of a host and a port (RFC 9110, 7.2); empty where the target has no authority. */
const host_form = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/** The bytes of the body; nothing if the endpoint reads it itself. */
async function readRequest<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  exchange: Exchange,
): Promise<Buffer | undefined> {
  const { request, response } = exchange;
  const sendContinue = () => {
    if (context.expecting.delete(request)) response.writeContinue();
  };
  if (endpoint.form === true || (endpoint.form === 'or JSON' && isForm(request.headers))) {
    exchange.readForm = openForm(request, context.timeouts.body_idle_ms, sendContinue);
    return undefined;
  }
  if (endpoint.stream) {
    exchange.readStream = openBodyStream(request, context.timeouts.body_idle_ms, sendContinue);
    return undefined;
  }
  return readBody(request, {
    limit_bytes: endpoint.body_limit_bytes ?? default_body_limit_bytes,
    idle_ms: context.timeouts.body_idle_ms,
    sendContinue,
    takeMemory: async (bytes) => {
      const waiting = { response, timeout_ms: context.timeouts.body_memory_ms };
      return (exchange.memory = await takeBodyMemory(context.body_memory, senderOf(exchange), bytes, waiting));
    },
  });
}

/** Returns the one in whose name memory is taken. */
function senderOf({ caller, person }: Exchange): string {
  return caller?.account.id ?? person?.account?.id ?? person?.user.id ?? 'anybody';
}

/** Parses the body. An endpoint without a declared one takes none, an empty or a JSON one. */
function takeBody<App>(endpoint: Endpoint<App>, exchange: Exchange, bytes: Buffer): void {
  const { body } = endpoint.docs;
  if (bytes.length === 0) {
    if (body && body.required !== false)
      throw new ApiError('invalid_request', 'The request needs a JSON object as its body.');
    return;
  }
  exchange.body_bytes = bytes;
  exchange.body_size_bytes = bytes.length;
  if (!endpoint.raw_body) exchange.body = parseJsonObject(bytes, endpoint.long_integers);
}

function callEndpoint<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  exchange: Exchange,
): Promise<Answer> | Answer {
  const call = new ReceivedCall(exchange, context);
  if (endpoint.public) return endpoint.handle(context.app, call);
  const { caller, person } = exchange;
  if (endpoint.session !== undefined) {
    assert(person, 'an endpoint that needs a session was reached without one');
    return endpoint.handle(context.app, Object.assign(call, { person }));
  }
  assert(caller, 'an endpoint that needs a key was reached without one');
  return endpoint.handle(context.app, Object.assign(call, { caller }));
}

class ReceivedCall implements PublicCall {
  readonly method: string;
  readonly path: string;
  readonly params: Record<string, string>;
  readonly query: Query;
  readonly headers: IncomingHttpHeaders;
  readonly readForm: FormReader | undefined;
  readonly readStream: BodyStreamReader | undefined;
  readonly request_id: string;
  readonly draining: AbortSignal;
  readonly #cut: AbortSignal;
  readonly #exchange: Exchange;
  #gone: AbortSignal | undefined;

  constructor(exchange: Exchange, { draining, cut }: Pick<Context<unknown>, 'draining' | 'cut'>) {
    this.method = exchange.method;
    this.path = exchange.path;
    this.params = exchange.params;
    this.query = exchange.query;
    this.headers = exchange.request.headers;
    this.readForm = exchange.readForm;
    this.readStream = exchange.readStream;
    this.request_id = exchange.id;
    this.draining = draining;
    this.#cut = cut;
    this.#exchange = exchange;
  }

  get address(): string {
    return this.#exchange.address;
  }

  get body(): Record<string, unknown> | undefined {
    return this.#exchange.body;
  }

  get body_bytes(): Buffer {
    return this.#exchange.body_bytes;
  }

  releaseBody(): void {
    this.#exchange.forgetBody();
    this.#exchange.memory?.release();
  }

  get gone(): AbortSignal {
    return (this.#gone ??= signalOfLeaving(this.#exchange.response, this.#cut));
  }
}

/** Aborts when the connection is closed before the answer was written: by the caller, or by a stop of the service. */
function signalOfLeaving(response: ServerResponse, cut: AbortSignal): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(cut.aborted ? cut.reason : new Error('the caller is gone'));
  if (response.destroyed) leave();
  response.on('close', () => {
    if (!response.writableFinished) leave();
  });
  return gone.signal;
}

function sendError<App>(context: Context<App>, exchange: Exchange, error: unknown): void {
  const { request, response } = exchange;
  const expected = expectedError(error);
  if (!expected) context.log.error({ ...logFields(exchange), err: error }, 'unexpected error');
  const is_about_files = error instanceof SpoolError || error instanceof StorageUnavailable;
  if (is_about_files) context.log.error({ ...logFields(exchange), err: error }, 'files cannot be reached');
  if (expected && context.refusals) noteRefusal(context.refusals, exchange.caller ?? exchange.person, expected);
  const { status, headers, body } = errorAnswer(expected ?? internalError(), exchange.format, exchange.id);
  discardRest(request, context.timeouts.discard_ms);
  if (context.draining.aborted) exchange.headers['connection'] = 'close';
  try {
    for (const name of response.getHeaderNames()) response.removeHeader(name); // of an answer that failed
    sendBytes(response, status, { ...exchange.headers, ...headers }, body);
  } catch (failure) {
    // A header that Node refuses, for example: nothing above us could answer either, and a rejected
    // promise that nobody awaits would end the process.
    context.log.error({ ...logFields(exchange), err: failure }, 'an error could not be sent');
    response.destroy();
  }
}

function logEnd<App>(context: Context<App>, exchange: Exchange): void {
  const { writableFinished, statusCode } = exchange.response;
  const ms = Math.round((context.elapsed_ms() - exchange.started_ms) * 10) / 10;
  const fields = { ...logFields(exchange), status: statusCode, ms, ...(!writableFinished && { aborted: true }) };
  context.log.info(fields, 'request');
  const { method, route } = exchange;
  endSpan(exchange, statusCode, !writableFinished);
  context.observe?.({ method, route, status: statusCode, aborted: !writableFinished, ms });
}

function endSpan({ span, method, route }: Exchange, status: number, aborted: boolean): void {
  if (!span) return;
  span.rename(route === undefined ? method : `${method} ${route}`);
  span.set({ 'http.route': route, 'http.response.status_code': status });
  if (status >= 500) span.fail(String(status));
  if (aborted) span.fail('the caller left');
  span.end();
}

/** An allow-list: no header, no query, no body, and the route's pattern rather than the path. */
function logFields({ id, method, route, caller, person, body_size_bytes, span }: Exchange): object {
  return {
    request_id: id,
    ...(span && { trace_id: span.context.trace_id }),
    method,
    route,
    ...(caller && { account_id: caller.account.id, key_id: caller.key.id }),
    ...(person && { account_id: person.account?.id, user_id: person.user.id }),
    body_bytes: body_size_bytes,
  };
}
