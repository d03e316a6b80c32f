import { assert } from '../lib/assert.ts';
import { isId } from '../lib/ids.ts';
import { isExtension, type Extension } from './media-types.ts';

/** A storage key taken apart: `acct_…/task_…/0.png`, `acct_…/file_…/0.png`, `acct_…/upload_…/0.bin`. */
export type KeyParts = {
  account_id: string;
  /** The task that made it, the file that a caller uploaded, or the session of which it is a part. */
  owner_id: string;
  index: number;
  extension: Extension;
};

/** The key of a task's `index`-th output, or of a file. The same output always has the same key. */
export function storageKey(parts: KeyParts): string {
  const key = `${parts.account_id}/${parts.owner_id}/${parts.index}.${parts.extension}`;
  assert(parseKey(key) !== undefined, `"${key}" is no storage key`);
  return key;
}

/**
 * The parts of a key; undefined for every text that `storageKey` cannot have made. Such a key has
 * no dots, slashes or capitals of its own choice, so that it is safe as a path on any disk.
 */
export function parseKey(text: string): KeyParts | undefined {
  const match = /^([a-z0-9_]{1,64})\/([a-z0-9_]{1,64})\/(0|[1-9]\d{0,3})\.([a-z0-9]{1,8})$/.exec(text);
  const [, account_id = '', owner_id = '', index = '', extension = ''] = match ?? [];
  if (!isId('acct', account_id) || !isOwner(owner_id) || !isExtension(extension)) return undefined;
  return { account_id, owner_id, index: Number(index), extension };
}

/** Tells whether files can be stored under this id. */
export function isOwner(id: string): boolean {
  return isId('task', id) || isId('file', id) || isId('upload', id);
}
