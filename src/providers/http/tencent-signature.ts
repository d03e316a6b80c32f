import type { Credentials } from '../../catalog/model.ts';
import { sha256Of, signWith, sortedQuery, type Authorize, type OutgoingRequest } from './authorize.ts';

/** Parts of a signature beside the request. */
type TencentKey = Omit<Credentials & { kind: 'tencent' }, 'kind'>;

const algorithm = 'TC3-HMAC-SHA256';

/** Opens signatures of Tencent Cloud, version 3. */
export function openTencent(key: TencentKey, now: () => number): Authorize {
  return async (request) => ({ headers: signForTencent(request, key, now()) });
}

/**
 * The headers of a request with its signature (tencentcloud.com/document/product/267/37447, "Signature v3", November
 * 2026): the type, the host and the action are signed, in small letters. Which action it is stands in `x-tc-action`, which
 * the provider's or the route's headers give.
 */
export function signForTencent(
  { method, origin, path, headers: own_headers, body = Buffer.alloc(0) }: OutgoingRequest,
  { secret_id, secret_key, service, region, version, token }: TencentKey,
  now_ms: number,
): Record<string, string> {
  const url = new URL(origin + path);
  const seconds = String(Math.floor(now_ms / 1000));
  const day = new Date(now_ms).toISOString().slice(0, 10);
  const lower = Object.fromEntries(Object.entries(own_headers).map(([name, value]) => [name.toLowerCase(), value]));
  const headers: Record<string, string> = {
    'content-type': method === 'GET' ? 'application/x-www-form-urlencoded' : 'application/json; charset=utf-8',
    ...lower,
    'x-tc-timestamp': seconds,
    ...(region !== undefined && { 'x-tc-region': region }),
    ...(version !== undefined && { 'x-tc-version': version }),
    ...(token !== undefined && { 'x-tc-token': token }),
  };
  const signed: Record<string, string | undefined> = { ...headers, host: url.host };
  const names = ['content-type', 'host', 'x-tc-action'].filter((name) => signed[name] !== undefined);
  const canonical = [
    method,
    url.pathname,
    sortedQuery(url.searchParams),
    names.map((name) => `${name}:${(signed[name] ?? '').trim().toLowerCase()}\n`).join(''),
    names.join(';'),
    sha256Of(body),
  ].join('\n');
  const scope = `${day}/${service}/tc3_request`;
  const text = [algorithm, seconds, scope, sha256Of(canonical)].join('\n');
  const signature = signWith(`TC3${secret_key}`, [day, service, 'tc3_request'], text);
  const authorization = `${algorithm} Credential=${secret_id}/${scope}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { ...headers, authorization };
}
