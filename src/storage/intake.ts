import { createHash, type Hash } from 'node:crypto';
import { Readable } from 'node:stream';
import { FileTooLarge } from './storage.ts';

/** Bytes on their way into a storage: counted, hashed, and cut off at the limit. */
export class Intake {
  readonly #bytes: Buffer | Readable;
  readonly #size_limit_bytes: number;
  readonly #hash: Hash = createHash('sha256');
  #size_bytes = 0;

  constructor(bytes: Buffer | Readable, size_limit_bytes: number) {
    this.#bytes = bytes;
    this.#size_limit_bytes = size_limit_bytes;
    // A download may break before we read from it; unheard, that event would end the process.
    if (bytes instanceof Readable) bytes.on('error', () => {});
  }

  /** All bytes, once. Throws FileTooLarge, or the error of the stream. */
  async *chunks(): AsyncGenerator<Buffer> {
    for await (const chunk of chunksOf(this.#bytes)) {
      this.#size_bytes += chunk.length;
      if (this.#size_bytes > this.#size_limit_bytes) throw new FileTooLarge(this.#size_limit_bytes);
      this.#hash.update(chunk);
      yield chunk;
    }
  }

  /** Size and hash of what has passed; to be asked once, at the end. */
  summary(): { size_bytes: number; sha256: string } {
    return { size_bytes: this.#size_bytes, sha256: this.#hash.digest('hex') };
  }

  /** Nothing more is read. */
  abandon(): void {
    if (this.#bytes instanceof Readable) this.#bytes.destroy();
  }
}

/** A large buffer in steps of 1 MiB (under 1 ms of hashing each), so that others get their turn. */
async function* chunksOf(bytes: Buffer | Readable): AsyncGenerator<Buffer> {
  if (bytes instanceof Readable) {
    for await (const chunk of bytes) yield Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk);
  } else {
    for (let at = 0; at < bytes.length; at += 2 ** 20) yield bytes.subarray(at, at + 2 ** 20);
  }
}
