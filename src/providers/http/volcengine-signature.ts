import type { Credentials } from '../../catalog/model.ts';
import { sha256Of, signWith, sortedQuery, type Authorize, type OutgoingRequest } from './authorize.ts';

/** Parts of a signature beside the request. */
type VolcengineKey = Omit<Credentials & { kind: 'volcengine' }, 'kind'>;

const algorithm = 'HMAC-SHA256';

/** Opens signatures of Volcengine. */
export function openVolcengine(key: VolcengineKey, now: () => number): Authorize {
  return async (request) => ({ headers: signForVolcengine(request, key, now()) });
}

/**
 * The headers of a request with its signature, which is that of AWS but for its names (volcengine.com/docs/6369/67269, and
 * src/base/sign.ts of volc-sdk-nodejs, November 2026). The path is signed as it is sent.
 */
export function signForVolcengine(
  { method, origin, path, headers: own_headers, body = Buffer.alloc(0) }: OutgoingRequest,
  { access_key_id, secret_access_key, region, service, session_token }: VolcengineKey,
  now_ms: number,
): Record<string, string> {
  const url = new URL(origin + path);
  const time = new Date(now_ms).toISOString().replaceAll(/[:-]|\.\d{3}/g, '');
  const day = time.slice(0, 8);
  const digest = sha256Of(body);
  const headers: Record<string, string> = {
    ...Object.fromEntries(Object.entries(own_headers).map(([name, value]) => [name.toLowerCase(), value])),
    'x-date': time,
    'x-content-sha256': digest,
    ...(session_token !== undefined && { 'x-security-token': session_token }),
  };
  const signed: Record<string, string | undefined> = { ...headers, host: url.host };
  const names = ['content-type', 'host', 'x-content-sha256', 'x-date', 'x-security-token'].filter(
    (name) => signed[name] !== undefined,
  );
  const canonical = [
    method,
    url.pathname,
    sortedQuery(url.searchParams),
    names.map((name) => `${name}:${(signed[name] ?? '').trim()}\n`).join(''),
    names.join(';'),
    digest,
  ].join('\n');
  const scope = `${day}/${region}/${service}/request`;
  const text = [algorithm, time, scope, sha256Of(canonical)].join('\n');
  const signature = signWith(secret_access_key, [day, region, service, 'request'], text);
  const authorization = `${algorithm} Credential=${access_key_id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { ...headers, authorization };
}
