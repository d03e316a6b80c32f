import { createHash, createHmac } from 'node:crypto';
import type { HmacKey } from '../../catalog/model.ts';
import { fillWords } from '../../catalog/hmac-words.ts';
import { randomBase62 } from '../../lib/ids.ts';
import { sha256Of, sortedQuery, type Authorize, type OutgoingRequest } from './authorize.ts';

/** Opens signatures by HMAC, of a text that the configuration describes. */
export function openHmac(key: HmacKey, now: () => number): Authorize {
  return async (request) => signByHmac(request, key, { now_ms: now(), nonce: randomBase62(nonce_length) });
}

const nonce_length = 24;

/**
 * The headers of a request with its signature (RFC 2104), and its path where the query has a part of it. The query is
 * signed as it is before the signature's own members are added.
 */
export function signByHmac(
  { method, origin, path, headers, body = Buffer.alloc(0) }: OutgoingRequest,
  key: HmacKey,
  { now_ms, nonce }: { now_ms: number; nonce: string },
): { headers: Record<string, string>; path: string } {
  const url = new URL(origin + path);
  const words: Record<string, string> = {
    method,
    host: url.host,
    path: url.pathname,
    query: sortedQuery(url.searchParams),
    target: path,
    timestamp: timestampOf(now_ms, key.timestamp),
    nonce,
    key_id: key.key_id ?? '',
    body: body.toString('latin1'), // its bytes, whatever they are
    body_sha256: sha256Of(body),
    body_sha256_base64: createHash('sha256').update(body).digest('base64'),
    body_md5: createHash('md5').update(body).digest('hex'),
    body_md5_base64: createHash('md5').update(body).digest('base64'),
    content_type: headers['content-type'] ?? '',
  };
  const text = fillWords(latin1(key.text), words, (value, name) => (name === 'body' ? value : latin1(value)));
  const secret = key.secret_encoding === undefined ? key.secret : Buffer.from(key.secret, key.secret_encoding);
  const signature = createHmac(key.algorithm, secret).update(text, 'latin1').digest(key.encoding);
  const all = { ...words, signature };
  const filled = (texts: Record<string, string>) =>
    Object.entries(texts).map(([name, template]) => [name, fillWords(template, all)] as const);
  for (const [name, value] of filled(key.query)) url.searchParams.set(name, value);
  const lower = filled(key.headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const has_query = Object.keys(key.query).length > 0;
  return {
    headers: { ...headers, ...Object.fromEntries(lower) },
    path: has_query ? url.pathname + url.search : path,
  };
}

/** The UTF-8 bytes of a text, one character each. */
function latin1(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

function timestampOf(now_ms: number, form: HmacKey['timestamp']): string {
  if (form === 'iso') return new Date(now_ms).toISOString();
  return String(form === 'milliseconds' ? now_ms : Math.floor(now_ms / 1000));
}
