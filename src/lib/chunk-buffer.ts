/** So many pieces are put together: each takes 230 bytes beyond its own, so that 3 MB that came byte by byte took 700. */
const pieces_max = 1_024;

/** Bytes that come in pieces, however small. */
export class ChunkBuffer {
  #blocks: Buffer[] = [];
  #pieces: Buffer[] = [];
  #size_bytes = 0;

  get size_bytes(): number {
    return this.#size_bytes;
  }

  push(piece: Buffer): void {
    this.#size_bytes += piece.length;
    if (this.#pieces.push(piece) < pieces_max) return;
    this.#blocks.push(Buffer.concat(this.#pieces));
    this.#pieces = [];
  }

  /** All of them. What came in one piece is not copied. */
  whole(): Buffer {
    const [first] = this.#pieces;
    if (first && first.length === this.#size_bytes) return first;
    return Buffer.concat([...this.#blocks, ...this.#pieces], this.#size_bytes);
  }
}
