import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import makeRouter, { type HTTPMethod } from 'find-my-way';
import { ApiError } from '../errors.ts';
import { listen, type ListenAddress, type ListeningServer } from './listen.ts';
import { default_timeouts, type PipelineOptions } from './options.ts';
import { compileRoutes, routerPath } from './routes.ts';
import { carriesKey, type Context, receive, refuseUrl, serve, serveUnknown, wantsJson } from './serve.ts';
import { makeSocketErrors } from './socket-errors.ts';

const header_bytes_max = 64 * 1024;
const headers_max = 1_000;

/** Longer parts never come this far: the URL itself is refused before. */
const path_part_length_max = 65_536;

export type Pipeline = {
  /** Starts to accept connections and returns its address: port 0 is chosen by the system. */
  listen(address: ListenAddress): Promise<AddressInfo>;
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
  const [drain, cut] = [new AbortController(), new AbortController()];
  const timeouts = { ...default_timeouts, ...options.timeouts };
  const context: Context<App> = {
    ...options,
    timeouts,
    elapsed_ms: options.elapsed_ms ?? (() => performance.now()),
    routes: compileRoutes(options.endpoints),
    draining: drain.signal,
    cut: cut.signal,
    socketErrors: makeSocketErrors((fields, message) => options.log.info(fields, message), options.transport_security),
    expecting: new WeakSet(),
  };
  const server = makeServer(context);
  let listening: ListeningServer | undefined;
  return {
    listen: async (address) => {
      listening = await listen(server, address);
      return listening.address;
    },
    draining: drain.signal,
    close: async ({ announce_ms, grace_ms }) => {
      drain.abort();
      if (announce_ms > 0) await sleep(announce_ms);
      await close(server, { grace_ms, cut }, listening);
    },
  };
}

/** Node's server and a router. What happens to a request is in `serve`, readable in one place. */
function makeServer<App>(context: Context<App>): Server {
  const { timeouts } = context;
  const server = createServer({
    maxHeaderSize: header_bytes_max,
    headersTimeout: timeouts.headers_ms,
    requestTimeout: timeouts.request_ms,
    keepAliveTimeout: timeouts.keep_alive_ms,
    connectionsCheckingInterval: timeouts.check_every_ms,
    requireHostHeader: false, // Node's own refusal has no body: `serve` does it
  });
  server.setTimeout(timeouts.silence_ms);
  server.maxHeadersCount = headers_max;
  const route = openRouter(context);
  server.on('request', route);
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    context.expecting.add(request);
    route(request, response);
  });
  server.on('checkExpectation', route); // RFC 9110 lets a server ignore what it does not know
  server.on('clientError', (error, socket) => context.socketErrors.answer(error, socket));
  server.on('connect', (_request, socket) => {
    context.socketErrors.refuse(
      socket,
      new ApiError('method_not_allowed', 'This server is not a proxy.', { headers: { allow: 'GET, HEAD' } }),
    );
  });
  return server;
}

type Route = (request: IncomingMessage, response: ServerResponse) => void;

function openRouter<App>(context: Context<App>): Route {
  const unknown: Route = (request, response) =>
    receive(context, request, response, (exchange) => serveUnknown(context, exchange));
  const router = makeRouter({
    maxParamLength: path_part_length_max,
    querystringParser: () => ({}),
    defaultRoute: unknown,
    onBadUrl: (part, request, response) =>
      receive(context, request, response, (exchange) => refuseUrl(context, exchange, part)),
  });
  for (const endpoint of context.endpoints) {
    const methods: HTTPMethod[] = endpoint.method === 'GET' ? ['GET', 'HEAD'] : [endpoint.method];
    router.on(methods, routerPath(endpoint.path), (request, response, params) =>
      receive(context, request, response, (exchange) => serve(context, endpoint, exchange, params)),
    );
  }
  router.all('*', unknown); // of a method that no endpoint has, too, the URL is read
  return (request, response) => {
    const { url = '', headers } = request;
    const is_elsewhere = !url.startsWith('/v1/') || /^\/v1\/(?:v1|v1beta|upload)\//.test(url);
    if (is_elsewhere && (carriesKey(headers) || wantsJson(request))) request.url = context.routes.meantUrl(url) ?? url;
    void router.lookup(request, response);
  };
}

/** Between two looks for connections whose last answer has gone out. */
const idle_check_ms = 100;

async function close(
  server: Server,
  { grace_ms, cut }: { grace_ms: number; cut: AbortController },
  listening?: ListeningServer,
): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), idle_check_ms);
  const timer = setTimeout(() => {
    cut.abort(new ApiError('unavailable', 'The service was stopped before it had answered. Send the request again.'));
    server.closeAllConnections();
  }, grace_ms);
  try {
    await listening?.close();
  } finally {
    clearInterval(idle);
    clearTimeout(timer);
  }
}
