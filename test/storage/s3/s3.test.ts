import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { parseKey } from '../../../src/storage/key.ts';
import { Intake } from '../../../src/storage/intake.ts';
import { uploadObject } from '../../../src/storage/s3/upload.ts';
import type { Storage } from '../../../src/storage/storage.ts';
import { read, same, storageConformance } from '../conformance.ts';
import { newKey } from '../samples.ts';
import { S3Imitation, type Fault, type Operation } from './imitation.ts';
import { bucketOf, impatient, openInImitation } from './subject.ts';

storageConformance('A bucket', async () => {
  const imitation = await S3Imitation.start();
  const storage = await openInImitation(imitation);
  return {
    storage,
    leftovers: async () => imitation.uploads.size,
    stop: async () => {
      storage.close();
      await imitation.stop();
    },
  };
});

const options = { content_type: 'image/png', size_limit_bytes: 100_000_000 };

let imitation: S3Imitation;
let storage: Storage & { close(): void };
beforeAll(async () => {
  imitation = await S3Imitation.start();
});
beforeEach(async () => {
  storage = await openInImitation(imitation); // a new one: the SDK retries less after many failures
});
afterEach(() => {
  storage.close();
  imitation.fault = () => undefined;
  imitation.page_max = 1_000;
});
afterAll(() => imitation.stop());

/** The first `times` requests of an operation go wrong. */
function failFirst(operation: Operation, fault: Fault, times: number): void {
  let left = times;
  imitation.fault = (each) => (each === operation && left-- > 0 ? fault : undefined);
}

const failAlways = (fault: Fault) => (imitation.fault = () => fault);

describe('a bucket', () => {
  test('has a file under the prefix and its key, with the type that its extension has', async () => {
    const key = newKey('mp3');
    await storage.put(key, Buffer.from('x'), { ...options, content_type: '' });
    expect(imitation.objects.get(`tests/${key}`)?.headers).toEqual({ 'content-type': 'audio/mpeg' });
  });

  test.each([1_000, 11_000_000])('is asked to encrypt %i bytes as the settings say', async (length) => {
    const encrypting = await openInImitation(imitation, { encryption: { algorithm: 'aws:kms', kms_key_id: 'key-7' } });
    const key = newKey();
    await encrypting.put(key, randomBytes(length), options);
    expect(imitation.objects.get(`tests/${key}`)?.headers).toMatchObject({
      'x-amz-server-side-encryption': 'aws:kms',
      'x-amz-server-side-encryption-aws-kms-key-id': 'key-7',
    });
    encrypting.close();
  });

  test('lists and removes more files than there are on a page', async () => {
    imitation.page_max = 3;
    const key = newKey();
    const keys = Array.from({ length: 10 }, (_, i) => key.replace('/0.png', `/${i}.png`));
    for (const each of keys) await storage.put(each, Buffer.from('x'), options);
    const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
    expect(await storage.list(account_id, owner_id)).toEqual(keys);
    await storage.remove(keys);
    expect(await storage.list(account_id, owner_id)).toEqual([]);
  });

  test('refuses whoever has other keys: the signature of every request counts', async () => {
    const other = await openInImitation(imitation);
    other.close();
    const { secret_access_key } = imitation.keys;
    imitation.keys.secret_access_key = 'another one';
    await expect(storage.put(newKey(), Buffer.from('x'), options)).rejects.toThrow('SignatureDoesNotMatch');
    imitation.keys.secret_access_key = secret_access_key;
  });

  test('holds two parts of a large file in memory at most, however fast it comes', async () => {
    let pulled = 0;
    let ahead_max = 0;
    const received = () => [...imitation.uploads.values()].flatMap(({ parts }) => [...parts.values()]).length;
    const source = Readable.from(
      (async function* () {
        for (; pulled < 60; pulled += 1) {
          ahead_max = Math.max(ahead_max, pulled * 2 ** 20 - received() * 5 * 2 ** 20);
          yield Buffer.alloc(2 ** 20, pulled);
        }
      })(),
      { highWaterMark: 1 },
    );
    await storage.put(newKey('mp4'), source, options);
    expect(pulled).toBe(60);
    expect(ahead_max).toBeLessThanOrEqual(15 * 2 ** 20);
  });
});

test('an object of a stated size is sent in parts of one size, of which 10,000 suffice', async () => {
  const bucket = await bucketOf(imitation);
  const send = async (name: string, size_bytes?: number) => {
    const object = { Bucket: imitation.bucket, Key: `backups/${name}` };
    const intake = new Intake(Buffer.alloc(14_000_000, 7), 14_000_000);
    await uploadObject(bucket, object, 'application/octet-stream', intake, size_bytes);
    return imitation.objects.get(object.Key)?.etag;
  };
  const ending = (parts: number) => expect.stringMatching(new RegExp(`-${parts}"$`));
  // The end of its tag is the number of its parts: of 7 MB each, where 70 GB are to come, and else of 5 MiB.
  expect(await send('of-70-gb', 70_000_000_000)).toEqual(ending(2));
  expect(await send('small', 14_000_000)).toEqual(ending(3));
  expect(await send('of-a-caller')).toEqual(ending(3));
  bucket.client.destroy();
});

describe('a bucket in trouble', () => {
  test.each(['slow', 'reset', 'cut'] as const)('is asked again after "%s", and nothing is lost', async (fault) => {
    const key = newKey();
    const bytes = randomBytes(200_000);
    failFirst('PutObject', fault, 2);
    await storage.put(key, bytes, options);
    expect(same(imitation.objects.get(`tests/${key}`)?.bytes, bytes)).toBe(true);
  });

  test.each(['UploadPart', 'CreateMultipartUpload', 'CompleteMultipartUpload'] as const)(
    'is asked again when %s breaks in the middle of a large file',
    async (operation) => {
      const key = newKey();
      const bytes = randomBytes(11_000_000);
      failFirst(operation, 'cut', 1);
      await storage.put(key, Readable.from([bytes]), options);
      expect(same(imitation.objects.get(`tests/${key}`)?.bytes, bytes)).toBe(true);
    },
  );

  test('knows its file again when only the answer to the last request about it was lost', async () => {
    const key = newKey();
    const bytes = randomBytes(11_000_000);
    failFirst('CompleteMultipartUpload', 'lost', 1);
    await storage.put(key, bytes, options);
    expect(same(await read(storage, key), bytes)).toBe(true);
    expect(imitation.operations.filter((operation) => operation === 'CompleteMultipartUpload').length).toBeGreaterThan(
      1,
    );
  });

  test('throws where an upload in parts is gone and the object is another one', async () => {
    const key = newKey();
    await storage.put(key, randomBytes(10), options);
    imitation.fault = (operation) => {
      if (operation === 'CompleteMultipartUpload') imitation.uploads.clear();
      return undefined;
    };
    await expect(storage.put(key, randomBytes(11_000_000), options)).rejects.toThrow('gone before its end');
  });

  test.each(['slow', 'reset', 'hang', 'denied'] as const)(
    'throws StorageUnavailable from everything while it answers "%s", keeps the old file, and works afterwards',
    async (fault) => {
      const key = newKey();
      const { account_id = '', owner_id = '' } = parseKey(key) ?? {};
      await storage.put(key, Buffer.from('before'), options);
      failAlways(fault);
      const hurried = await openInImitation(imitation, {}, impatient);
      const work = [
        hurried.put(key, Buffer.from('after'), options),
        hurried.put(newKey(), randomBytes(6_000_000), options),
        hurried.stat(key),
        hurried.open(key),
        hurried.remove([key]),
        hurried.list(account_id, owner_id),
        hurried.sweepTemporaryFiles(0),
      ];
      for (const { status, reason } of await rejections(work)) {
        expect([status, reason]).toEqual(['rejected', 'StorageUnavailable']);
      }
      imitation.fault = () => undefined;
      const again = () => read(hurried, key).catch(() => undefined); // a busy machine takes longer than it has
      await expect.poll(again).toEqual(Buffer.from('before'));
      hurried.close();
    },
  );

  test('is not ready after a file that it did not take, until it takes a few bytes', async () => {
    failAlways('reset');
    await expect(storage.put(newKey(), Buffer.from('x'), options)).rejects.toThrow('s3://files-of-tests/tests/');
    expect(await storage.ready()).toBe(false);
    imitation.fault = (operation) => (operation === 'PutObject' ? 'denied' : undefined);
    expect(await storage.ready()).toBe(false);
    imitation.fault = () => undefined;
    expect(await storage.ready()).toBe(true);
    expect(imitation.objects.has('tests/medley-probe')).toBe(true);
  });

  test('goes on with a file whose connection breaks again and again, from the byte where it broke', async () => {
    const key = newKey('mp4');
    const bytes = randomBytes(3_000_000);
    await storage.put(key, bytes, options);
    failFirst('GetObject', 'cut', 3);
    expect(same(await read(storage, key), bytes)).toBe(true);
    failFirst('GetObject', 'cut', 2);
    expect(same(await read(storage, key, { start: 1_000, end: 2_000_000 }), bytes.subarray(1_000, 2_000_001))).toBe(
      true,
    );
  });

  test('ends a file with an error when it stays away in the middle, or when the file has become another one', async () => {
    const key = newKey('mp4');
    await storage.put(key, randomBytes(3_000_000), options);
    for (const change of [() => failAlways('reset'), () => storage.put(key, randomBytes(3_000_000), options)]) {
      failFirst('GetObject', 'cut', 1);
      const opened = await storage.open(key); // its body waits in the socket
      await change();
      await expect(buffer(opened?.stream ?? Readable.from([]))).rejects.toThrow(/cannot be reached|PreconditionFailed/);
      imitation.fault = () => undefined;
    }
  });

  test('lets go of the connection of a reader that leaves', async () => {
    const key = newKey('mp4');
    await storage.put(key, randomBytes(30_000_000), options);
    const opened = await storage.open(key);
    opened?.stream.destroy();
    expect(opened?.stream.destroyed).toBe(true);
    const whole = await read(storage, key, { start: 29_999_999, end: 29_999_999 });
    expect(whole).toHaveLength(1);
  });

  test('has its unfinished uploads swept once they are old, on all pages, and those of others are spared', async () => {
    imitation.fault = (operation) => (operation === 'AbortMultipartUpload' ? 'denied' : undefined);
    const breaking = async () => {
      const chunks = async function* () {
        yield Buffer.alloc(6_000_000);
        throw new Error('broken');
      };
      await expect(storage.put(newKey(), Readable.from(chunks()), options)).rejects.toThrow('broken');
    };
    for (let i = 0; i < 5; i += 1) await breaking();
    imitation.fault = () => undefined;
    const upload = { initiated: new Date(0), headers: {}, parts: new Map() };
    imitation.uploads.set('of-others', { key: `elsewhere/${newKey()}`, ...upload });
    imitation.uploads.set('no-key', { key: 'tests/other', ...upload });
    imitation.page_max = 2;
    expect(imitation.uploads.size).toBe(7);
    expect(await storage.sweepTemporaryFiles(60_000)).toBe(0);
    expect(await storage.sweepTemporaryFiles(-1)).toBe(5);
    expect([...imitation.uploads.keys()].toSorted()).toEqual(['no-key', 'of-others']);
    imitation.uploads.clear();
  });
});

async function rejections(work: readonly Promise<unknown>[]) {
  const results = await Promise.allSettled(work);
  return results.map((result) => ({
    status: result.status,
    reason: result.status === 'rejected' && result.reason instanceof Error ? result.reason.name : undefined,
  }));
}

describe('a presigned address', () => {
  const presign_options = {
    lifetime_s: 60,
    content_type: 'image/png',
    content_disposition: 'inline; filename="a.png"',
  };

  test('serves the file, in parts too, for its lifetime and to nobody who changes it', async () => {
    const presigning = await openInImitation(imitation, { links: 'presigned' });
    const key = newKey();
    await presigning.put(key, Buffer.from('0123456789'), options);
    const url = (await presigning.presign?.(key, presign_options)) ?? '';
    const response = await fetch(url);
    expect(await response.text()).toBe('0123456789');
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'image/png',
      'content-disposition': 'inline; filename="a.png"',
    });
    const ranged = await fetch(url, { headers: { range: 'bytes=2-4' } });
    expect([ranged.status, await ranged.text()]).toEqual([206, '234']);
    const altered = await fetch(url.replace('Expires=60', 'Expires=600'));
    expect([altered.status, await altered.text()]).toEqual([403, expect.stringContaining('SignatureDoesNotMatch')]);
    const other = await fetch(url.replace(key, newKey()));
    expect(other.status).toBe(403);
    imitation.now = () => Date.now() + 62_000;
    expect((await fetch(url)).status).toBe(403);
    imitation.now = Date.now;
    presigning.close();
  });

  test('is made only where the settings say so', () => {
    expect(storage.presign).toBeUndefined();
  });
});
