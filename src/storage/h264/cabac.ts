import { BadStream, type BitReader } from './bits.ts';
import { context_values, less_probable_next, ranges } from './cabac-tables.ts';

const contexts_count = 460;

/** The arithmetic decoder of a slice (ITU-T H.264, 9.3). */
export class CabacDecoder {
  readonly #reader: BitReader;
  readonly #states = new Uint8Array(contexts_count);
  readonly #probable = new Uint8Array(contexts_count);
  #range = 510;
  #offset = 0;

  constructor(reader: BitReader, qp: number) {
    this.#reader = reader;
    for (const { first, values } of context_values) {
      for (let pair = 0; pair * 2 < values.length; pair++) {
        const state = (((values[pair * 2] ?? 0) * qp) >> 4) + (values[pair * 2 + 1] ?? 0);
        const value = Math.min(126, Math.max(1, state));
        this.#states[first + pair] = value <= 63 ? 63 - value : value - 64;
        this.#probable[first + pair] = value <= 63 ? 0 : 1;
      }
    }
    this.start();
  }

  /** Begins at a byte: that of the slice, or the one after samples that are not compressed. */
  start(): void {
    this.#range = 510;
    this.#offset = this.#reader.bits(9);
  }

  bit(context: number): number {
    const state = this.#states[context] ?? 0;
    const probable = this.#probable[context] ?? 0;
    const less = ranges[state * 4 + ((this.#range >> 6) & 3)] ?? 0;
    this.#range -= less;
    let bit = probable;
    if (this.#offset >= this.#range) {
      this.#offset -= this.#range;
      this.#range = less;
      bit = 1 - probable;
      if (state === 0) this.#probable[context] = bit;
      this.#states[context] = less_probable_next[state] ?? 0;
    } else if (state < 62) this.#states[context] = state + 1;
    this.#fill();
    return bit;
  }

  /** A bit of even chances. */
  even(): number {
    this.#offset = (this.#offset << 1) | this.#reader.bit();
    if (this.#offset < this.#range) return 0;
    this.#offset -= this.#range;
    return 1;
  }

  /** Tells whether the slice, or what is compressed of it, ends here. */
  ends(): boolean {
    this.#range -= 2;
    if (this.#offset >= this.#range) return true;
    this.#fill();
    return false;
  }

  /** Exp-Golomb code of order 0, in bits of even chances. */
  number(): number {
    let order = 0;
    let value = 0;
    for (; this.even() === 1; order++) {
      if (order > 20) throw new BadStream('a level is too large');
      value += 1 << order;
    }
    while (order-- > 0) value += this.even() << order;
    return value;
  }

  #fill(): void {
    if (this.#range >= 256) return;
    const shift = Math.clz32(this.#range) - 23;
    this.#range <<= shift;
    this.#offset = (this.#offset << shift) | this.#reader.peek(shift);
    this.#reader.position += shift;
  }
}
