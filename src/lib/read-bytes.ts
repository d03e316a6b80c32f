/** All bytes of a body. Throws Error when there are more than `bytes_max`, and what the body throws. */
export async function readBytes(body: AsyncIterable<Buffer>, bytes_max: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size_bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size_bytes += chunk.length;
    if (size_bytes > bytes_max) throw new Error(`the answer is larger than ${bytes_max} bytes`);
  }
  const [first] = chunks;
  return first && chunks.length === 1 ? first : Buffer.concat(chunks, size_bytes); // short answers come in one piece
}
