import { timingSafeEqual } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { Logger } from 'pino';
import { ConfigError, type MetricsAddress } from '../config.ts';
import { sha256 } from '../lib/sha256.ts';
import { metrics_content_type } from '../metrics/registry.ts';
import { openScrape, type ScrapeParts } from './scrape.ts';

/** The parts of the app that serving metrics takes. */
export type MetricsParts = ScrapeParts & {
  readonly config: { readonly metrics_token: string | undefined };
  readonly log: Logger;
  onStop(close: () => Promise<void> | void): void;
};

/** A scraper sends a few lines, and keeps the connection until the next time, mostly 15 s to a minute later. */
const timeouts = {
  headersTimeout: 2_000,
  requestTimeout: 5_000,
  keepAliveTimeout: 72_000,
  connectionsCheckingInterval: 500,
};

const plain_text = 'text/plain; charset=utf-8';

/**
 * Serves /metrics on a port of its own until the app stops, in every role: where MEDLEY_METRICS names one. Returns the
 * port. Rejects with ConfigError where it cannot listen there.
 */
export async function startMetricsServer(app: MetricsParts, { host, port }: MetricsAddress): Promise<number> {
  const scrape = openScrape(app);
  const server = createServer(timeouts);
  server.maxConnections = 64;
  server.on('request', (request, response) => {
    request.resume();
    const send = (status: number, type: string, text: string, headers: Record<string, string> = {}) =>
      response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', ...headers }).end(text);
    if ((request.url ?? '').split('?', 1)[0] !== '/metrics') return void send(404, plain_text, 'Metrics: /metrics\n');
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return void send(405, plain_text, 'Only GET.\n', { allow: 'GET, HEAD' });
    const { metrics_token } = app.config;
    if (metrics_token !== undefined && !hasToken(request.headers, metrics_token))
      return void send(401, plain_text, 'The token is missing or wrong.\n', { 'www-authenticate': 'Bearer' });
    scrape().then(
      (text) => send(200, metrics_content_type, text),
      (error: unknown) => {
        app.log.error({ err: error }, 'the metrics could not be read');
        send(500, plain_text, 'The metrics could not be read.\n');
      },
    );
  });
  await listening(server, host, port);
  app.onStop(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  const bound = server.address();
  return bound !== null && typeof bound === 'object' ? bound.port : port;
}

async function listening(server: Server, host: string, port: number): Promise<void> {
  try {
    server.listen({ host, port });
    await once(server, 'listening');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new ConfigError(
      `MEDLEY_METRICS: nothing can listen at ${host}:${port} (${code}). Set it to a free port of this machine.`,
    );
  }
}

/** Returns whether the headers carry the token, without telling by the time how much of it is right. */
export function hasToken({ authorization }: IncomingHttpHeaders, token: string): boolean {
  const [, sent] = /^bearer +(.+)$/i.exec(authorization ?? '') ?? [];
  return sent !== undefined && timingSafeEqual(sha256(sent), sha256(token));
}
