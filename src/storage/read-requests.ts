import { open } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { read_bytes_max, request_bytes } from './byte-source.ts';

/** Bytes that a process asks for piece by piece. */
export type Readable = {
  size_bytes: number;
  /** Exactly these bytes. Rejects if they cannot be read, or are not there. */
  read(start: number, length: number): Promise<Buffer>;
  close(): Promise<void>;
};

/** Opens the file at a path, or bytes in memory. Rejects if there is no such file. */
export async function openReadable(origin: string | Uint8Array): Promise<Readable> {
  if (typeof origin !== 'string') {
    const bytes = Buffer.from(origin.buffer, origin.byteOffset, origin.byteLength);
    const read = async (start: number, length: number) => bytes.subarray(start, start + length);
    return { size_bytes: bytes.length, read, close: async () => {} };
  }
  const file = await open(origin, 'r');
  const { size } = await file.stat();
  return {
    size_bytes: size,
    read: async (start, length) => {
      const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(length), 0, length, start);
      if (bytesRead < length) throw new Error(`The file has become shorter: ${origin}`);
      return buffer;
    },
    close: () => file.close(),
  };
}

/**
 * Answers what a process asks for through its socket, one request after the other, until it is stopped.
 * `onFailure`: the bytes cannot be read, or the process asks for what it must not.
 */
export function answerReads(socket: Socket, file: Readable, onFailure: (error: unknown) => void): () => void {
  let pending: Buffer = Buffer.alloc(0);
  const answerAll = async () => {
    for (; pending.length >= request_bytes; pending = pending.subarray(request_bytes)) {
      const start = Number(pending.readBigUInt64LE());
      const length = pending.readUInt32LE(8);
      if (length > read_bytes_max || start + length > file.size_bytes) throw new Error('There are no such bytes.');
      const flushed = socket.write(await file.read(start, length));
      if (!flushed) await flush(socket);
    }
  };
  const onData = (chunk: Buffer) => {
    socket.pause(); // nothing else is read before this is answered
    pending = Buffer.concat([pending, chunk]);
    answerAll().then(() => socket.resume(), onFailure);
  };
  socket.on('data', onData).resume();
  return () => void socket.off('data', onData).pause();
}

/** Resolves when all is written, or the other end is gone. */
function flush(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const settle = () => {
      socket.off('drain', settle).off('close', settle);
      resolve();
    };
    socket.on('drain', settle).on('close', settle);
  });
}
