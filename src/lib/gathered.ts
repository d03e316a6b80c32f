import { append } from './append.ts';

/** So many pieces are put together: each takes 230 bytes beyond its own, so that 3 MB that came byte by byte took 700. */
const pieces_max = 1_024;

/** Larger ones are not worth a copy. */
const small_bytes = 4_096;

/** Bytes that come in pieces, however small. */
export class Gathered {
  #blocks: Buffer[] = [];
  #pieces: Buffer[] = [];
  #pieces_bytes = 0;
  #size_bytes = 0;

  get size_bytes(): number {
    return this.#size_bytes;
  }

  push(piece: Buffer): void {
    this.#size_bytes += piece.length;
    this.#pieces_bytes += piece.length;
    if (this.#pieces.push(piece) < pieces_max) return;
    if (this.#pieces_bytes > pieces_max * small_bytes) append(this.#blocks, this.#pieces);
    else this.#blocks.push(Buffer.concat(this.#pieces));
    this.#pieces = [];
    this.#pieces_bytes = 0;
  }

  /** All of them. What came in one piece is not copied. */
  whole(): Buffer {
    const [first] = this.#pieces;
    if (first && first.length === this.#size_bytes) return first;
    return Buffer.concat([...this.#blocks, ...this.#pieces], this.#size_bytes);
  }
}
