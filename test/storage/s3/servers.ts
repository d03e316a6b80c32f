import { randomBytes } from 'node:crypto';
import { CreateBucketCommand, ListMultipartUploadsCommand, S3Client } from '@aws-sdk/client-s3';
import { describe, expect, test } from 'vitest';
import { Semaphore } from '../../../src/concurrency/semaphore.ts';
import { openS3Storage } from '../../../src/storage/s3/s3.ts';
import type { BucketSettings } from '../../../src/storage/settings.ts';
import { same, storageConformance } from '../conformance.ts';
import { newKey } from '../samples.ts';

/** A server that npm run test:s3 has started. */
type Server = {
  name: string;
  endpoint: string;
  access_key_id: string;
  secret_access_key: string;
  verifies_signatures: boolean;
};

const servers: Server[] = JSON.parse(process.env['MEDLEY_TEST_S3'] ?? '[]');

/** A bucket of its own, and a client of the tests beside the storage. */
async function openBucket(server: Server, more: Partial<BucketSettings> = {}) {
  const { endpoint, access_key_id: accessKeyId, secret_access_key: secretAccessKey } = server;
  const credentials = { accessKeyId, secretAccessKey };
  const bucket = `files-${randomBytes(6).toString('hex')}`;
  const client = new S3Client({ endpoint, credentials, region: 'us-east-1', forcePathStyle: true });
  await client.send(new CreateBucketCommand({ Bucket: bucket }));
  const storage = await openS3Storage(
    { bucket, endpoint, prefix: 'tests/', force_path_style: true, links: 'presigned', ...more },
    { credentials, uploads: new Semaphore({ name: 'Uploads', bound: 4 }) },
  );
  const leftovers = async () => {
    const { Uploads = [] } = await client.send(new ListMultipartUploadsCommand({ Bucket: bucket }));
    return Uploads.length;
  };
  const stop = async () => {
    storage.close();
    client.destroy();
  };
  return { storage, leftovers, stop };
}

describe.each(servers)('$name', (server) => {
  storageConformance(`A bucket of ${server.name}`, () => openBucket(server));

  test('serves a file at a presigned address, in parts too, as type and name say', async () => {
    const { storage, stop } = await openBucket(server);
    const bytes = randomBytes(100_000);
    const key = newKey();
    await storage.put(key, bytes, { content_type: '', size_limit_bytes: bytes.length });
    const content_disposition = 'inline; filename="a.png"';
    const url =
      (await storage.presign?.(key, { lifetime_s: 60, content_type: 'image/png', content_disposition })) ?? '';
    const whole = await fetch(url);
    expect(whole.headers.get('content-type')).toBe('image/png');
    expect(whole.headers.get('content-disposition')).toBe(content_disposition);
    expect(same(Buffer.from(await whole.arrayBuffer()), bytes)).toBe(true);
    const part = await fetch(url, { headers: { range: 'bytes=10-19' } });
    expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, bytes.subarray(10, 20)]);
    const altered = await fetch(url.replace('Expires=60', 'Expires=61'));
    expect(altered.status).toBe(server.verifies_signatures ? 403 : 200);
    await stop();
  });

  test('has nothing to sweep after a file that was stored', async () => {
    const { storage, stop } = await openBucket(server);
    await storage.put(newKey(), randomBytes(11_000_000), { content_type: '', size_limit_bytes: 20_000_000 });
    expect(await storage.sweepTemporaryFiles(-1_000)).toBe(0);
    await stop();
  });
});
