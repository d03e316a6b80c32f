import { BadStream } from './bits.ts';
import { predictBlock, predictChroma, predictLuma, type Around, type Plane } from './intra.ts';
import { zigzag_4x4, zigzag_8x8 } from './parameter-sets.ts';
import type { Slice } from './slice.ts';
import { block_kinds, type Neighbours } from './syntax.ts';
import { add4x4, add8x8, scaleLevel, transformChromaDc, transformLumaDc } from './transform.ts';

/** Types of macroblocks beside those that are predicted as a whole. */
const in_blocks = 0;
const uncompressed = 25;

/** Levels of an uncompressed block, for its neighbours; its pattern; and a mode where a neighbour has none of its own. */
const all_levels = 16;
const whole_pattern = 47;
const mean_mode = 2;

/** Blocks of 4 × 4 of luma in the order in which they are coded. */
const block_x = [0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3];
const block_y = [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3];

/** Tells of each block of 4 × 4, row by row, whether the one above it to the right is coded before it, inside of the macroblock. */
const above_right_first = [1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0];

/** The quality of planes of colour by that of luma, from 30 on (table 8-16). */
const chroma_qps = [29, 30, 31, 32, 32, 33, 34, 34, 35, 35, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39, 39, 39];

/** Luma, and two planes of colour of half its sides. */
const planes_count = 3;

/** A value for each block: `side` blocks in a row, from `offset` on in the values of a macroblock. */
type Grid = { values: Uint8Array; per_macroblock: number; side: number; offset: number };

/** The macroblocks of a frame while they are decoded (ITU-T H.264, 7.3.5 and 8.3). Edges between blocks are not smoothed: nobody sees them in a thumbnail. */
export class Frame {
  readonly width: number;
  readonly height: number;
  readonly planes: readonly Plane[];
  /** Of each macroblock: the number of its slice from 1 on, its type, its pattern, and what its neighbours need. */
  readonly #slices: Uint16Array;
  readonly #types: Uint8Array;
  readonly #patterns: Uint8Array;
  readonly #chroma_modes: Uint8Array;
  readonly #transforms: Uint8Array;
  readonly #dc: Uint8Array;
  /** Levels of the blocks: sixteen of luma, row by row, then four of each plane of colour. */
  readonly #counts: Uint8Array;
  readonly #modes: Uint8Array;
  readonly #levels = new Int32Array(64);
  readonly #values = new Int32Array(64);
  readonly #first_levels = new Int32Array(16);
  #slice_number = 0;
  #decoded = 0;
  #address = 0;
  #qp = 0;

  /** In macroblocks. */
  constructor(width: number, height: number) {
    this.width = width;
    this.height = height;
    const count = width * height;
    this.planes = [256, 64, 64].map((size) => ({
      samples: new Uint8Array(count * size),
      stride: width * (size === 256 ? 16 : 8),
    }));
    this.#slices = new Uint16Array(count);
    this.#types = new Uint8Array(count);
    this.#patterns = new Uint8Array(count);
    this.#chroma_modes = new Uint8Array(count);
    this.#transforms = new Uint8Array(count);
    this.#dc = new Uint8Array(count);
    this.#counts = new Uint8Array(count * 24);
    this.#modes = new Uint8Array(count * 16);
  }

  get is_whole(): boolean {
    return this.#decoded === this.width * this.height;
  }

  /** Decodes the macroblocks of a slice. */
  decode(slice: Slice): void {
    this.#slice_number += 1;
    this.#qp = slice.qp;
    for (this.#address = slice.first; ; this.#address++) {
      if (this.#address >= this.#slices.length || this.#slices[this.#address] !== 0)
        throw new BadStream('a slice has too many macroblocks');
      this.#slices[this.#address] = this.#slice_number;
      this.#decoded += 1;
      this.#decodeMacroblock(slice);
      if (slice.syntax.ends()) return;
    }
  }

  #decodeMacroblock(slice: Slice): void {
    const { syntax, slice_set } = slice;
    const address = this.#address;
    const type = syntax.macroblockType(this.#beside((at) => (this.#types[at] === in_blocks ? 0 : 1), 0));
    this.#types[address] = type;
    this.#modes.fill(mean_mode, address * 16, address * 16 + 16);
    if (type === uncompressed) return this.#copySamples(slice);
    const is_8x8 =
      type === in_blocks &&
      slice_set.transform_8x8 &&
      syntax.transform8x8(this.#beside((at) => this.#transforms[at] ?? 0, 0));
    this.#transforms[address] = is_8x8 ? 1 : 0;
    if (type === in_blocks) this.#readModes(slice, is_8x8);
    const chroma_mode = syntax.chromaMode(this.#beside((at) => this.#chroma_modes[at] ?? 0, 0));
    this.#chroma_modes[address] = chroma_mode;
    const whole = { luma: type >= 13 ? 15 : 0, chroma: Math.floor((type - 1) / 4) % 3 };
    const pattern =
      type === in_blocks
        ? syntax.codedPattern(this.#beside((at) => this.#patterns[at] ?? 0, -1))
        : whole.luma + 16 * whole.chroma;
    this.#patterns[address] = pattern;
    if (type !== in_blocks || pattern > 0) this.#qp = (this.#qp + syntax.qpDelta() + 52 * 4) % 52;
    if (this.#qp < 0) throw new BadStream('there is no such quality');
    if (type !== in_blocks) this.#decodeWhole(slice, (type - 1) % 4, pattern);
    else if (is_8x8) this.#decodeIn8x8(slice, pattern);
    else this.#decodeIn4x4(slice, pattern);
    this.#decodeChroma(slice, chroma_mode, pattern >> 4);
  }

  #copySamples({ syntax }: Slice): void {
    const bytes = syntax.samples(384);
    let from = 0;
    for (const [index, { samples, stride }] of this.planes.entries()) {
      const size = index === 0 ? 16 : 8;
      for (let y = 0; y < size; y++, from += size) {
        samples.set(bytes.subarray(from, from + size), this.#place(index) + y * stride);
      }
    }
    this.#patterns[this.#address] = whole_pattern;
    this.#dc[this.#address] = 7;
    this.#counts.fill(all_levels, this.#address * 24, this.#address * 24 + 24);
  }

  /** Returns a value of the macroblock to the left and of the one above; `absent` where there is none in the slice. */
  #beside(valueOf: (address: number) => number, absent: number): Neighbours {
    return {
      left: this.#hasLeft() ? valueOf(this.#address - 1) : absent,
      above: this.#hasAbove() ? valueOf(this.#address - this.width) : absent,
    };
  }

  #hasLeft(): boolean {
    return this.#address % this.width > 0 && this.#slices[this.#address - 1] === this.#slice_number;
  }

  #hasAbove(): boolean {
    return this.#slices[this.#address - this.width] === this.#slice_number;
  }

  #around(): Around {
    const column = this.#address % this.width;
    const has = (address: number) => this.#slices[address] === this.#slice_number;
    return {
      left: this.#hasLeft(),
      above: this.#hasAbove(),
      corner: column > 0 && has(this.#address - this.width - 1),
      above_right: column < this.width - 1 && has(this.#address - this.width + 1),
    };
  }

  /** Returns the index in a plane at which the macroblock begins. */
  #place(plane: number): number {
    const size = plane === 0 ? 16 : 8;
    const row = Math.floor(this.#address / this.width);
    return row * size * (this.planes[plane]?.stride ?? 0) + (this.#address % this.width) * size;
  }

  /** The likely mode is the smaller one of the neighbours, or the mean where one of them is absent (8.3.1.1). */
  #readModes({ syntax }: Slice, is_8x8: boolean): void {
    const modes = this.#modes;
    const grid: Grid = { values: modes, per_macroblock: 16, side: 4, offset: 0 };
    for (let block = 0; block < 16; block += is_8x8 ? 4 : 1) {
      const [x = 0, y = 0] = [block_x[block], block_y[block]];
      const left = this.#blockBeside(grid, x - 1, y);
      const above = this.#blockBeside(grid, x, y - 1);
      const likely = left < 0 || above < 0 ? mean_mode : Math.min(left, above);
      const read = syntax.predictionMode();
      const mode = read < 0 ? likely : read < likely ? read : read + 1;
      const at = this.#address * 16 + y * 4 + x;
      for (const place of is_8x8 ? [at, at + 1, at + 4, at + 5] : [at]) modes[place] = mode;
    }
  }

  /** The value of the block at a place in this macroblock; at -1 in the one before it; -1 if there is none in the slice. */
  #blockBeside({ values, per_macroblock, side, offset }: Grid, x: number, y: number): number {
    let [column, row, address] = [x, y, this.#address];
    if (column < 0) {
      if (!this.#hasLeft()) return -1;
      address -= 1;
      column += side;
    }
    if (row < 0) {
      if (!this.#hasAbove()) return -1;
      address -= this.width;
      row += side;
    }
    return values[address * per_macroblock + offset + row * side + column] ?? -1;
  }

  #countsBeside(x: number, y: number, side: number, offset: number): Neighbours {
    const grid: Grid = { values: this.#counts, per_macroblock: 24, side, offset };
    return { left: this.#blockBeside(grid, x - 1, y), above: this.#blockBeside(grid, x, y - 1) };
  }

  /** Which samples there are around a block inside of the macroblock, of `size` blocks of 4 × 4. */
  #aroundBlock(outer: Around, x: number, y: number, size: 1 | 2): Around {
    const right = x + size;
    return {
      left: x > 0 || outer.left,
      above: y > 0 || outer.above,
      corner: x > 0 ? y > 0 || outer.above : y > 0 ? outer.left : outer.corner,
      above_right:
        y > 0 ? above_right_first[y * 4 + right - 1] === 1 && right < 4 : right < 4 ? outer.above : outer.above_right,
    };
  }

  #decodeIn4x4({ syntax, scales }: Slice, pattern: number): void {
    const [plane] = this.planes;
    const [scale] = scales;
    if (!plane || !scale) return;
    const outer = this.#around();
    for (let block = 0; block < 16; block++) {
      const [x = 0, y = 0] = [block_x[block], block_y[block]];
      const at = this.#place(0) + y * 4 * plane.stride + x * 4;
      const index = y * 4 + x;
      predictBlock(plane, at, 4, this.#modes[this.#address * 16 + index] ?? 0, this.#aroundBlock(outer, x, y, 1));
      let count = 0;
      if ((pattern >> (block >> 2)) & 1) {
        this.#levels.fill(0, 0, 16);
        count = syntax.block(block_kinds.luma, this.#levels, 16, this.#countsBeside(x, y, 4, 0));
        if (count > 0) add4x4(plane, at, this.#scaled(scale, this.#qp, 16, 0));
      }
      this.#counts[this.#address * 24 + index] = count;
    }
  }

  #decodeIn8x8({ syntax, scales }: Slice, pattern: number): void {
    const [plane] = this.planes;
    const scale = scales[3];
    if (!plane || !scale) return;
    const outer = this.#around();
    for (let block = 0; block < 4; block++) {
      const [x, y] = [(block % 2) * 2, (block >> 1) * 2];
      const at = this.#place(0) + y * 4 * plane.stride + x * 4;
      predictBlock(plane, at, 8, this.#modes[this.#address * 16 + y * 4 + x] ?? 0, this.#aroundBlock(outer, x, y, 2));
      if (((pattern >> block) & 1) === 0) {
        this.#setCounts(x, y, [0, 0, 0, 0]);
        continue;
      }
      this.#levels.fill(0);
      if (syntax.splits_8x8) this.#readSplit(syntax, x, y);
      else {
        const count = syntax.block(block_kinds.luma_8x8, this.#levels, 64, { left: 0, above: 0 });
        this.#setCounts(x, y, [count, count, count, count]);
      }
      add8x8(plane, at, this.#scaled(scale, this.#qp, 64, 0));
    }
  }

  #setCounts(x: number, y: number, [a = 0, b = 0, c = 0, d = 0]: readonly number[]): void {
    const at = this.#address * 24 + y * 4 + x;
    this.#counts[at] = a;
    this.#counts[at + 1] = b;
    this.#counts[at + 4] = c;
    this.#counts[at + 5] = d;
  }

  #readSplit(syntax: Slice['syntax'], x: number, y: number): void {
    const part = new Int32Array(16);
    for (let index = 0; index < 4; index++) {
      const [column, row] = [x + (index % 2), y + (index >> 1)];
      part.fill(0);
      const count = syntax.block(block_kinds.luma, part, 16, this.#countsBeside(column, row, 4, 0));
      this.#counts[this.#address * 24 + row * 4 + column] = count;
      for (let level = 0; level < 16; level++) this.#levels[level * 4 + index] = part[level] ?? 0;
    }
  }

  #decodeWhole({ syntax, scales }: Slice, mode: number, pattern: number): void {
    const [plane] = this.planes;
    const [scale] = scales;
    if (!plane || !scale) return;
    predictLuma(plane, this.#place(0), mode, this.#around());
    this.#levels.fill(0, 0, 16);
    const neighbours = syntax.splits_8x8 ? this.#countsBeside(0, 0, 4, 0) : this.#dcBeside(0);
    const dc_count = syntax.block(block_kinds.luma_dc, this.#levels, 16, neighbours);
    this.#dc[this.#address] = dc_count > 0 ? 1 : 0;
    const first = this.#first_levels.fill(0);
    for (const [index, place] of zigzag_4x4.entries()) first[place] = this.#levels[index] ?? 0;
    transformLumaDc(first, scale[(this.#qp % 6) * 16] ?? 0, this.#qp);
    for (let block = 0; block < 16; block++) {
      const [x = 0, y = 0] = [block_x[block], block_y[block]];
      const at = this.#place(0) + y * 4 * plane.stride + x * 4;
      this.#levels.fill(0, 0, 16);
      const is_coded = (pattern & 15) !== 0;
      const count = is_coded ? syntax.block(block_kinds.luma_ac, this.#levels, 15, this.#countsBeside(x, y, 4, 0)) : 0;
      this.#counts[this.#address * 24 + y * 4 + x] = count;
      const values = this.#scaled(scale, this.#qp, 16, 1);
      values[0] = first[y * 4 + x] ?? 0;
      add4x4(plane, at, values);
    }
  }

  /** Tells whether the neighbours have first levels of a plane. */
  #dcBeside(plane: number): Neighbours {
    return this.#beside((at) => ((this.#dc[at] ?? 0) >> plane) & 1, -1);
  }

  #decodeChroma({ syntax, scales, slice_set }: Slice, mode: number, pattern: number): void {
    const firsts = [1, 2].map((index) => {
      const plane = this.planes[index];
      if (plane) predictChroma(plane, this.#place(index), mode, this.#around());
      const first = new Int32Array(4);
      if (pattern === 0) return first;
      const dc_count = syntax.block(block_kinds.chroma_dc, first, 4, this.#dcBeside(index));
      if (dc_count > 0) this.#dc[this.#address] = (this.#dc[this.#address] ?? 0) | (1 << index);
      return first;
    });
    for (let index = 1; index < planes_count; index++) {
      const plane = this.planes[index];
      const scale = scales[index];
      const first = firsts[index - 1];
      if (!plane || !scale || !first) return;
      const luma = Math.min(51, Math.max(0, this.#qp + (slice_set.chroma_qp_offsets[index - 1] ?? 0)));
      const qp = luma < 30 ? luma : (chroma_qps[luma - 30] ?? 0);
      transformChromaDc(first, scale[(qp % 6) * 16] ?? 0, qp);
      for (let block = 0; block < 4; block++) {
        const [x, y] = [block % 2, block >> 1];
        const offset = 16 + (index - 1) * 4;
        this.#levels.fill(0, 0, 16);
        const count =
          pattern === 2
            ? syntax.block(block_kinds.chroma_ac, this.#levels, 15, this.#countsBeside(x, y, 2, offset))
            : 0;
        this.#counts[this.#address * 24 + offset + block] = count;
        const values = this.#scaled(scale, qp, 16, 1);
        values[0] = first[block] ?? 0;
        add4x4(plane, this.#place(index) + y * 4 * plane.stride + x * 4, values);
      }
    }
  }

  /** The levels in their places, without their quantisation. Those of `from` 1 begin after the first place. */
  #scaled(scale: Int32Array, qp: number, count: 16 | 64, from: 0 | 1): Int32Array {
    const values = this.#values.fill(0);
    const scan = count === 16 ? zigzag_4x4 : zigzag_8x8;
    const base = (qp % 6) * count;
    for (let index = from; index < count; index++) {
      const level = this.#levels[index - from] ?? 0;
      const place = scan[index] ?? 0;
      if (level !== 0) values[place] = scaleLevel(level, scale[base + place] ?? 0, qp, count === 16 ? 4 : 6);
    }
    return values;
  }
}
