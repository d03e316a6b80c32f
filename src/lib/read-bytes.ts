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
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size_bytes += chunk.length;
    checkSize(size_bytes, bytes_max);
  }
  const [first] = chunks;
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, size_bytes); // short answers come in one piece
}

function checkSize(size_bytes: number, bytes_max: number): void {
  if (size_bytes > bytes_max) throw new Error(`the answer is larger than ${bytes_max} bytes`);
}
