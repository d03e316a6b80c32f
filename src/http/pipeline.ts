import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fastify, type FastifyInstance } from 'fastify';
import { ApiError } from '../errors.ts';
import { isWithin } from '../net/address.ts';
import { AssertionError } from '../lib/assert.ts';
import { newId } from '../lib/ids.ts';
import { bodiesBytesMax, openBodyRooms } from './body-rooms.ts';
import type { Endpoint } from './endpoint.ts';
import { listen, type Listening } from './listen.ts';
import { default_timeouts, type PipelineOptions } from './options.ts';
import { compileRoutes, fastifyPath } from './routes.ts';
import { type Context, receive, refuseUrl, sendError, serve } from './serve.ts';
import { makeSocketErrors } from './socket-errors.ts';

const header_bytes_max = 64 * 1024;
const headers_max = 1_000;

/** Longer parts never come this far: the URL itself is refused before. */
const path_part_length_max = 65_536;

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

/**
 * The way of every request: request id → key (401) → window (429; of an address where no key is needed) → method and
 * path (405, 404) → body (413, 415, 400) → the endpoint. What is refused is answered before its body is read.
 */
export function makePipeline<App>(options: PipelineOptions<App>): Pipeline {
  const drain = new AbortController();
  const timeouts = { ...default_timeouts, ...options.timeouts };
  const context: Context<App> = {
    ...options,
    timeouts,
    elapsed_ms: options.elapsed_ms ?? (() => performance.now()),
    routes: compileRoutes(options.endpoints),
    draining: drain.signal,
    socketErrors: makeSocketErrors((fields, message) => options.log.info(fields, message), options.transport_security),
    rooms: openBodyRooms(options.bodies_bytes_max ?? bodiesBytesMax(), timeouts.room_ms),
    expecting: new WeakSet(),
  };
  const server = makeServer(context);
  server.decorateRequest('state');
  server.setErrorHandler((error, request, reply) => sendError(context, error, request, reply));
  server.addHook('onRequest', (request, reply, next) => receive(context, request, reply, next));
  for (const endpoint of options.endpoints) addRoute(server, context, endpoint);
  let listening: Listening | undefined;
  return {
    listen: async (address) => {
      listening = await listen(server, address);
      return listening.address;
    },
    draining: drain.signal,
    close: async ({ announce_ms, grace_ms }) => {
      drain.abort();
      if (announce_ms > 0) await sleep(announce_ms);
      await close(server, grace_ms, listening);
    },
  };
}

function makeServer<App>(context: Context<App>): FastifyInstance {
  const { timeouts, trusted_proxies, now_ms = Date.now } = context;
  const server = fastify({
    logger: false,
    genReqId: () => newId('req', now_ms()),
    requestIdHeader: false,
    exposeHeadRoutes: false,
    return503OnClosing: false, // has a format of its own, and we answer what comes
    forceCloseConnections: 'idle',
    keepAliveTimeout: timeouts.keep_alive_ms,
    requestTimeout: timeouts.request_ms,
    connectionTimeout: timeouts.silence_ms,
    trustProxy: (address: string) => isWithin(address, trusted_proxies()),
    routerOptions: { maxParamLength: path_part_length_max, querystringParser: () => ({}) },
    http: {
      maxHeaderSize: header_bytes_max,
      headersTimeout: timeouts.headers_ms,
      connectionsCheckingInterval: timeouts.check_every_ms,
      requireHostHeader: false, // Node's own refusal has no body: `receive` does it
    },
    clientErrorHandler: (error, socket) => context.socketErrors.answer(error, socket),
    frameworkErrors: (error, request, reply) => void refuseUrl(context, error, request, reply),
  });
  server.server.maxHeadersCount = headers_max;
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

/**
 * The first hook of the route answers, so nothing that Fastify does behind it (body parsers, further
 * hooks) is ever reached: the order of the checks is `serve`, readable in one place.
 */
function addRoute<App>(server: FastifyInstance, context: Context<App>, endpoint: Endpoint<App>): void {
  server.route({
    method: endpoint.method === 'GET' ? ['GET', 'HEAD'] : endpoint.method,
    url: fastifyPath(endpoint.path),
    onRequest: (request, reply) => void serve(context, endpoint, request, reply),
    handler: () => {
      throw new AssertionError('a request got past the hook that answers it');
    },
  });
}

/** Between two looks for connections whose last answer has gone out. */
const idle_check_ms = 100;

async function close(server: FastifyInstance, grace_ms: number, listening?: Listening): Promise<void> {
  const idle = setInterval(() => server.server.closeIdleConnections(), idle_check_ms);
  const cut = setTimeout(() => server.server.closeAllConnections(), grace_ms);
  try {
    await (listening ?? server).close();
  } finally {
    clearInterval(idle);
    clearTimeout(cut);
  }
}
