import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** Signature Version 4, from the side of the server: the AWS documentation, "Authenticating Requests". */

export type Keys = { access_key_id: string; secret_access_key: string };

/** The code of S3's error; undefined for a request that is signed as it should be. */
export function refusalOf(request: IncomingMessage, keys: Keys, now_ms: number): string | undefined {
  const url = new URL(request.url ?? '', 'http://imitation');
  return url.searchParams.has('X-Amz-Signature')
    ? refusalOfAddress(request, url, keys, now_ms)
    : refusalOfHeader(request, url, keys, now_ms);
}

const skew_ms_max = 15 * 60_000;
const presign_s_max = 604_800;

function refusalOfHeader(request: IncomingMessage, url: URL, keys: Keys, now_ms: number): string | undefined {
  const { authorization = '', 'x-amz-date': date, 'x-amz-content-sha256': payload } = request.headers;
  const match = /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$/.exec(
    authorization,
  );
  if (!match || typeof date !== 'string' || typeof payload !== 'string') return 'AccessDenied';
  const [, credential = '', signed_headers = '', signature = ''] = match;
  if (Math.abs(timeOf(date) - now_ms) > skew_ms_max) return 'RequestTimeTooSkewed';
  if (!signed_headers.split(';').includes('host')) return 'AccessDenied';
  return compare(request, url, keys, { date, credential, signed_headers, signature, payload });
}

function refusalOfAddress(request: IncomingMessage, url: URL, keys: Keys, now_ms: number): string | undefined {
  const value = (name: string) => url.searchParams.get(`X-Amz-${name}`) ?? '';
  const [date, lifetime_s] = [value('Date'), Number(value('Expires'))];
  if (value('Algorithm') !== 'AWS4-HMAC-SHA256') return 'AuthorizationQueryParametersError';
  if (!(lifetime_s >= 1 && lifetime_s <= presign_s_max)) return 'AuthorizationQueryParametersError';
  if (now_ms > timeOf(date) + lifetime_s * 1000 || timeOf(date) > now_ms + skew_ms_max) return 'AccessDenied';
  const signature = value('Signature');
  url.searchParams.delete('X-Amz-Signature');
  return compare(request, url, keys, {
    date,
    credential: value('Credential'),
    signed_headers: value('SignedHeaders'),
    signature,
    payload: 'UNSIGNED-PAYLOAD',
  });
}

type Claim = { date: string; credential: string; signed_headers: string; signature: string; payload: string };

function compare(request: IncomingMessage, url: URL, keys: Keys, claim: Claim): string | undefined {
  const [id, day = '', region = '', service = '', end] = claim.credential.split('/');
  if (id !== keys.access_key_id) return 'InvalidAccessKeyId';
  if (service !== 's3' || end !== 'aws4_request' || !claim.date.startsWith(day)) return 'AccessDenied';
  const headers = claim.signed_headers.split(';').map((name) => `${name}:${headerText(request, name)}\n`);
  const canonical = [
    request.method,
    url.pathname,
    canonicalQuery(url),
    headers.join(''),
    claim.signed_headers,
    claim.payload,
  ].join('\n');
  const scope = `${day}/${region}/${service}/${end}`;
  const to_sign = ['AWS4-HMAC-SHA256', claim.date, scope, sha256(canonical)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce(
    (secret: string | Buffer, part) => createHmac('sha256', secret).update(part).digest(),
    `AWS4${keys.secret_access_key}`,
  );
  const expected = createHmac('sha256', key).update(to_sign).digest('hex');
  return expected === claim.signature ? undefined : 'SignatureDoesNotMatch';
}

function headerText(request: IncomingMessage, name: string): string {
  return [request.headers[name] ?? ''].flat().join(',').trim().replaceAll(/ +/g, ' ');
}

/** Sorted by name, everything but unreserved characters in percent notation. */
function canonicalQuery({ searchParams }: URL): string {
  const encode = (text: string) =>
    encodeURIComponent(text).replaceAll(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const pairs = [...searchParams].map(([name, value]) => `${encode(name)}=${encode(value)}`);
  return pairs.toSorted((a, b) => (a < b ? -1 : 1)).join('&');
}

/** 20261125T131500Z */
function timeOf(date: string): number {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(date) ?? [];
  return Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
}

export function sha256(bytes: string | Buffer): string {
  return createHash('sha256').update(bytes).digest('hex');
}
