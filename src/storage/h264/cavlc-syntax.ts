import { BadStream, type BitReader } from './bits.ts';
import {
  chroma_level_counts,
  chroma_zeros_before,
  coded_patterns,
  level_counts,
  zeros_before,
  zeros_between,
  type Codes,
} from './cavlc-tables.ts';
import type { BlockKind, Neighbours, Syntax } from './syntax.ts';

/** A code by its next bits: `value * 32 + length` at each text of bits that begins with it, 0 where none does. */
type Lookup = { bits: number; entries: Uint16Array };

function lookupOf({ lengths, bits }: Codes): Lookup {
  const longest = Math.max(...lengths);
  const entries = new Uint16Array(2 ** longest);
  for (const [value, length] of lengths.entries()) {
    const free = longest - length;
    const first = (bits[value] ?? 0) << free;
    if (length > 0) entries.fill(value * 32 + length, first, first + 2 ** free);
  }
  return { bits: longest, entries };
}

const lookups = {
  level_counts: level_counts.map(lookupOf),
  chroma_level_counts: lookupOf(chroma_level_counts),
  zeros_before: zeros_before.map(lookupOf),
  chroma_zeros_before: chroma_zeros_before.map(lookupOf),
  zeros_between: zeros_between.map(lookupOf),
};

/** Reads macroblocks that are coded with codes of variable length (ITU-T H.264, 7.3.5 and 9.2). */
export class CavlcSyntax implements Syntax {
  readonly splits_8x8 = true;
  readonly #reader: BitReader;
  readonly #levels = new Int32Array(16);

  constructor(reader: BitReader) {
    this.#reader = reader;
  }

  macroblockType(): number {
    const type = this.#reader.unsigned();
    if (type > 25) throw new BadStream('there is no such macroblock');
    return type;
  }

  transform8x8(): boolean {
    return this.#reader.flag();
  }

  predictionMode(): number {
    return this.#reader.flag() ? -1 : this.#reader.bits(3);
  }

  chromaMode(): number {
    const mode = this.#reader.unsigned();
    if (mode > 3) throw new BadStream('there is no such prediction');
    return mode;
  }

  codedPattern(): number {
    const pattern = coded_patterns[this.#reader.unsigned()];
    if (pattern === undefined) throw new BadStream('there is no such pattern');
    return pattern;
  }

  qpDelta(): number {
    return this.#reader.signed();
  }

  block(kind: BlockKind, levels: Int32Array, count: number, neighbours: Neighbours): number {
    const token = kind === 3 ? this.#code(lookups.chroma_level_counts) : this.#levelCount(neighbours);
    const total = token >> 2;
    if (total === 0) return 0;
    if (total > count) throw new BadStream('a block has too many levels');
    this.#readLevels(total, token & 3);
    const all = kind === 3 ? lookups.chroma_zeros_before : lookups.zeros_before;
    const lookup = all[total - 1];
    let zeros = total < count && lookup ? this.#code(lookup) : 0;
    let place = total + zeros - 1;
    if (place >= count) throw new BadStream('a block is too long');
    for (let index = 0; index < total; index++) {
      levels[place] = this.#levels[index] ?? 0;
      const between = lookups.zeros_between[Math.min(zeros, 7) - 1];
      const run = between && index < total - 1 ? this.#code(between) : 0;
      zeros -= run;
      place -= run + 1;
      if (zeros < 0) throw new BadStream('a block is too long');
    }
    return total;
  }

  /** Four times the number of levels, and how many of the last ones are 1 or -1. */
  #levelCount({ left, above }: Neighbours): number {
    const both = left >= 0 && above >= 0 ? (left + above + 1) >> 1 : Math.max(left, above, 0);
    if (both < 8)
      return this.#code(lookups.level_counts[both < 2 ? 0 : both < 4 ? 1 : 2] ?? lookups.chroma_level_counts);
    const fixed = this.#reader.bits(6);
    return fixed === 3 ? 0 : fixed + 4;
  }

  #code({ bits, entries }: Lookup): number {
    const entry = entries[this.#reader.peek(bits)] ?? 0;
    if (entry === 0) throw new BadStream('there is no such code');
    this.#reader.position += entry & 31;
    return entry >> 5;
  }

  /** The levels from the last to the first (9.2.2). */
  #readLevels(total: number, ones: number): void {
    const reader = this.#reader;
    let suffix = total > 10 && ones < 3 ? 1 : 0;
    for (let index = 0; index < total; index++) {
      if (index < ones) {
        this.#levels[index] = reader.bit() === 1 ? -1 : 1;
        continue;
      }
      let code = this.#levelCode(suffix);
      if (index === ones && ones < 3) code += 2;
      const level = code % 2 === 0 ? (code + 2) / 2 : (-code - 1) / 2;
      this.#levels[index] = level;
      if (suffix === 0) suffix = 1;
      if (Math.abs(level) > 3 << (suffix - 1) && suffix < 6) suffix += 1;
    }
  }

  #levelCode(suffix: number): number {
    const reader = this.#reader;
    const prefix = reader.zeros();
    const size = prefix === 14 && suffix === 0 ? 4 : prefix >= 15 ? prefix - 3 : suffix;
    let code = (Math.min(15, prefix) << suffix) + reader.bits(size);
    if (prefix >= 15 && suffix === 0) code += 15;
    if (prefix >= 16) code += 2 ** (prefix - 3) - 4096;
    return code;
  }

  samples(count: number): Uint8Array {
    return this.#reader.samples(count);
  }

  ends(): boolean {
    this.#reader.check();
    return !this.#reader.hasMore();
  }
}
