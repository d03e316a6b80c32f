import { readSync, writeSync } from 'node:fs';

/** More than this is never needed at once: an hour of video has an index of about 4 MB. */
export const read_bytes_max = 32 * 2 ** 20;

/** Parsers ask for a few bytes at a time; each request through the socket takes about 0.1 ms. */
const block_bytes = 2 ** 18;
const blocks_max = 8;

/** A file says that more of it must be held in memory at once than any honest file needs. */
export class ReadTooLarge extends Error {
  override name = 'ReadTooLarge';
}

/** Random access to the bytes of a file, synchronous: for a thread of its own. */
export type ByteSource = {
  size_bytes: number;
  /** The bytes from `start` on, fewer than `length` at the end of the file. Others may get the same: not to be changed. */
  read(start: number, length: number): Buffer;
};

/** The number of the socket among the descriptors of the process that reads. */
export const socket_descriptor = 3;

/** A request for bytes, as it goes through the socket: where they begin (64 bits), how many (32 bits). The answer is the bytes. */
export const request_bytes = 12;

/** Reads by way of a socket at whose other end read-requests.ts answers. Throws if that is gone. */
export function openSocketSource(descriptor: number, size_bytes: number): ByteSource {
  const blocks = new Map<number, Buffer>();
  const block = (at: number): Buffer => {
    const bytes = blocks.get(at) ?? requestBytes(descriptor, at, Math.min(block_bytes, size_bytes - at));
    blocks.delete(at); // and last again: the first of the map is the one that nobody has used for longest
    blocks.set(at, bytes);
    for (const oldest of blocks.keys()) if (blocks.size > blocks_max) blocks.delete(oldest);
    return bytes;
  };
  return {
    size_bytes,
    read: (start, length) => {
      if (length > read_bytes_max) throw new ReadTooLarge(`${length} bytes at once`);
      const end = Math.min(start + length, size_bytes);
      if (!(end > start)) return Buffer.alloc(0);
      if (end - start > block_bytes) return requestBytes(descriptor, start, end - start);
      const first = start - (start % block_bytes);
      const next = first + block_bytes;
      const head = block(first).subarray(start - first, end - first);
      return end <= next ? head : Buffer.concat([head, block(next).subarray(0, end - next)]);
    },
  };
}

function requestBytes(descriptor: number, start: number, length: number): Buffer {
  const request = Buffer.alloc(request_bytes);
  request.writeBigUInt64LE(BigInt(start));
  request.writeUInt32LE(length, 8);
  writeSync(descriptor, request);
  const answer = Buffer.allocUnsafe(length);
  for (let filled = 0; filled < length;) {
    const count = readSync(descriptor, answer, filled, length - filled, null);
    if (count === 0) throw new Error('The service has closed the file.');
    filled += count;
  }
  return answer;
}
