import { assert } from '../lib/assert.ts';
import { isId } from '../lib/ids.ts';
import { isExtension, type Extension } from './media-types.ts';

/** Shorter sides of thumbnails, in pixels. */
export const thumbnail_sizes = [64, 320] as const;
export type ThumbnailSize = (typeof thumbnail_sizes)[number];

/** A storage key taken apart: `acct_…/task_…/0.png`, `acct_…/file_…/0.png`, `acct_…/upload_…/0.bin`. */
export type KeyParts = {
  account_id: string;
  /** The task that made it, the file that a caller uploaded, or the session of which it is a part. */
  owner_id: string;
  index: number;
  extension: Extension;
  /** It is a thumbnail of the file at this position: `acct_…/task_…/0-64.webp`. */
  thumbnail?: ThumbnailSize;
};

/** The key of a task's `index`-th output, or of a file. The same output always has the same key. */
export function storageKey(parts: KeyParts): string {
  const { account_id, owner_id, index, extension, thumbnail } = parts;
  const key = `${account_id}/${owner_id}/${index}${thumbnail === undefined ? '' : `-${thumbnail}`}.${extension}`;
  assert(parseKey(key) !== undefined, `"${key}" is no storage key`);
  return key;
}

/**
 * The parts of a key; undefined for every text that `storageKey` cannot have made. Such a key has
 * no dots, slashes or capitals of its own choice, so that it is safe as a path on any disk.
 */
export function parseKey(text: string): KeyParts | undefined {
  const match = /^([a-z0-9_]{1,64})\/([a-z0-9_]{1,64})\/(0|[1-9]\d{0,3})(?:-(\d{2,3}))?\.([a-z0-9]{1,8})$/.exec(text);
  const [, account_id = '', owner_id = '', index = '', size, extension = ''] = match ?? [];
  if (!isId('acct', account_id) || !isOwner(owner_id) || !isExtension(extension)) return undefined;
  const parts = { account_id, owner_id, index: Number(index), extension };
  if (size === undefined) return parts;
  const thumbnail = thumbnail_sizes.find((each) => String(each) === size);
  return thumbnail === undefined || extension !== 'webp' ? undefined : { ...parts, thumbnail };
}

/** The key of a thumbnail of the file with this key. */
export function thumbnailKey(parts: KeyParts, thumbnail: ThumbnailSize): string {
  return storageKey({ ...parts, extension: 'webp', thumbnail });
}

/** Tells whether files can be stored under this id. */
export function isOwner(id: string): boolean {
  return isId('task', id) || isId('file', id) || isId('upload', id);
}
