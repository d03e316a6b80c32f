import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { BackupError, type Part } from './manifest.ts';
import type { Progress } from './progress.ts';

/** Rows shrink to a fifth at the third level; the sixth takes twice the time for a twentieth less. */
const compression = { level: 3 };

/** Writes a part; when it returns, the disk has it. Readable by us alone: parts have secrets in them. */
export async function writePart(
  folder: string,
  file: string,
  source: Readable,
  progress: Progress,
  options: { compressed?: boolean } = {},
): Promise<Part> {
  const path = join(folder, file);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const hash = createHash('sha256');
  let size_bytes = 0;
  const measure = async function* (chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      hash.update(chunk);
      size_bytes += chunk.length;
      progress.add(chunk.length);
      yield chunk;
    }
  };
  const filters: Duplex[] = options.compressed ? [createGzip(compression)] : [];
  await pipeline([source, ...filters, measure, createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true })]);
  return { file, size_bytes, sha256: hash.digest('hex') };
}

/** Throws BackupError unless the part is there with these very bytes. */
export async function checkPart(folder: string, part: Part, progress: Progress): Promise<void> {
  const path = join(folder, part.file);
  const size_bytes = await stat(path).then(
    (stats) => stats.size,
    () => undefined,
  );
  if (size_bytes === undefined) throw damaged(folder, `${part.file} is missing`);
  if (size_bytes !== part.size_bytes) {
    throw damaged(folder, `${part.file} has ${size_bytes} bytes instead of ${part.size_bytes}`);
  }
  if ((await hashFile(path, progress)) !== part.sha256) throw damaged(folder, `${part.file} has been changed`);
}

/** Returns the SHA-256 of a file, in hex. */
export async function hashFile(path: string, progress: Progress): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) {
    hash.update(chunk);
    progress.add(chunk.length);
  }
  return hash.digest('hex');
}

export function damaged(folder: string, what: string): BackupError {
  return new BackupError(`The backup in ${folder} is damaged: ${what}. Nothing was changed.`);
}

/** Opens a compressed part as a stream of its text. */
export function openPart(folder: string, { file }: Part): Readable {
  const source = createReadStream(join(folder, file));
  const text = createGunzip();
  source.on('error', (error) => text.destroy(error));
  return source.pipe(text);
}
