import { BadStream, type BitReader } from './bits.ts';
import { CabacDecoder } from './cabac.ts';
import type { BlockKind, Neighbours, Syntax } from './syntax.ts';

/** Contexts of levels by the kind of block. */
const coded_at = [85, 89, 93, 97, 101, 0];
const significant_at = [105, 120, 134, 149, 152, 402];
const last_at = [166, 181, 195, 210, 213, 417];
const level_at = [227, 237, 247, 257, 266, 426];

/** Contexts of the 63 levels of an 8 × 8 block that may be the last (table 9-43, frames). */
// prettier-ignore
const significant_8x8 = [
  0, 1, 2, 3, 4, 5, 5, 4, 4, 3, 3, 4, 4, 4, 5, 5, 4, 4, 4, 4, 3, 3, 6, 7, 7, 7, 8, 9, 10, 9, 8, 7,
  7, 6, 11, 12, 13, 11, 6, 7, 8, 9, 14, 10, 9, 8, 6, 11, 12, 13, 11, 6, 9, 14, 10, 9, 11, 12, 13, 11, 14, 10, 12,
];
// prettier-ignore
const last_8x8 = [
  0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
  3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7, 8, 8, 8,
];

/** Neither may be absent: what is absent counts as 0. */
function contextOf({ left, above }: Neighbours): number {
  return (left > 0 ? 1 : 0) + (above > 0 ? 1 : 0);
}

/** Reads macroblocks that are coded arithmetically (ITU-T H.264, 9.3.3.1). */
export class CabacSyntax implements Syntax {
  readonly splits_8x8 = false;
  readonly #reader: BitReader;
  readonly #decoder: CabacDecoder;
  readonly #places = new Int32Array(64);
  /** Of this macroblock, and of the one before it. */
  #delta = 0;
  #last_delta = 0;

  constructor(reader: BitReader, qp: number) {
    reader.align();
    this.#reader = reader;
    this.#decoder = new CabacDecoder(reader, qp);
  }

  macroblockType(neighbours: Neighbours): number {
    const decoder = this.#decoder;
    if (decoder.bit(3 + contextOf(neighbours)) === 0) return 0;
    if (decoder.ends()) return 25;
    const luma = decoder.bit(6) * 12;
    const chroma = decoder.bit(7) === 0 ? 0 : 4 + 4 * decoder.bit(8);
    return 1 + luma + chroma + 2 * decoder.bit(9) + decoder.bit(10);
  }

  transform8x8(neighbours: Neighbours): boolean {
    return this.#decoder.bit(399 + contextOf(neighbours)) === 1;
  }

  predictionMode(): number {
    const decoder = this.#decoder;
    if (decoder.bit(68) === 1) return -1;
    return decoder.bit(69) + 2 * decoder.bit(69) + 4 * decoder.bit(69);
  }

  chromaMode(neighbours: Neighbours): number {
    const decoder = this.#decoder;
    if (decoder.bit(64 + contextOf(neighbours)) === 0) return 0;
    if (decoder.bit(67) === 0) return 1;
    return decoder.bit(67) === 0 ? 2 : 3;
  }

  codedPattern({ left, above }: Neighbours): number {
    const decoder = this.#decoder;
    const empty = (pattern: number, bit: number) => (pattern < 0 || (pattern >> bit) & 1 ? 0 : 1);
    const first = decoder.bit(73 + empty(left, 1) + 2 * empty(above, 2));
    const second = decoder.bit(73 + (1 - first) + 2 * empty(above, 3));
    const third = decoder.bit(73 + empty(left, 3) + 2 * (1 - first));
    const fourth = decoder.bit(73 + (1 - third) + 2 * (1 - second));
    const luma = first + 2 * second + 4 * third + 8 * fourth;
    const colour = (pattern: number) => (pattern < 0 ? 0 : pattern >> 4);
    const [of_left, of_above] = [colour(left), colour(above)];
    if (decoder.bit(77 + (of_left > 0 ? 1 : 0) + (of_above > 0 ? 2 : 0)) === 0) return luma;
    return luma + 16 + 16 * decoder.bit(81 + (of_left === 2 ? 1 : 0) + (of_above === 2 ? 2 : 0));
  }

  qpDelta(): number {
    const decoder = this.#decoder;
    let code = 0;
    for (let context = this.#last_delta === 0 ? 60 : 61; decoder.bit(context) === 1; code++) {
      context = code === 0 ? 62 : 63;
      if (code > 104) throw new BadStream('a difference of quality is too large');
    }
    this.#delta = code % 2 === 0 ? -code / 2 : (code + 1) / 2;
    return this.#delta;
  }

  block(kind: BlockKind, levels: Int32Array, count: number, { left, above }: Neighbours): number {
    const decoder = this.#decoder;
    const is_coded = (coded: number) => (coded === 0 ? 0 : 1); // a neighbour that is absent counts as coded
    const context = (coded_at[kind] ?? 0) + is_coded(left) + 2 * is_coded(above);
    if (kind !== 5 && decoder.bit(context) === 0) return 0;
    const total = this.#findPlaces(kind, count);
    const first = level_at[kind] ?? 0;
    const larger_max = kind === 3 ? 3 : 4;
    let ones = 0;
    let larger = 0;
    for (let index = total - 1; index >= 0; index--) {
      let level = 1;
      if (decoder.bit(first + (larger > 0 ? 0 : Math.min(4, 1 + ones))) === 0) ones += 1;
      else {
        const next = first + 5 + Math.min(larger_max, larger);
        for (level = 2; level < 15 && decoder.bit(next) === 1; level++);
        if (level === 15) level += decoder.number();
        larger += 1;
      }
      levels[this.#places[index] ?? 0] = decoder.even() === 1 ? -level : level;
    }
    return total;
  }

  /** Finds which levels are not 0. Answers how many. */
  #findPlaces(kind: BlockKind, count: number): number {
    const decoder = this.#decoder;
    const significant = significant_at[kind] ?? 0;
    const last = last_at[kind] ?? 0;
    let total = 0;
    for (let index = 0; index < count - 1; index++) {
      const [of_one, of_last] = contextsAt(kind, index);
      if (decoder.bit(significant + of_one) === 0) continue;
      this.#places[total++] = index;
      if (decoder.bit(last + of_last) === 1) return total;
    }
    this.#places[total++] = count - 1;
    return total;
  }

  samples(count: number): Uint8Array {
    const samples = this.#reader.samples(count);
    this.#decoder.start();
    return samples;
  }

  ends(): boolean {
    this.#last_delta = this.#delta;
    this.#delta = 0;
    this.#reader.check();
    return this.#decoder.ends();
  }
}

function contextsAt(kind: BlockKind, index: number): [number, number] {
  if (kind === 5) return [significant_8x8[index] ?? 0, last_8x8[index] ?? 0];
  return kind === 3 ? [Math.min(index, 2), Math.min(index, 2)] : [index, index];
}
