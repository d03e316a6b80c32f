import { createHash, createHmac } from 'node:crypto';

/** A request as it is about to be sent; `path` is with its query. */
export type OutgoingRequest = {
  method: string;
  origin: string;
  path: string;
  headers: Record<string, string>;
  body: Buffer | undefined;
};

/**
 * The headers of a request with those that prove who sends it, and its path where the proof stands there. Throws
 * NotStarted: without the proof nothing is sent.
 */
export type Authorize = (request: OutgoingRequest) => Promise<{ headers: Record<string, string>; path?: string }>;

/** Returns the SHA-256 of a text or of bytes, in hexadecimal digits. */
export function sha256Of(data: string | Buffer): string {
  return createHash('sha256').update(data).digest('hex');
}

/** Returns the signature of a text by a key that is derived step by step, as all clouds derive theirs. */
export function signWith(secret: string, steps: readonly string[], text: string): string {
  const key = steps.reduce<string | Buffer>(
    (so_far, step) => createHmac('sha256', so_far).update(step).digest(),
    secret,
  );
  return createHmac('sha256', key).update(text).digest('hex');
}

/** A text as RFC 3986 encodes it. */
function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}

/** A query in the order of its names, then of its values, each encoded. */
export function sortedQuery(search: URLSearchParams): string {
  return [...search]
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .toSorted()
    .join('&');
}
