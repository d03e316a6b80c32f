import { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { Caller, KeyHeaders } from '../accounts/authenticate.ts';
import { ApiError, type ErrorFormat } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import { newId } from '../lib/ids.ts';
import type { WindowName, Windows } from '../limits/window.ts';
import { sendAnswer } from './answer.ts';
import { discardRest, megabyte, readBody } from './body.ts';
import { corsHeaders, preflightHeaders } from './cors.ts';
import type { Answer, Endpoint, PublicCall } from './endpoint.ts';
import { errorAnswer, expectedError, formatOfPath, internalError } from './error-answer.ts';
import { parseJsonObject } from './json.ts';
import { parseQuery, type Query } from './query.ts';
import { compileRoutes, fastifyPath, type RouteTable } from './routes.ts';
import { makeSocketErrors } from './socket-errors.ts';
import { windowError, windowHeaders } from './window-headers.ts';

export type PipelineLog = {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

export type PipelineOptions<App> = {
  /** Handed to every endpoint; the pipeline itself does not look into it. */
  app: App;
  endpoints: readonly Endpoint<App>[];
  /** The caller of these headers, or ApiError 401. */
  authenticate(headers: KeyHeaders): Promise<Caller>;
  windows: Windows;
  /** Requests per minute and key; asked for each request, so that a reload counts at once. */
  limits(): Record<WindowName, number>;
  cors_origins(): readonly string[];
  trusted_proxies: readonly string[];
  log: PipelineLog;
  /** Monotonic milliseconds; the windows are counted with it. */
  elapsed_ms?: () => number;
  timeouts?: Partial<Timeouts>;
};

/** Milliseconds. */
export type Timeouts = {
  headers_ms: number;
  /** The whole request, body included. */
  request_ms: number;
  body_idle_ms: number;
  keep_alive_ms: number;
  /** How long the body of a refused request may still arrive. */
  discard_ms: number;
  check_every_ms: number;
  /** A connection on which nothing moves; longer than the longest `wait`. */
  silence_ms: number;
};

/** Load balancers keep connections for 60 s: ours must live longer, or they send into a closed one. */
const default_timeouts: Timeouts = {
  headers_ms: 30_000,
  request_ms: 300_000,
  body_idle_ms: 30_000,
  keep_alive_ms: 72_000,
  discard_ms: 15_000,
  check_every_ms: 5_000,
  silence_ms: 330_000,
};

const header_bytes_max = 64 * 1024;
const url_length_max = 2048;
const default_body_limit_bytes = megabyte;

export type Pipeline = {
  /** Starts to accept connections and tells where: port 0 is chosen by the system. */
  listen(address: { host: string; port: number }): Promise<AddressInfo>;
  /** Aborted as soon as `close` is called. */
  readonly draining: AbortSignal;
  /**
   * Says for `announce_ms` that it is not ready, still serving, so that a balancer sends no more; then
   * answers what has arrived, for at most `grace_ms`, and cuts what is left.
   */
  close(times: { announce_ms: number; grace_ms: number }): Promise<void>;
};

/** What the pipeline knows of a request on its way. */
type State = {
  started_ms: number;
  format: ErrorFormat;
  /** As it was sent, without the query. */
  path: string;
  query_text: string;
  route?: string;
  caller?: Caller;
  params: Record<string, string>;
  query: Query;
  body?: Record<string, unknown>;
  body_bytes: Buffer;
};

declare module 'fastify' {
  interface FastifyRequest {
    state: State;
  }
}

/** Everything that the steps of the pipeline share. */
type Context<App> = PipelineOptions<App> & {
  timeouts: Timeouts;
  elapsed_ms: () => number;
  routes: RouteTable<App>;
  draining: AbortSignal;
  socketErrors: ReturnType<typeof makeSocketErrors>;
  /** Requests that wait for `100 Continue` before they send their body. */
  expecting: WeakSet<IncomingMessage>;
};

/**
 * The way of every request: request id → key (401) → window (429) → method and path (405, 404) →
 * body (413, 415, 400) → the endpoint. What is refused is answered before its body is read.
 */
export function makePipeline<App>(options: PipelineOptions<App>): Pipeline {
  const drain = new AbortController();
  const context: Context<App> = {
    ...options,
    timeouts: { ...default_timeouts, ...options.timeouts },
    elapsed_ms: options.elapsed_ms ?? (() => performance.now()),
    routes: compileRoutes(options.endpoints),
    draining: drain.signal,
    socketErrors: makeSocketErrors((fields, message) => options.log.info(fields, message)),
    expecting: new WeakSet(),
  };
  const server = makeServer(context);
  server.decorateRequest('state');
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('*', (_request, _payload, done) => done(null)); // bodies are read by us
  server.setErrorHandler((error, request, reply) => sendError(context, error, request, reply));
  server.addHook('onRequest', async (request, reply) => receive(context, request, reply));
  for (const endpoint of options.endpoints) addRoute(server, context, endpoint);
  return {
    listen: (address) => listen(server, address),
    draining: drain.signal,
    close: async ({ announce_ms, grace_ms }) => {
      drain.abort();
      if (announce_ms > 0) await sleep(announce_ms);
      await close(server, grace_ms);
    },
  };
}

function makeServer<App>(context: Context<App>): FastifyInstance {
  const { timeouts, trusted_proxies } = context;
  const server = fastify({
    logger: false,
    genReqId: () => newId('req'),
    requestIdHeader: false,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    keepAliveTimeout: timeouts.keep_alive_ms,
    requestTimeout: timeouts.request_ms,
    connectionTimeout: timeouts.silence_ms,
    trustProxy: trusted_proxies.length > 0 ? [...trusted_proxies] : false,
    routerOptions: { maxParamLength: url_length_max, querystringParser: () => ({}) },
    http: {
      maxHeaderSize: header_bytes_max,
      headersTimeout: timeouts.headers_ms,
      connectionsCheckingInterval: timeouts.check_every_ms,
      requireHostHeader: false, // Node's own refusal has no body: `receive` does it
    },
    clientErrorHandler: (error, socket) => context.socketErrors.answer(error, socket),
    frameworkErrors: (error, request, reply) => void refuseUrl(context, error, request, reply),
  });
  server.server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    context.expecting.add(request);
    server.routing(request, response);
  });
  server.server.on('checkExpectation', server.routing); // RFC 9110 lets a server ignore what it does not know
  server.server.on('connect', (_request, socket) => {
    context.socketErrors.refuse(
      socket,
      new ApiError('method_not_allowed', 'This is no proxy.', { headers: { allow: 'GET, HEAD' } }),
    );
  });
  return server;
}

function addRoute<App>(server: FastifyInstance, context: Context<App>, endpoint: Endpoint<App>): void {
  server.route({
    method: endpoint.method === 'GET' ? ['GET', 'HEAD'] : endpoint.method,
    url: fastifyPath(endpoint.path),
    onRequest: async (request, reply) => admit(context, endpoint, request, reply),
    preParsing: async (request, reply) => readRequest(context, endpoint, request, reply),
    handler: async (request, reply) => {
      const answer = await callEndpoint(context, endpoint, request, reply);
      return sendAnswer(reply, answer, context.draining.aborted);
    },
  });
}

async function callEndpoint<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Answer> {
  const call = callOf(context, request, reply);
  if (endpoint.public) return endpoint.handle(context.app, call);
  const { caller } = request.state;
  assert(caller, 'an endpoint that needs a key was reached without one');
  return endpoint.handle(context.app, Object.assign(call, { caller }));
}

/** First of all: an id, the headers of every answer, a line in the log when it is over. */
async function receive<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
  begin(context, request, reply);
  const origins = context.cors_origins();
  const preflight = preflightHeaders(origins, request.method, request.raw.headers);
  if (preflight) return reply.code(204).headers(preflight).send();
  reply.headers(corsHeaders(origins, request.raw.headers));
  if (request.is404) await refuseUnknown(context, request, reply);
  return undefined;
}

/** `GET http://host/path`, as to a proxy: the router takes it for /path too (RFC 9112, 3.2.2). */
const absolute_form = /^https?:\/\/[^/?#]*/i;

function begin<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): void {
  const url = (request.raw.url ?? '/').replace(absolute_form, '');
  const question = url.indexOf('?');
  const path = question === -1 ? url : url.slice(0, question);
  request.state = {
    started_ms: context.elapsed_ms(),
    format: 'service',
    path,
    query_text: question === -1 ? '' : url.slice(question + 1),
    params: {},
    query: new Map(),
    body_bytes: Buffer.alloc(0),
  };
  reply.headers({
    'x-request-id': request.id,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
  const echo = request.raw.headers['x-client-request-id'];
  if (typeof echo === 'string' && /^[\x20-\x7e]{1,512}$/.test(echo)) reply.header('x-client-request-id', echo);
  setFormat(request, reply, formatOfPath(context.routes.decode(path)));
  context.socketErrors.track(request.raw.socket, {
    response: reply.raw,
    format: request.state.format,
    request_id: request.id,
  });
  reply.raw.once('close', () => logEnd(context, request, reply));
}

function setFormat(request: FastifyRequest, reply: FastifyReply, format: ErrorFormat): void {
  request.state.format = format;
  if (format === 'messages') reply.header('request-id', request.id);
}

/** Key and window of a known endpoint, then what the request line and the headers alone tell. */
async function admit<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  request.state.route = endpoint.path;
  setFormat(request, reply, endpoint.format);
  if (!endpoint.public) await admitCaller(context, endpoint.window ?? 'other', request, reply);
  checkHead(request.raw);
  const params = context.routes.params(endpoint, request.params);
  if (!params) throw context.routes.unknown(request.method, request.state.path);
  request.state.params = params;
  const declared = endpoint.docs.query ?? {};
  request.state.query = parseQuery(request.state.query_text, endpoint.lenient_query ? undefined : declared);
}

async function admitCaller<App>(
  context: Context<App>,
  window: WindowName,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { authorization, 'x-api-key': api_key } = request.raw.headers;
  reply.header('cache-control', 'no-store');
  const caller = await context.authenticate({ authorization, 'x-api-key': [api_key].flat()[0] });
  request.state.caller = caller;
  const limit = context.limits()[window];
  const taken = await context.windows.take(window, caller.key.id, limit, context.elapsed_ms());
  reply.headers(windowHeaders(taken));
  if (!taken.ok) throw windowError(window, taken);
}

function checkHead(raw: IncomingMessage): void {
  if ((raw.url ?? '').length > url_length_max) {
    throw new ApiError('invalid_request', `The URL is longer than ${url_length_max} characters.`);
  }
  if (raw.headers.host === undefined && raw.httpVersion === '1.1') {
    throw new ApiError('invalid_request', 'The Host header is missing.');
  }
}

/** A path or a method that no endpoint has. Below /v1 the key comes first, as everywhere. */
async function refuseUnknown<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): Promise<never> {
  const { path } = request.state;
  if (context.routes.needsKey(path)) await admitCaller(context, context.routes.windowOf(path), request, reply);
  checkHead(request.raw);
  throw context.routes.unknown(request.method, path);
}

/** The router cannot read the URL, so it has run no hook. */
async function refuseUrl<App>(
  context: Context<App>,
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  begin(context, request, reply);
  try {
    if (context.routes.needsKey(request.state.path)) await admitCaller(context, 'other', request, reply);
    checkHead(request.raw);
    sendError(context, error, request, reply);
  } catch (refused) {
    sendError(context, refused, request, reply);
  }
}

/** Reads and parses the body. An endpoint without a declared one takes none, an empty or a JSON one. */
async function readRequest<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (endpoint.method === 'GET') return;
  const { state, raw } = request;
  const sendContinue = () => {
    if (context.expecting.delete(raw)) reply.raw.writeContinue();
  };
  const limit_bytes = endpoint.body_limit_bytes ?? default_body_limit_bytes;
  const bytes = await readBody(raw, limit_bytes, context.timeouts.body_idle_ms, sendContinue);
  const { body } = endpoint.docs;
  if (bytes.length === 0) {
    if (body && body.required !== false)
      throw new ApiError('invalid_request', 'The request needs a JSON object as its body.');
    return;
  }
  state.body_bytes = bytes;
  state.body = parseJsonObject(bytes);
}

function callOf<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): PublicCall {
  const { state } = request;
  let signal: AbortSignal | undefined;
  return {
    method: request.method,
    path: state.path,
    params: state.params,
    query: state.query,
    body: state.body,
    body_bytes: state.body_bytes,
    headers: request.raw.headers,
    request_id: request.id,
    draining: context.draining,
    get signal() {
      return (signal ??= goneSignal(reply.raw));
    },
  };
}

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  if (response.destroyed) gone.abort();
  response.once('close', () => {
    if (!response.writableFinished) gone.abort();
  });
  return gone.signal;
}

function sendError<App>(context: Context<App>, error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const expected = expectedError(error);
  if (!expected) context.log.error({ ...logFields(request), err: error }, 'unexpected error');
  const { status, headers, body } = errorAnswer(expected ?? internalError(), request.state.format, request.id);
  if (context.expecting.has(request.raw)) reply.header('connection', 'close'); // the body will never come
  else discardRest(request.raw, context.timeouts.discard_ms);
  if (context.draining.aborted) reply.header('connection', 'close');
  reply.code(status).headers(headers).send(body);
}

function logEnd<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): void {
  const { writableFinished, statusCode } = reply.raw;
  const ms = Math.round((context.elapsed_ms() - request.state.started_ms) * 10) / 10;
  const fields = { ...logFields(request), status: statusCode, ms, ...(!writableFinished && { aborted: true }) };
  context.log.info(fields, 'request');
}

/** An allow-list: no header, no query, no body, and the route's pattern rather than the path. */
function logFields(request: FastifyRequest): object {
  const { route, caller, body_bytes } = request.state;
  return {
    request_id: request.id,
    method: request.method,
    route,
    ...(caller && { account_id: caller.account.id, key_id: caller.key.id }),
    body_bytes: body_bytes.length,
  };
}

async function listen(server: FastifyInstance, address: { host: string; port: number }): Promise<AddressInfo> {
  await server.listen(address);
  const bound = server.server.address();
  assert(bound !== null && typeof bound === 'object', 'a server that listens on TCP has an address');
  return bound;
}

/** Between two looks for connections whose last answer has gone out. */
const idle_check_ms = 100;

async function close(server: FastifyInstance, grace_ms: number): Promise<void> {
  const idle = setInterval(() => server.server.closeIdleConnections(), idle_check_ms);
  const cut = setTimeout(() => server.server.closeAllConnections(), grace_ms);
  try {
    await server.close();
  } finally {
    clearInterval(idle);
    clearTimeout(cut);
  }
}
