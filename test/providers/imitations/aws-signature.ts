import { createHash, createHmac } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** A request as a server received it. */
export type Received = { method?: string; path: string; headers: IncomingHttpHeaders; body: string };

const form =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request, SignedHeaders=([^,]+), Signature=([0-9a-f]{64})$/;

/**
 * Returns the fault in the signature of a request, by AWS's description of version 4 ("Create a signed AWS API request"),
 * written anew; undefined if it is right. Each part of the path is encoded once more than it was sent.
 */
export function signatureProblem(request: Received, secret: string, scope: { region: string; service: string }) {
  const { method = 'POST', path, headers, body } = request;
  const match = form.exec(headers.authorization ?? '');
  if (!match) return 'there is no signature';
  const [, , day = '', region = '', service = '', names = '', signature] = match;
  if (region !== scope.region || service !== scope.service) return `the scope is ${region}/${service}`;
  const time = String(headers['x-amz-date']);
  if (!time.startsWith(day)) return 'the day is not that of the time';
  if (!names.split(';').includes('host')) return 'the host is not signed';
  const { pathname, searchParams } = new URL(path, 'http://h');
  const canonical = [
    method,
    pathname.split('/').map(encoded).join('/'),
    [...searchParams]
      .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
      .toSorted()
      .join('&'),
    names
      .split(';')
      .map((name) => `${name}:${String(headers[name]).trim()}\n`)
      .join(''),
    names,
    hash(body),
  ].join('\n');
  const text = ['AWS4-HMAC-SHA256', time, `${day}/${region}/${service}/aws4_request`, hash(canonical)].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(
    (so_far, part) => createHmac('sha256', so_far).update(part).digest(),
    `AWS4${secret}`,
  );
  return createHmac('sha256', key).update(text).digest('hex') === signature ? undefined : 'the signature is another';
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
}
