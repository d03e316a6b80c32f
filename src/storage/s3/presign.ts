import type { GetObjectCommand } from '@aws-sdk/client-s3';
import { assert } from '../../lib/assert.ts';
import { isRecord } from '../../lib/is-record.ts';
import type { PresignOptions } from '../storage.ts';
import type { Bucket } from './bucket.ts';

/**
 * Addresses of objects that work without a key, for a while (Signature Version 4, "Authenticating Requests: Using Query
 * Parameters"). The SDK writes the request, with its endpoint and its query, and this signs it in place of the SDK.
 */

/** Returns the address of the object, signed for so long. Rejects with StorageUnavailable without credentials. */
export async function presign(
  bucket: Bucket,
  key: string,
  { lifetime_s, content_type, content_disposition }: PresignOptions,
): Promise<string> {
  const { SignatureV4 } = await import('@smithy/signature-v4');
  const { region, credentials, sha256 } = bucket.client.config;
  const signer = new SignatureV4({ service: 's3', region, credentials, sha256, uriEscapePath: false });
  const get = new bucket.sdk.GetObjectCommand({
    ...bucket.object(key),
    ResponseContentType: content_type,
    ResponseContentDisposition: content_disposition,
  });
  const { protocol, hostname, port, path, query } = await bucket.ask(() => requestOf(bucket, get));
  const host = port === undefined ? hostname : `${hostname}:${port}`;
  // The reader of the link sends a range or not, and no body: only the host is signed.
  const headers = { host, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' };
  const plain = { method: 'GET', protocol, hostname, path, headers, ...(port !== undefined && { port }), query };
  const signed = await bucket.ask(() => signer.presign(plain, { expiresIn: lifetime_s }));
  return `${protocol}//${host}${path}?${queryText(signed.query)}`;
}

/** A request as the SDK writes it, without what it would send beside the address. */
type Written = {
  protocol: string;
  hostname: string;
  port?: number;
  path: string;
  query: Record<string, string>;
};

/** Returns the request that the SDK would sign next. Nothing is sent. */
async function requestOf({ client }: Bucket, get: GetObjectCommand): Promise<Written> {
  let written: unknown;
  get.middlewareStack.add(
    () => async (args) => {
      written = args.request;
      return { response: {}, output: { $metadata: {} } };
    },
    { step: 'build', priority: 'low', name: 'takeRequest' },
  );
  await client.send(get);
  assert(isWritten(written), 'the SDK writes no request with an address');
  return written;
}

function isWritten(value: unknown): value is Written {
  if (!isRecord(value)) return false;
  const { protocol, hostname, port, path, query } = value;
  const is_address = [protocol, hostname, path].every((part) => typeof part === 'string');
  const is_query = isRecord(query) && Object.values(query).every((each) => typeof each === 'string');
  return is_address && is_query && (port === undefined || typeof port === 'number');
}

/** In percent notation but for unreserved characters, as the signature has it. */
function queryText(query: Record<string, unknown> = {}): string {
  const encode = (text: string) =>
    encodeURIComponent(text).replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);
  return Object.entries(query)
    .map(([name, value]) => `${encode(name)}=${encode(String(value))}`)
    .join('&');
}
