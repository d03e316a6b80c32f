import { ChunkBuffer } from './chunk-buffer.ts';

/** Reads all bytes of a body. Rejects with what the body throws, and when there are more than `bytes_max`. */
export async function readBytes(body: AsyncIterable<Buffer>, bytes_max: number): Promise<Buffer> {
  const chunks = new ChunkBuffer();
  for await (const piece of body) {
    chunks.push(piece);
    if (chunks.size_bytes > bytes_max) throw new Error(`the answer is larger than ${bytes_max} bytes`);
  }
  return chunks.whole();
}
