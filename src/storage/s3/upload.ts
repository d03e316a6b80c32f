import { createHash } from 'node:crypto';
import type { CompletedPart } from '@aws-sdk/client-s3';
import { failpoint } from '../../lib/failpoint.ts';
import type { Intake } from '../intake.ts';
import { parseKey } from '../key.ts';
import { mediaType } from '../media-types.ts';
import type { Bucket } from './bucket.ts';

/** The least that S3 takes. */
const part_bytes_min = 5 * 2 ** 20;

/** The most that S3 takes. With the least size they are 52 GB, far more than any file of a caller's may have. */
const parts_max = 10_000;

/** A bucket that is away need not keep whoever cleans up. */
const abort_ms = 5_000;

/**
 * Sends a file to the bucket: as one request, or in parts, of which one is being sent while the next is read. Nobody
 * sees any of it before the last answer.
 */
export async function upload(bucket: Bucket, key: string, intake: Intake): Promise<void> {
  const { content_type } = mediaType(parseKey(key)?.extension ?? 'bin');
  await uploadObject(bucket, bucket.object(key), content_type, intake);
}

/** The same for an object that is no file of a caller's; `size_bytes`: at most, where it may need more than 10,000 parts. */
export async function uploadObject(
  bucket: Bucket,
  object: { Bucket: string; Key: string },
  content_type: string,
  intake: Intake,
  size_bytes = 0,
): Promise<void> {
  // All of one size, as some servers demand. Three of them are in memory.
  const part_bytes = Math.max(part_bytes_min, Math.ceil(size_bytes / parts_max));
  const parts = partsOf(intake.chunks(), part_bytes);
  const { value: first = Buffer.alloc(0) } = await parts.next();
  const target = { ...object, ContentType: content_type, ...encryptionOf(bucket) };
  if (first.length < part_bytes) {
    await failpoint('file.written');
    await bucket.ask(() => bucket.client.send(new bucket.sdk.PutObjectCommand({ ...target, Body: first })));
    return;
  }
  // The SDK sends this checksum with each part; an upload that was not announced so is refused at its end.
  const create = new bucket.sdk.CreateMultipartUploadCommand({ ...target, ChecksumAlgorithm: 'CRC32' });
  const { UploadId } = await bucket.ask(() => bucket.client.send(create));
  const multipart = { ...object, UploadId };
  try {
    const Parts = await sendAll(bucket, multipart, first, parts);
    await failpoint('file.written');
    await complete(bucket, multipart, Parts);
  } catch (error) {
    const abort = new bucket.sdk.AbortMultipartUploadCommand(multipart);
    // What cannot be aborted now is found by the sweep.
    await bucket.client.send(abort, { abortSignal: AbortSignal.timeout(abort_ms) }).catch(() => undefined);
    throw error;
  }
}

/**
 * Makes one object of the parts. Where the answer was lost, the SDK asks again, and hears that there is no such upload:
 * then the object tells whether it is made of these parts.
 */
async function complete(bucket: Bucket, multipart: Multipart, Parts: CompletedPart[]): Promise<void> {
  const { Bucket, Key } = multipart;
  const command = new bucket.sdk.CompleteMultipartUploadCommand({ ...multipart, MultipartUpload: { Parts } });
  const completed = await bucket.askFor(() => bucket.client.send(command));
  if (completed) return;
  const object = await bucket.askFor(() => bucket.client.send(new bucket.sdk.HeadObjectCommand({ Bucket, Key })));
  if (object?.ETag === etagOf(Parts)) return;
  throw bucket.unavailable(new Error('an upload in parts was gone before its end'));
}

/** The entity tag of an object that was made of these parts, unless a key of KMS is involved. */
function etagOf(parts: readonly CompletedPart[]): string {
  const hash = createHash('md5');
  for (const { ETag = '' } of parts) hash.update(ETag.replaceAll('"', ''), 'hex');
  return `"${hash.digest('hex')}-${parts.length}"`;
}

type Multipart = { Bucket: string; Key: string; UploadId: string | undefined };

async function sendAll(
  bucket: Bucket,
  multipart: Multipart,
  first: Buffer,
  others: AsyncGenerator<Buffer>,
): Promise<CompletedPart[]> {
  const sent: CompletedPart[] = [];
  const send = async (Body: Buffer, PartNumber: number) => {
    const command = new bucket.sdk.UploadPartCommand({ ...multipart, PartNumber, Body });
    const { ETag, ChecksumCRC32 } = await bucket.ask(() => bucket.client.send(command));
    sent.push({ PartNumber, ETag, ChecksumCRC32 });
  };
  let number = 1;
  let sending = send(first, number);
  try {
    for await (const part of others) {
      await sending;
      sending = send(part, ++number);
      sending.catch(() => {}); // heard when it is waited for
    }
    await sending;
  } catch (error) {
    await sending.catch(() => {}); // a part that comes behind the abort would stay
    throw error;
  }
  return sent;
}

/** The bytes in buffers of `part_bytes`, the last one shorter. None, if there are no bytes. */
async function* partsOf(chunks: AsyncGenerator<Buffer>, part_bytes: number): AsyncGenerator<Buffer, undefined> {
  let pending: Buffer[] = [];
  let pending_bytes = 0;
  for await (let chunk of chunks) {
    while (pending_bytes + chunk.length >= part_bytes) {
      const left = part_bytes - pending_bytes;
      yield Buffer.concat([...pending, chunk.subarray(0, left)]);
      chunk = chunk.subarray(left);
      pending = [];
      pending_bytes = 0;
    }
    pending.push(chunk);
    pending_bytes += chunk.length;
  }
  if (pending_bytes > 0) yield Buffer.concat(pending);
  return undefined;
}

function encryptionOf({ settings: { encryption } }: Bucket) {
  return {
    ...(encryption && { ServerSideEncryption: encryption.algorithm }),
    ...(encryption?.kms_key_id !== undefined && { SSEKMSKeyId: encryption.kms_key_id }),
  };
}
