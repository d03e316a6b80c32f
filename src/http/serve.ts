import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../accounts/authenticate.ts';
import { checkKeyRules } from '../accounts/key-rules.ts';
import type { Person } from '../accounts/person.ts';
import { ApiError, type ErrorFormat } from '../errors.ts';
import { SpoolError } from '../files/spool.ts';
import { assert } from '../lib/assert.ts';
import type { Share } from '../lib/budget.ts';
import { Stop } from '../lib/stop.ts';
import type { WindowName } from '../limits/window.ts';
import { type Headers, sendAnswer } from './answer.ts';
import type { BodyRooms } from './body-rooms.ts';
import { closed_policy } from './browser-headers.ts';
import { discardRest, megabyte, no_bytes, readBody } from './body.ts';
import { corsHeaders, preflightHeaders } from './cors.ts';
import type { Answer, Endpoint, PublicCall, Query, SessionEndpoint } from './endpoint.ts';
import { errorAnswer, expectedError, formatOfPath, internalError } from './error-answer.ts';
import { framingError, isBehindRefused } from './framing.ts';
import { isForm, openForm, type FormReader } from './form.ts';
import { parseJsonObject } from './json.ts';
import type { PipelineOptions, Timeouts } from './options.ts';
import { parseQuery } from './query.ts';
import { absolute_form, decodePath, type RouteTable } from './routes.ts';
import { scopesOf } from './scopes.ts';
import type { SocketErrors } from './socket-errors.ts';
import { admitStranger } from './strangers.ts';
import { windowError, windowHeaders } from './window-headers.ts';

const url_length_max = 2048;
const default_body_limit_bytes = megabyte;

/** What the pipeline knows of a request on its way. */
type State = {
  started_ms: number;
  format: ErrorFormat;
  /** As it was sent, without the query. */
  path: string;
  query_text: string;
  route?: string;
  caller?: Caller;
  person?: Person;
  params: Record<string, string>;
  query: Query;
  body: Record<string, unknown> | undefined;
  body_bytes: Buffer;
  /** What a large body has of the memory for such. */
  room?: Share;
  /** Who may still have a large body in hand: whoever writes the answer, and the endpoint, which goes on when a caller leaves. */
  holders: number;
  readForm?: FormReader;
  /** Stays for the log when the body itself is not kept any more. */
  body_size_bytes: number;
  /** Of every answer to this request; an endpoint's own are not among them, as an error may go out in its place. */
  headers: Headers;
};

declare module 'fastify' {
  interface FastifyRequest {
    state: State;
  }
}

/** Everything that the steps of the pipeline share. */
export type Context<App> = PipelineOptions<App> & {
  timeouts: Timeouts;
  elapsed_ms: () => number;
  routes: RouteTable<App>;
  draining: AbortSignal;
  socketErrors: SocketErrors;
  rooms: BodyRooms;
  /** Requests that wait for `100 Continue` before they send their body. */
  expecting: WeakSet<IncomingMessage>;
};

/** First of all: an id, the headers of every answer, a line in the log when it is over. */
export function receive<App>(
  context: Context<App>,
  request: FastifyRequest,
  reply: FastifyReply,
  next: () => void,
): void {
  if (isBehindRefused(request.raw)) return;
  begin(context, request, reply);
  const unframed = framingError(request.raw);
  if (unframed) return sendError(context, unframed, request, reply);
  const origins = context.cors_origins();
  if (origins.length > 0) {
    const preflight = preflightHeaders(origins, request.method, request.raw.headers);
    Object.assign(request.state.headers, preflight ?? corsHeaders(origins, request.raw.headers));
    if (preflight) return void reply.code(204).headers(request.state.headers).send();
  }
  if (request.is404) void serveUnknown(context, request, reply);
  else next();
}

/** The way of a request to a known endpoint. */
export async function serve<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  try {
    request.state.route = endpoint.path;
    setFormat(request, endpoint.format);
    if (!endpoint.public && endpoint.session === undefined) {
      const admitting = admitCaller(context, endpoint.window ?? 'other', request, endpoint);
      if (admitting) await admitting;
    }
    checkHead(request.raw);
    request.state.params = paramsOf(context, endpoint, request);
    if (endpoint.session !== undefined) await admitPerson(context, endpoint, request);
    const declared = endpoint.docs.query ?? {};
    request.state.query = parseQuery(request.state.query_text, endpoint.lenient_query ? undefined : declared);
    if (endpoint.public) admitStranger(context, endpoint, new ReceivedCall(request, reply.raw, context.draining));
    if (endpoint.method !== 'GET' && !endpoint.ignores_body) {
      const reading = readRequest(context, endpoint, request, reply);
      const bytes = reading instanceof Promise ? await reading : reading;
      if (bytes) takeBody(endpoint, request.state, bytes);
    }
    const answer = await callEndpoint(context, endpoint, request, reply);
    forgetBody(request.state);
    if (endpoint.ignores_body) discardRest(request.raw, context.timeouts.discard_ms);
    if (context.draining.aborted) request.state.headers['connection'] = 'close';
    sendAnswer(reply, request.state.headers, answer);
  } catch (error) {
    sendError(context, error, request, reply);
  } finally {
    letGo(request.state);
  }
}

/** An answer that is streamed may go on for minutes, and nobody reads the request any more. */
function forgetBody(state: State): void {
  state.body = undefined;
  state.body_bytes = no_bytes;
}

function letGo(state: State): void {
  state.holders -= 1;
  if (state.holders === 0) state.room?.release();
}

/** A path or a method that no endpoint has. Below /v1 the key comes first, as everywhere. */
async function serveUnknown<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { path } = request.state;
  try {
    if (context.routes.needsKey(path)) await admitCaller(context, context.routes.windowOf(path), request);
    checkHead(request.raw);
    throw context.routes.unknown(request.method, path);
  } catch (error) {
    sendError(context, error, request, reply);
  }
}

/** A URL that the router cannot read; it has run no hook. */
export async function refuseUrl<App>(
  context: Context<App>,
  error: Error,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  if (isBehindRefused(request.raw)) return;
  begin(context, request, reply);
  try {
    const unframed = framingError(request.raw);
    if (unframed) throw unframed;
    if (context.routes.needsKey(request.state.path)) await admitCaller(context, 'other', request);
    checkHead(request.raw);
    throw error;
  } catch (refused) {
    sendError(context, refused, request, reply);
  }
}

const no_query: Query = new Map();

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
    query: no_query,
    body: undefined,
    body_bytes: no_bytes,
    body_size_bytes: 0,
    holders: 2,
    headers: {
      'x-request-id': request.id,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'content-security-policy': closed_policy,
    },
  };
  const hsts = context.transport_security?.();
  if (hsts !== undefined) request.state.headers['strict-transport-security'] = hsts;
  const echo = request.raw.headers['x-client-request-id'];
  if (typeof echo === 'string' && /^[\x20-\x7e]{1,512}$/.test(echo))
    request.state.headers['x-client-request-id'] = echo;
  setFormat(request, formatOfPath(decodePath(path)));
  context.socketErrors.track(request.raw.socket, {
    request: request.raw,
    response: reply.raw,
    format: request.state.format,
    request_id: request.id,
  });
  reply.raw.on('close', () => {
    letGo(request.state);
    logEnd(context, request, reply);
  });
}

function setFormat(request: FastifyRequest, format: ErrorFormat): void {
  request.state.format = format;
  if (format === 'messages') request.state.headers['request-id'] = request.id;
}

function paramsOf<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
): Record<string, string> {
  const params = context.routes.params(endpoint, request.params);
  if (!params) throw context.routes.unknown(request.method, request.state.path);
  return params;
}

/** Pages of the dashboard: the person who has signed in, and what they may do with the account of the path. */
async function admitPerson<App>(
  context: Context<App>,
  { session, needs_proof }: SessionEndpoint<App>,
  request: FastifyRequest,
): Promise<void> {
  request.state.headers['cache-control'] = 'no-store';
  assert(context.admitPerson, 'endpoints that need a session need a way to know people');
  const { method, headers } = request.raw;
  request.state.person = await context.admitPerson(
    { method: method ?? 'GET', headers },
    {
      need: session,
      account_id: request.state.params['account'],
      needs_proof: needs_proof === true,
      count: (user_id) => countPerson(context, user_id),
    },
  );
}

/**
 * A page asks for ten things, and again every few seconds: nobody who looks at several comes near this. An operator who
 * lets keys do more lets people, too.
 */
const dashboard_per_minute_min = 600;

/** Throws ApiError 429. */
function countPerson<App>(context: Context<App>, user_id: string): void {
  const limit = Math.max(dashboard_per_minute_min, context.limits().other);
  const taken = context.windows.take('other', `dashboard ${user_id}`, limit, context.elapsed_ms());
  if (taken.ok) return;
  const seconds = Math.ceil(taken.retry_after_ms / 1000);
  const message = `Too many requests to the dashboard: at most ${taken.limit} per minute. Try again in ${seconds} s.`;
  throw new ApiError('rate_limit', message, { headers: { 'retry-after': String(seconds) } });
}

/** At once, if the caller is known; a promise if not. */
function admitCaller<App>(
  context: Context<App>,
  window: WindowName,
  request: FastifyRequest,
  endpoint?: Pick<Endpoint<App>, 'method' | 'path'>,
): Promise<void> | undefined {
  const { state, raw } = request;
  const { authorization, 'x-api-key': api_key } = raw.headers;
  state.headers['cache-control'] = 'no-store';
  const key = Array.isArray(api_key) ? api_key[0] : api_key;
  const caller = context.authenticate({ authorization, 'x-api-key': key });
  const admit = (known: Caller) => {
    state.caller = known;
    const { rules } = known.key;
    if (rules) checkKeyRules(rules, { of_call: endpoint && scopesOf(endpoint), address: request.ip });
    countCall(context, window, state, known);
  };
  if (caller instanceof Promise) return caller.then(admit);
  admit(caller);
  return undefined;
}

/** Throws ApiError 429. */
function countCall<App>(context: Context<App>, window: WindowName, state: State, caller: Caller): void {
  const taken = context.windows.take(window, caller.key.id, context.limits()[window], context.elapsed_ms());
  Object.assign(state.headers, windowHeaders(taken));
  if (!taken.ok) throw windowError(window, taken);
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

/** Of names and values in turn. */
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

/** The bytes of the body; nothing if it is a form, which the endpoint reads. */
function readRequest<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Buffer> | Buffer | undefined {
  const { state, raw } = request;
  const sendContinue = () => {
    if (context.expecting.delete(raw)) reply.raw.writeContinue();
  };
  if (endpoint.form === true || (endpoint.form === 'or JSON' && isForm(raw.headers))) {
    state.readForm = openForm(raw, context.timeouts.body_idle_ms, sendContinue);
    return undefined;
  }
  return readBody(raw, {
    limit_bytes: endpoint.body_limit_bytes ?? default_body_limit_bytes,
    idle_ms: context.timeouts.body_idle_ms,
    sendContinue,
    makeRoom: async (bytes) => (state.room = await context.rooms.take(senderOf(state), bytes, reply.raw)),
  });
}

/** In whose name memory is taken. */
function senderOf({ caller, person }: State): string {
  return caller?.account.id ?? person?.account?.id ?? person?.user.id ?? 'anybody';
}

/** Parses the body. An endpoint without a declared one takes none, an empty or a JSON one. */
function takeBody<App>(endpoint: Endpoint<App>, state: State, bytes: Buffer): void {
  const { body } = endpoint.docs;
  if (bytes.length === 0) {
    if (body && body.required !== false)
      throw new ApiError('invalid_request', 'The request needs a JSON object as its body.');
    return;
  }
  state.body_bytes = bytes;
  state.body_size_bytes = bytes.length;
  if (!endpoint.raw_body) state.body = parseJsonObject(bytes, endpoint.long_integers);
}

function callEndpoint<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Answer> | Answer {
  const call = new ReceivedCall(request, reply.raw, context.draining);
  if (endpoint.public) return endpoint.handle(context.app, call);
  const { caller, person } = request.state;
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
  readonly request_id: string;
  readonly draining: AbortSignal;
  readonly #request: FastifyRequest;
  readonly #response: ServerResponse;
  #gone: Stop | undefined;

  constructor(request: FastifyRequest, response: ServerResponse, draining: AbortSignal) {
    const { state } = request;
    this.method = request.method;
    this.path = state.path;
    this.params = state.params;
    this.query = state.query;
    this.headers = request.raw.headers;
    this.readForm = state.readForm;
    this.request_id = request.id;
    this.draining = draining;
    this.#request = request;
    this.#response = response;
  }

  get address(): string {
    return this.#request.ip;
  }

  get body(): Record<string, unknown> | undefined {
    return this.#request.state.body;
  }

  get body_bytes(): Buffer {
    return this.#request.state.body_bytes;
  }

  releaseBody(): void {
    const { state } = this.#request;
    forgetBody(state);
    state.room?.release();
  }

  get gone(): Stop {
    return (this.#gone ??= stopOf(this.#response));
  }
}

function stopOf(response: ServerResponse): Stop {
  const gone = new Stop();
  const leave = () => gone.abort(new Error('the caller is gone'));
  if (response.destroyed) leave();
  response.on('close', () => {
    if (!response.writableFinished) leave();
  });
  return gone;
}

export function sendError<App>(
  context: Context<App>,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const expected = expectedError(error);
  if (!expected) context.log.error({ ...logFields(request), err: error }, 'unexpected error');
  if (error instanceof SpoolError) context.log.error({ ...logFields(request), err: error }, 'a file was not stored');
  const { status, headers, body } = errorAnswer(expected ?? internalError(), request.state.format, request.id);
  discardRest(request.raw, context.timeouts.discard_ms);
  if (context.draining.aborted) request.state.headers['connection'] = 'close';
  for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name); // of an answer that failed
  try {
    reply
      .code(status)
      .headers({ ...request.state.headers, ...headers })
      .send(body);
  } catch (failure) {
    // A header that Node refuses, for example: nothing above us could answer either, and a rejected
    // promise that nobody awaits would end the process.
    context.log.error({ ...logFields(request), err: failure }, 'an error could not be sent');
    reply.raw.destroy();
  }
}

function logEnd<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): void {
  const { writableFinished, statusCode } = reply.raw;
  const ms = Math.round((context.elapsed_ms() - request.state.started_ms) * 10) / 10;
  const fields = { ...logFields(request), status: statusCode, ms, ...(!writableFinished && { aborted: true }) };
  context.log.info(fields, 'request');
}

/** An allow-list: no header, no query, no body, and the route's pattern rather than the path. */
function logFields(request: FastifyRequest): object {
  const { route, caller, person, body_size_bytes } = request.state;
  return {
    request_id: request.id,
    method: request.method,
    route,
    ...(caller && { account_id: caller.account.id, key_id: caller.key.id }),
    ...(person && { account_id: person.account?.id, user_id: person.user.id }),
    body_bytes: body_size_bytes,
  };
}
