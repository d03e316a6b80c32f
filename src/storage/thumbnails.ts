import { Semaphore } from '../concurrency/semaphore.ts';
import { assert } from '../lib/assert.ts';
import { readBytes } from '../lib/read-bytes.ts';
import { read_bytes_max } from './byte-source.ts';
import { parseKey, thumbnail_sizes, thumbnailKey, type KeyParts, type ThumbnailSize } from './key.ts';
import { MediaProcesses } from './media-processes.ts';
import { mediaType } from './media-types.ts';
import type { Readable } from './read-requests.ts';
import type { Storage } from './storage.ts';

/** Small images of stored files, made when somebody first looks at one and stored beside the file. */
export type Thumbnails = {
  /**
   * Returns the storage key of a file's thumbnail, which is made if there is none yet. Undefined if the file is not
   * there, or nothing can be drawn of it. Throws StorageUnavailable.
   */
  keyOf(file_key: string, size: ThumbnailSize): Promise<string | undefined>;
  close(): void;
};

export type ThumbnailLimits = { thumbnail_processes: Semaphore };

/** Limits of drawing, one at a time for each account: the page of one with difficult files delays that of no other. */
export function thumbnailLimits(): ThumbnailLimits {
  return { thumbnail_processes: new Semaphore({ name: 'Processes that draw thumbnails', bound: 2, key_bound: 1 }) };
}

/** Larger files have none: an image is read as a whole. */
const image_bytes_max = 64 * 2 ** 20;

/** Far above the largest: what comes out of a process that reads files of others is not believed. */
const thumbnail_bytes_max = 500_000;

/** The thumbnails of one account that may wait: a page has a hundred at most, and a busy machine should not collect more. */
const waiting_max = 200;

/** A process without work has 100 MB. A page asks for all its thumbnails at once. */
const rest_ms = 30_000;

/**
 * Files of which nothing can be drawn, as this process remembers them. They are tried again after an hour; after a minute
 * if drawing took too long or crashed, which a busy machine does, too.
 */
const refusals_max = 10_000;
const refusal_ms = 3_600_000;
const uncertain_ms = 60_000;

type Parts = { storage: Storage; limits: ThumbnailLimits };

export function openThumbnails({ storage, limits }: Parts): Thumbnails {
  const processes = new MediaProcesses({ limit: limits.thumbnail_processes, in_background: true, rest_ms });
  const refusals = new Map<string, number>();
  const under_way = new Map<string, Promise<Outcome>>();

  /** Once at a time for each file. Two nodes that do it at once write the same. */
  const make = (file_key: string, file: KeyParts): Promise<Outcome> => {
    const making =
      under_way.get(file_key) ??
      makeAll({ storage, processes }, file_key, file)
        .then((outcome) => {
          if (outcome !== 'made') noteRefusal(refusals, file_key, outcome === 'none' ? refusal_ms : uncertain_ms);
          return outcome;
        })
        .finally(() => under_way.delete(file_key));
    under_way.set(file_key, making);
    return making;
  };

  return {
    keyOf: async (file_key, size) => {
      const file = parseKey(file_key);
      if (!file || file.thumbnail !== undefined || !isDrawable(file)) return undefined;
      const key = thumbnailKey(file, size);
      if (await storage.stat(key)) return key;
      if (isRefused(refusals, file_key)) return undefined;
      if (limits.thumbnail_processes.waiting(file.account_id) >= waiting_max) return undefined;
      return (await make(file_key, file)) === 'made' ? key : undefined;
    },
    close: () => processes.close(),
  };
}

/** Only images, videos and audio are drawn: a text is shown by its words. */
function isDrawable({ extension }: KeyParts): boolean {
  return /^(?:image|video|audio)\//.test(mediaType(extension).content_type);
}

/** `none`: the file has none, or is gone. `uncertain`: it may have some. */
type Outcome = 'made' | 'none' | 'uncertain';

/** Draws and stores all sizes of a file. */
async function makeAll(
  { storage, processes }: { storage: Storage; processes: MediaProcesses },
  file_key: string,
  file: KeyParts,
): Promise<Outcome> {
  const stored = await storage.stat(file_key);
  if (!stored) return 'none';
  const is_image = mediaType(file.extension).content_type.startsWith('image/');
  if (is_image && stored.size_bytes > image_bytes_max) return 'none';
  const drawn = await draw(processes, file.account_id, readableOf(storage, file_key, stored.size_bytes));
  if (typeof drawn === 'string') return drawn;
  const keys = thumbnail_sizes.map((size) => thumbnailKey(file, size));
  for (const [position, key] of keys.entries()) {
    const bytes = drawn[position];
    assert(bytes, 'a drawing has all sizes');
    await storage.put(key, bytes, { content_type: 'image/webp', size_limit_bytes: thumbnail_bytes_max });
  }
  if (await storage.stat(file_key)) return 'made';
  await storage.remove(keys); // whoever removed the file may have looked before they were there
  return 'none';
}

/** Returns the bytes of all sizes, if they are what they should be. */
async function draw(
  processes: MediaProcesses,
  account_id: string,
  file: Readable,
): Promise<Buffer[] | Exclude<Outcome, 'made'>> {
  const answer = await processes.run(account_id, file, 'draw').catch((error: unknown) => {
    if (error instanceof FileGone) return { drawn: [] };
    throw error;
  });
  if (typeof answer === 'string' || !('drawn' in answer)) return 'uncertain';
  const all = answer.drawn.map((bytes) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
  return all.length === thumbnail_sizes.length && all.every(isThumbnail) ? all : 'none';
}

function isThumbnail(bytes: Buffer): boolean {
  const is_webp = bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
  return is_webp && bytes.length <= thumbnail_bytes_max;
}

/** A stored file, piece by piece. A piece that is not there any more rejects. */
function readableOf(storage: Storage, key: string, size_bytes: number): Readable {
  return {
    size_bytes,
    read: async (start, length) => {
      const opened = await storage.open(key, { start, end: start + length - 1 });
      const bytes = opened && (await readBytes(opened.stream, read_bytes_max));
      if (bytes?.length !== length) throw new FileGone(`The file has gone or become shorter: ${key}`);
      return bytes;
    },
    close: async () => {},
  };
}

class FileGone extends Error {
  override name = 'FileGone';
}

function isRefused(refusals: Map<string, number>, file_key: string): boolean {
  const until_ms = refusals.get(file_key) ?? 0;
  return until_ms > performance.now();
}

function noteRefusal(refusals: Map<string, number>, file_key: string, for_ms: number): void {
  refusals.delete(file_key);
  refusals.set(file_key, performance.now() + for_ms);
  for (const oldest of refusals.keys()) if (refusals.size > refusals_max) refusals.delete(oldest);
}
