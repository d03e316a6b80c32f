import { createHash } from 'node:crypto';
import type { Readable, Writable } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import type { Storage } from '../storage/storage.ts';
import type { Spool } from './spool.ts';
import type { UploadPart } from './upload-sessions.ts';

/** A part is not in the storage: its session has just ended, or the storage has lost it. */
export class PartMissing extends Error {
  override name = 'PartMissing';
}

/** Writes the parts one after another into a file of the spool. Returns its path and the MD5 of it in hex. */
export async function joinParts(
  storage: Storage,
  spool: Spool,
  parts: readonly UploadPart[],
): Promise<{ path: string; md5: string }> {
  const hash = createHash('md5');
  const path = await spool.add(async (file) => {
    for (const part of parts) await append(storage, part, file, (chunk) => hash.update(chunk));
    file.end();
    await finished(file);
  });
  return { path, md5: hash.digest('hex') };
}

async function append(
  storage: Storage,
  { id, storage_key, size_bytes }: UploadPart,
  file: Writable,
  see: (chunk: Buffer) => void,
): Promise<void> {
  const opened = await storage.open(storage_key);
  if (opened?.size_bytes !== Number(size_bytes)) {
    opened?.stream.destroy();
    throw new PartMissing(`${id} is not in the storage, or not as it was`);
  }
  const seen = async function* (source: Readable) {
    for await (const chunk of source) {
      const bytes = Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
      see(bytes);
      yield bytes;
    }
  };
  await pipeline(opened.stream, seen, file, { end: false });
}
