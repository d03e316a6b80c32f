import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { zstdCompress, zstdDecompress } from 'node:zlib';

/** Callers' content in rows: compressed JSON, encrypted where the operator set a secret. */

type ContentKey = { readonly id: string; readonly key: Buffer };

/** `current` encrypts, absent without a secret of the operator's; all of `readable` decrypt. */
export type ContentKeys = { readonly current: ContentKey | undefined; readonly readable: readonly ContentKey[] };

/** A value as it lies in a row. */
export type StoredContent = { readonly key_id: string | null; readonly content: Buffer };

const algorithm = 'aes-256-gcm';
const nonce_bytes = 12;
const tag_bytes = 16;

/** Derives the keys of the secrets. A secret that lies in the database beside the rows would protect nothing. */
export function contentKeys(secrets: { secret: string | undefined; secret_before: string | undefined }): ContentKeys {
  const current = keyOf(secrets.secret);
  const before = keyOf(secrets.secret_before);
  return { current, readable: [current, before].filter((key) => key !== undefined) };
}

function keyOf(secret: string | undefined): ContentKey | undefined {
  if (secret === undefined) return undefined;
  const key = Buffer.from(hkdfSync('sha256', secret, '', 'medley content of rows', 32));
  return { id: createHash('sha256').update(key).digest('hex').slice(0, 16), key };
}

const compress = promisify(zstdCompress);
const decompress = promisify(zstdDecompress);

/** Stores JSON. `place` names the row: content that is moved to another one cannot be read there. */
export async function storeContent(keys: ContentKeys, place: string, json: string): Promise<StoredContent> {
  return encrypt(keys, place, await compress(json));
}

function encrypt({ current }: ContentKeys, place: string, plain: Buffer): StoredContent {
  if (!current) return { key_id: null, content: plain };
  const nonce = randomBytes(nonce_bytes);
  const cipher = createCipheriv(algorithm, current.key, nonce).setAAD(Buffer.from(place));
  const encrypted = [cipher.update(plain), cipher.final()];
  return { key_id: current.id, content: Buffer.concat([nonce, cipher.getAuthTag(), ...encrypted]) };
}

/** Reads JSON of at most so many bytes. Undefined if its key is not among ours; throws for bytes that are damaged. */
export async function readContent(
  keys: ContentKeys,
  place: string,
  stored: StoredContent,
  bytes_max: number,
): Promise<string | undefined> {
  const plain = decrypt(keys, place, stored);
  return plain && (await decompress(plain, { maxOutputLength: bytes_max })).toString('utf8');
}

/** The message for content whose key is not among ours. */
export const undecryptable =
  'This content can no longer be decrypted: it was encrypted with another MEDLEY_SECRET. The operator of the service can set that one as MEDLEY_SECRET_BEFORE.';

/** The same content under the current key; undefined if its key is not among ours. */
export function encryptContentAgain(
  keys: ContentKeys,
  place: string,
  stored: StoredContent,
): StoredContent | undefined {
  const plain = decrypt(keys, place, stored);
  return plain && encrypt(keys, place, plain);
}

function decrypt({ readable }: ContentKeys, place: string, { key_id, content }: StoredContent): Buffer | undefined {
  if (key_id === null) return content;
  const key = readable.find(({ id }) => id === key_id);
  if (!key) return undefined;
  const nonce = content.subarray(0, nonce_bytes);
  const tag = content.subarray(nonce_bytes, nonce_bytes + tag_bytes);
  const cipher = createDecipheriv(algorithm, key.key, nonce, { authTagLength: tag_bytes });
  cipher.setAAD(Buffer.from(place)).setAuthTag(tag);
  return Buffer.concat([cipher.update(content.subarray(nonce_bytes + tag_bytes)), cipher.final()]);
}
