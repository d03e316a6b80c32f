import type { IncomingMessage, ServerResponse } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Caller } from '../accounts/authenticate.ts';
import type { Need, Person } from '../accounts/person.ts';
import { ApiError, type ErrorFormat } from '../errors.ts';
import { assert } from '../lib/assert.ts';
import type { WindowName } from '../limits/window.ts';
import { sendAnswer } from './answer.ts';
import { discardRest, megabyte, readBody } from './body.ts';
import { corsHeaders, preflightHeaders } from './cors.ts';
import type { Answer, Endpoint, PublicCall, Query } from './endpoint.ts';
import { errorAnswer, expectedError, formatOfPath, internalError } from './error-answer.ts';
import { isForm, openForm, type FormReader } from './form.ts';
import { parseJsonObject } from './json.ts';
import type { PipelineOptions, Timeouts } from './options.ts';
import { parseQuery } from './query.ts';
import { absolute_form, decodePath, type RouteTable } from './routes.ts';
import type { SocketErrors } from './socket-errors.ts';
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
  readForm?: FormReader;
  /** Stays for the log when the body itself is not kept any more. */
  body_size_bytes: number;
  /** What the endpoint set: must not stay when its answer fails and an error goes out in its place. */
  answer_headers: readonly string[];
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
  begin(context, request, reply);
  const origins = context.cors_origins();
  if (origins.length > 0) {
    const preflight = preflightHeaders(origins, request.method, request.raw.headers);
    if (preflight) return void reply.code(204).headers(preflight).send();
    reply.headers(corsHeaders(origins, request.raw.headers));
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
    await admit(context, endpoint, request, reply);
    if (endpoint.method !== 'GET' && !endpoint.ignores_body) await readRequest(context, endpoint, request, reply);
    const answer = await callEndpoint(context, endpoint, request, reply);
    forgetBody(request.state);
    request.state.answer_headers = Object.keys(answer.headers ?? {});
    if (endpoint.ignores_body) discardRest(request.raw, context.timeouts.discard_ms);
    sendAnswer(reply, answer, context.draining.aborted);
  } catch (error) {
    sendError(context, error, request, reply);
  }
}

/** An answer that is streamed may go on for minutes, and nobody reads the request any more. */
function forgetBody(state: State): void {
  state.body = undefined;
  state.body_bytes = no_bytes;
}

/** A path or a method that no endpoint has. Below /v1 the key comes first, as everywhere. */
async function serveUnknown<App>(context: Context<App>, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { path } = request.state;
  try {
    if (context.routes.needsKey(path)) await admitCaller(context, context.routes.windowOf(path), request, reply);
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
  begin(context, request, reply);
  try {
    if (context.routes.needsKey(request.state.path)) await admitCaller(context, 'other', request, reply);
    checkHead(request.raw);
    throw error;
  } catch (refused) {
    sendError(context, refused, request, reply);
  }
}

const no_query: Query = new Map();
const no_bytes = Buffer.alloc(0);

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
    answer_headers: [],
  };
  reply.headers({
    'x-request-id': request.id,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
  });
  const echo = request.raw.headers['x-client-request-id'];
  if (typeof echo === 'string' && /^[\x20-\x7e]{1,512}$/.test(echo)) reply.header('x-client-request-id', echo);
  setFormat(request, reply, formatOfPath(decodePath(path)));
  context.socketErrors.track(request.raw.socket, {
    request: request.raw,
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
  if (!endpoint.public && endpoint.session === undefined) {
    await admitCaller(context, endpoint.window ?? 'other', request, reply);
  }
  checkHead(request.raw);
  const params = context.routes.params(endpoint, request.params);
  if (!params) throw context.routes.unknown(request.method, request.state.path);
  request.state.params = params;
  if (endpoint.session !== undefined) await admitPerson(context, endpoint.session, request, reply);
  const declared = endpoint.docs.query ?? {};
  request.state.query = parseQuery(request.state.query_text, endpoint.lenient_query ? undefined : declared);
}

/** Pages of the dashboard: the person who has signed in, and what they may do with the account of the path. */
async function admitPerson<App>(
  context: Context<App>,
  need: Need,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  reply.header('cache-control', 'no-store');
  assert(context.admitPerson, 'endpoints that need a session need a way to know people');
  const { method, headers } = request.raw;
  const { account } = request.state.params;
  request.state.person = await context.admitPerson({ method: method ?? 'GET', headers }, need, account);
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
  const { host } = raw.headers;
  if (host === undefined && raw.httpVersion === '1.1') {
    throw new ApiError('invalid_request', 'The Host header is missing.');
  }
  // A server before us may have looked at the other one, or at another part of it.
  const hosts = raw.rawHeaders.filter((text, index) => index % 2 === 0 && text.length === 4 && /^host$/i.test(text));
  if (hosts.length > 1 || !host_form.test(host ?? '')) {
    throw new ApiError('invalid_request', 'There must be one Host header, with a name or an address and a port.');
  }
}

/** Characters of a host and a port (RFC 9110, 7.2); empty where the target has no authority. */
const host_form = /^[\w.~!$&'()*+,;=%:[\]-]*$/;

/** Reads and parses the body. An endpoint without a declared one takes none, an empty or a JSON one. */
async function readRequest<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<void> {
  const { state, raw } = request;
  const sendContinue = () => {
    if (context.expecting.delete(raw)) reply.raw.writeContinue();
  };
  if (endpoint.form === true || (endpoint.form === 'or JSON' && isForm(raw.headers))) {
    state.readForm = openForm(raw, context.timeouts.body_idle_ms, sendContinue);
    return;
  }
  const limit_bytes = endpoint.body_limit_bytes ?? default_body_limit_bytes;
  const bytes = await readBody(raw, limit_bytes, context.timeouts.body_idle_ms, sendContinue);
  const { body } = endpoint.docs;
  if (bytes.length === 0) {
    if (body && body.required !== false)
      throw new ApiError('invalid_request', 'The request needs a JSON object as its body.');
    return;
  }
  state.body_bytes = bytes;
  state.body_size_bytes = bytes.length;
  state.body = parseJsonObject(bytes);
}

async function callEndpoint<App>(
  context: Context<App>,
  endpoint: Endpoint<App>,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Answer> {
  const call = callOf(context, request, reply);
  if (endpoint.public) return endpoint.handle(context.app, call);
  const { caller, person } = request.state;
  if (endpoint.session !== undefined) {
    assert(person, 'an endpoint that needs a session was reached without one');
    return endpoint.handle(context.app, Object.assign(call, { person }));
  }
  assert(caller, 'an endpoint that needs a key was reached without one');
  return endpoint.handle(context.app, Object.assign(call, { caller }));
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
    readForm: state.readForm,
    address: request.ip,
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

export function sendError<App>(
  context: Context<App>,
  error: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const expected = expectedError(error);
  if (!expected) context.log.error({ ...logFields(request), err: error }, 'unexpected error');
  const { status, headers, body } = errorAnswer(expected ?? internalError(), request.state.format, request.id);
  discardRest(request.raw, context.timeouts.discard_ms);
  if (context.draining.aborted) reply.header('connection', 'close');
  for (const name of request.state.answer_headers) reply.removeHeader(name);
  try {
    reply.code(status).headers(headers).send(body);
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
