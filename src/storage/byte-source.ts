import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

/** More than this is never needed at once: an hour of video has an index of about 4 MB. */
const read_bytes_max = 32 * 2 ** 20;

/** A file says that more of it must be held in memory at once than any honest file needs. */
export class ReadTooLarge extends Error {
  override name = 'ReadTooLarge';
}

/** Random access to bytes in memory or in a file, synchronous: for a thread of its own. */
export type ByteSource = {
  /** What it reads from: a path, or the bytes themselves. */
  origin: string | Uint8Array;
  size_bytes: number;
  /** The bytes from `start` on, fewer than `length` at the end of the file. */
  read(start: number, length: number): Buffer;
  close(): void;
};

export function openByteSource(origin: string | Uint8Array): ByteSource {
  return typeof origin === 'string' ? openFile(origin) : openBytes(origin);
}

function openBytes(bytes: Uint8Array): ByteSource {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return {
    origin: bytes,
    size_bytes: buffer.length,
    read: (start, length) => buffer.subarray(start, start + length),
    close: () => {},
  };
}

function openFile(path: string): ByteSource {
  const descriptor = openSync(path, 'r');
  return {
    origin: path,
    size_bytes: fstatSync(descriptor).size,
    read: (start, length) => readFully(descriptor, start, length),
    close: () => closeSync(descriptor),
  };
}

function readFully(descriptor: number, start: number, length: number): Buffer {
  if (length > read_bytes_max) throw new ReadTooLarge(`${length} bytes at once`);
  const buffer = Buffer.allocUnsafe(length);
  let filled = 0;
  while (filled < length) {
    const count = readSync(descriptor, buffer, filled, length - filled, start + filled);
    if (count === 0) break;
    filled += count;
  }
  return buffer.subarray(0, filled);
}
