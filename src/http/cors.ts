import type { IncomingHttpHeaders } from 'node:http';

/** Response headers that a page of another origin may read. */
const exposed = [
  'x-request-id',
  'request-id',
  'retry-after',
  'x-should-retry',
  'x-ratelimit-limit-requests',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-reset-requests',
  'x-cost-amount',
  'x-cost-currency',
  'x-ignored-fields',
  'x-max-tokens',
  'x-route',
  'x-route-reason',
  'x-tools-left-out',
  'x-task-id',
  'idempotency-replayed',
].join(', ');

/**
 * Headers for a browser page of another origin; none unless `server.cors_origins` names it (`*` names
 * all). Keys travel in headers, so no credentials are allowed and no cookie ever decides anything.
 */
export function corsHeaders(origins: readonly string[], headers: IncomingHttpHeaders): Record<string, string> {
  if (origins.length === 0) return {};
  const { origin } = headers;
  const named = origin !== undefined && (origins.includes('*') || origins.includes(origin));
  if (!named) return { vary: 'origin' };
  return { vary: 'origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed };
}

/** The answer to a preflight request of a named origin; undefined for any other request. */
export function preflightHeaders(
  origins: readonly string[],
  method: string,
  headers: IncomingHttpHeaders,
): Record<string, string> | undefined {
  if (method !== 'OPTIONS' || headers['access-control-request-method'] === undefined) return undefined;
  const cors = corsHeaders(origins, headers);
  if (cors['access-control-allow-origin'] === undefined) return undefined;
  return {
    ...cors,
    'access-control-allow-methods': 'GET, HEAD, POST, PATCH, DELETE',
    // Whatever the page asks for: SDKs add a dozen headers of their own, and none of them grants anything.
    'access-control-allow-headers': headers['access-control-request-headers'] ?? '',
    'access-control-max-age': '600',
  };
}
