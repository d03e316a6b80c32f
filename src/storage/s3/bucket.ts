import type * as ClientS3 from '@aws-sdk/client-s3';
import { assert } from '../../lib/assert.ts';
import { parseKey } from '../key.ts';
import { StorageUnavailable } from '../storage.ts';
import { placeOf, type BucketSettings } from '../settings.ts';

/** The SDK, which takes 0.3 s and 40 MB to load: only whoever has a bucket does. */
export type Sdk = typeof ClientS3;

/** Time limits of one request; the SDK makes three of it where that may help. */
export type BucketTimeouts = { connect_ms: number; idle_ms: number };

const usual_timeouts: BucketTimeouts = { connect_ms: 3_000, idle_ms: 15_000 };

const attempts_max = 3;

/** Slow readers keep theirs for minutes: with the 50 of the SDK they would lock everybody else out. */
const sockets_max = 1_000;

/** `NotFound` is that of an answer without a body. */
const absent = new Set(['NoSuchKey', 'NotFound', 'NoSuchUpload']);

export type BucketCredentials = { accessKeyId: string; secretAccessKey: string };

/** One bucket, and the SDK to ask it. */
export class Bucket {
  readonly sdk: Sdk;
  readonly client: ClientS3.S3Client;
  readonly settings: BucketSettings;
  readonly place: string;

  private constructor(sdk: Sdk, client: ClientS3.S3Client, settings: BucketSettings) {
    this.sdk = sdk;
    this.client = client;
    this.settings = settings;
    this.place = placeOf(settings);
  }

  static async open(
    settings: BucketSettings,
    credentials: BucketCredentials | undefined,
    { connect_ms, idle_ms }: BucketTimeouts = usual_timeouts,
  ): Promise<Bucket> {
    const sdk = await import('@aws-sdk/client-s3');
    const { region, endpoint, force_path_style } = settings;
    const agent = { keepAlive: true, maxSockets: sockets_max };
    const client = new sdk.S3Client({
      ...(region !== undefined && { region }),
      ...(endpoint !== undefined && { endpoint }),
      ...(region === undefined && endpoint !== undefined && { region: 'us-east-1' }), // servers of one's own have none
      ...(credentials && { credentials }),
      forcePathStyle: force_path_style,
      maxAttempts: attempts_max,
      requestHandler: { connectionTimeout: connect_ms, socketTimeout: idle_ms, httpAgent: agent, httpsAgent: agent },
    });
    return new Bucket(sdk, client, settings);
  }

  /** Parameters of a request about all of it that is ours. */
  get ours(): { Bucket: string; Prefix: string } {
    return { Bucket: this.settings.bucket, Prefix: this.settings.prefix };
  }

  /** Parameters of a request about one object. */
  object(key: string): { Bucket: string; Key: string } {
    assert(parseKey(key), `"${key}" is no storage key`);
    return { Bucket: this.settings.bucket, Key: `${this.settings.prefix}${key}` };
  }

  /** The answer of the bucket. Throws StorageUnavailable, whatever the matter is. */
  async ask<T>(request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      throw this.unavailable(error);
    }
  }

  /** The same; undefined if there is no such object, or upload. */
  async askFor<T>(request: () => Promise<T>): Promise<T | undefined> {
    try {
      return await request();
    } catch (error) {
      if (absent.has(this.refusal(error)?.name ?? '')) return undefined;
      throw this.unavailable(error);
    }
  }

  /** An answer of the bucket that is an error; undefined if it did not answer. */
  refusal(error: unknown): ClientS3.S3ServiceException | undefined {
    return error instanceof this.sdk.S3ServiceException ? error : undefined;
  }

  unavailable(error: unknown): StorageUnavailable {
    const reason = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    const is_refusal = !this.#isAway(error);
    const verb = is_refusal ? 'cannot be used' : 'cannot be reached';
    return new StorageUnavailable(`${this.place} ${verb}: ${reason}`, { is_refusal, cause: error });
  }

  /** No answer, or one that says to come again; everything else comes from a wrong key, name, right or region. */
  #isAway(error: unknown): boolean {
    const refusal = this.refusal(error);
    if (refusal) return (refusal.$metadata.httpStatusCode ?? 500) >= 500;
    if (!(error instanceof Error)) return true;
    return error.name === 'TimeoutError' || ('code' in error && /^E[A-Z]/.test(String(error.code)));
  }
}
