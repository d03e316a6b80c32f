import { Readable } from 'node:stream';
import type { GetObjectCommandOutput } from '@aws-sdk/client-s3';
import { assert } from '../../lib/assert.ts';
import type { ByteRange, OpenedFile, StoredFile } from '../storage.ts';
import type { Bucket } from './bucket.ts';

/** Times that a broken answer is asked for again, from where it broke, without a byte more of it. */
const resumes_max = 3;

/** Facts about an object; undefined if it is not there. */
export async function statObject(bucket: Bucket, key: string): Promise<StoredFile | undefined> {
  const head = new bucket.sdk.HeadObjectCommand(bucket.object(key));
  const object = await bucket.askFor(() => bucket.client.send(head));
  return object && describe(object.ContentLength, object.ETag);
}

function describe(size_bytes = 0, etag = ''): StoredFile {
  return { size_bytes, version: `${size_bytes.toString(36)}-${etag.replaceAll('"', '')}` };
}

/** Opens an object, or a part of it; undefined if it is not there. */
export async function openObject(bucket: Bucket, key: string, range?: ByteRange): Promise<OpenedFile | undefined> {
  const get = new bucket.sdk.GetObjectCommand({ ...bucket.object(key), ...(range && { Range: rangeText(range) }) });
  try {
    return describeBody(bucket, key, await bucket.client.send(get));
  } catch (error) {
    const name = bucket.refusal(error)?.name;
    if (name === 'NoSuchKey') return undefined;
    if (name !== 'InvalidRange') throw bucket.unavailable(error);
    const file = await statObject(bucket, key);
    return file && { ...file, start: range?.start ?? 0, end: file.size_bytes - 1, stream: Readable.from([]) };
  }
}

function rangeText({ start, end }: ByteRange): string {
  return `bytes=${start}-${Number.isSafeInteger(end) ? end : ''}`;
}

function describeBody(bucket: Bucket, key: string, answer: GetObjectCommandOutput): OpenedFile {
  const length = answer.ContentLength ?? 0;
  const [, first = '0', size = String(length)] = /^bytes (\d+)-\d+\/(\d+)$/.exec(answer.ContentRange ?? '') ?? [];
  const start = Number(first);
  const end = start + length - 1;
  const stream = resumable(bucket, { key, etag: answer.ETag, start, end }, bodyOf(answer));
  return { ...describe(Number(size), answer.ETag), start, end, stream };
}

function bodyOf({ Body }: GetObjectCommandOutput): Readable {
  assert(Body instanceof Readable, 'a body of the SDK is a stream');
  Body.on('error', () => {}); // heard by whoever reads it; before and after that nobody does
  return Body;
}

type Span = { key: string; etag: string | undefined; start: number; end: number };

/**
 * Reads a body to its end. A connection that breaks, or that the bucket closes since our reader is slow, goes on from
 * the byte that it had come to, as long as the object is the same.
 */
function resumable(bucket: Bucket, { key, etag, start, end }: Span, first: Readable): Readable {
  let body = first;
  let is_closed = false;
  const resume = async (at: number) => {
    const get = { ...bucket.object(key), Range: rangeText({ start: at, end }), IfMatch: etag };
    body = bodyOf(await bucket.ask(() => bucket.client.send(new bucket.sdk.GetObjectCommand(get))));
    if (is_closed) body.destroy();
  };
  const read = async function* (): AsyncGenerator<Buffer> {
    let at = start;
    for (let resumes_left = resumes_max; at <= end && !is_closed;) {
      try {
        for await (const chunk of body) {
          at += chunk.length;
          resumes_left = resumes_max;
          yield chunk;
        }
        if (at > end) return;
        throw new Error('the answer ended early');
      } catch (error) {
        if (is_closed || resumes_left === 0 || at > end) throw bucket.unavailable(error);
        resumes_left -= 1;
        await resume(at);
      }
    }
  };
  const stream = Readable.from(read(), { objectMode: false, highWaterMark: 2 ** 16 });
  stream.once('close', () => {
    is_closed = true;
    body.destroy();
  });
  return stream;
}
