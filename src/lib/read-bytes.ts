import { ChunkBuffer } from './chunk-buffer.ts';

/** The bytes of a body, in pieces. `takeWhole` gives all of it, if all of it is here already. */
export type Bytes = AsyncIterable<Buffer> & { takeWhole?(): Buffer | undefined };

/** All bytes of a body; at once if they are here. Throws or rejects with Error when there are more than `bytes_max`. */
export function readBytes(body: Bytes, bytes_max: number): Promise<Buffer> | Buffer {
  const whole = body.takeWhole?.();
  if (!whole) return collect(body, bytes_max);
  checkSize(whole.length, bytes_max);
  return whole;
}

/** Rejects with what the body throws, too. */
async function collect(body: Bytes, bytes_max: number): Promise<Buffer> {
  const chunks = new ChunkBuffer();
  for await (const piece of body) {
    chunks.push(piece);
    checkSize(chunks.size_bytes, bytes_max);
  }
  return chunks.whole();
}

function checkSize(size_bytes: number, bytes_max: number): void {
  if (size_bytes > bytes_max) throw new Error(`the answer is larger than ${bytes_max} bytes`);
}
