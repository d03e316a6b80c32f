import { BadStream, BitReader, unescape } from './bits.ts';

/** Parameters of all frames (ITU-T H.264, 7.3.2.1), as far as frames that stand by themselves need it. */
export type SequenceSet = {
  id: number;
  /** In macroblocks. */
  width: number;
  height: number;
  /** Pixels that are not shown. */
  crop: { left: number; right: number; top: number; bottom: number };
  frame_number_bits: number;
  order_count: { type: number; lsb_bits: number; delta_always_zero: boolean };
  frames_only: boolean;
  scaling: ScalingLists | undefined;
  colours: { full_range: boolean; matrix: number };
};

/** Parameters of some slices (7.3.2.2). */
export type SliceSet = {
  id: number;
  sequence_id: number;
  is_cabac: boolean;
  bottom_order_present: boolean;
  qp: number;
  /** Of the two planes of colour. */
  chroma_qp_offsets: [number, number];
  deblocking_present: boolean;
  redundant_count_present: boolean;
  transform_8x8: boolean;
  scaling: ScalingLists | undefined;
};

/** Undefined where the list of before applies: six of 4 × 4, then two of 8 × 8, row by row. */
export type ScalingLists = (readonly number[] | undefined)[];

export const zigzag_4x4 = [0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15];

/** In diagonals from the upper left corner, up and down in turn. */
export const zigzag_8x8 = Array.from({ length: 15 }, (_, sum) => {
  const diagonal = Array.from({ length: 8 }, (__, x) => [sum - x, x] as const).filter(([y]) => y >= 0 && y < 8);
  const upwards = sum % 2 === 0 ? diagonal : diagonal.toReversed();
  return upwards.map(([y, x]) => y * 8 + x);
}).flat();

const high_profiles = new Set([100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135]);

/** Pixels of a frame that is decoded: 8K. */
const macroblocks_max = (8192 * 4608) / 256;

export function readSequenceSet(unit: Uint8Array): SequenceSet {
  const reader = new BitReader(unescape(unit.subarray(1)));
  const profile = reader.bits(8);
  reader.bits(16);
  const id = reader.unsigned();
  const scaling = high_profiles.has(profile) ? readHighProfile(reader) : undefined;
  const frame_number_bits = reader.unsigned() + 4;
  const order_count = readOrderCount(reader);
  reader.unsigned();
  reader.bit();
  const width = reader.unsigned() + 1;
  const map_height = reader.unsigned() + 1;
  const frames_only = reader.flag();
  const height = map_height * (frames_only ? 1 : 2);
  if (!frames_only && reader.flag()) throw new BadStream('fields inside of frames are not decoded');
  if (width * height > macroblocks_max) throw new BadStream('the frame is too large');
  reader.bit();
  const crop = readCrop(reader, frames_only ? 2 : 4);
  const colours = reader.flag() ? readColours(reader) : { full_range: false, matrix: 2 };
  return { id, width, height, crop, frame_number_bits, order_count, frames_only, scaling, colours };
}

function readHighProfile(reader: BitReader): ScalingLists | undefined {
  if (reader.unsigned() !== 1) throw new BadStream('only 4:2:0 is decoded');
  if (reader.unsigned() !== 0 || reader.unsigned() !== 0) throw new BadStream('only 8 bits are decoded');
  if (reader.flag()) throw new BadStream('lossless frames are not decoded');
  return reader.flag() ? readScalingLists(reader, 8) : undefined;
}

function readOrderCount(reader: BitReader): SequenceSet['order_count'] {
  const type = reader.unsigned();
  if (type === 0) return { type, lsb_bits: reader.unsigned() + 4, delta_always_zero: true };
  if (type !== 1) return { type, lsb_bits: 0, delta_always_zero: true };
  const delta_always_zero = reader.flag();
  reader.signed();
  reader.signed();
  for (let left = Math.min(reader.unsigned(), 255); left > 0; left--) reader.signed();
  return { type, lsb_bits: 0, delta_always_zero };
}

function readCrop(reader: BitReader, row: number): SequenceSet['crop'] {
  if (!reader.flag()) return { left: 0, right: 0, top: 0, bottom: 0 };
  const [left, right, top, bottom] = [reader.unsigned(), reader.unsigned(), reader.unsigned(), reader.unsigned()];
  return { left: left * 2, right: right * 2, top: top * row, bottom: bottom * row };
}

/** A shape of pixels that is written out. */
const other_shape = 255;

/** The beginning of the usability information (E.1.1). */
function readColours(reader: BitReader): SequenceSet['colours'] {
  if (reader.flag() && reader.bits(8) === other_shape) reader.bits(32);
  if (reader.flag()) reader.bit();
  if (!reader.flag()) return { full_range: false, matrix: 2 };
  reader.bits(3);
  const full_range = reader.flag();
  if (!reader.flag()) return { full_range, matrix: 2 };
  reader.bits(16);
  return { full_range, matrix: reader.bits(8) };
}

export function readSliceSet(unit: Uint8Array): SliceSet {
  const reader = new BitReader(unescape(unit.subarray(1)));
  const id = reader.unsigned();
  const sequence_id = reader.unsigned();
  const is_cabac = reader.flag();
  const bottom_order_present = reader.flag();
  if (reader.unsigned() !== 0) throw new BadStream('groups of slices are not decoded');
  reader.unsigned();
  reader.unsigned();
  reader.bits(3);
  const qp = 26 + reader.signed();
  reader.signed();
  const offset = reader.signed();
  const deblocking_present = reader.flag();
  reader.bit();
  const redundant_count_present = reader.flag();
  const has_more = reader.hasMore();
  const transform_8x8 = has_more && reader.flag();
  const scaling = has_more && reader.flag() ? readScalingLists(reader, transform_8x8 ? 8 : 6) : undefined;
  const second = has_more ? reader.signed() : offset;
  const qps = { qp, chroma_qp_offsets: [offset, second] satisfies [number, number] };
  const flags = { is_cabac, bottom_order_present, deblocking_present, redundant_count_present, transform_8x8 };
  return { id, sequence_id, ...qps, ...flags, scaling };
}

/** Lists of inter blocks are read, too: the lists after them are what counts. */
function readScalingLists(reader: BitReader, count: number): ScalingLists {
  return Array.from({ length: count }, (_, index) => {
    if (!reader.flag()) return undefined;
    return index < 6 ? readList(reader, zigzag_4x4, default_4x4) : readList(reader, zigzag_8x8, default_8x8);
  });
}

function readList(reader: BitReader, scan: readonly number[], preset: readonly number[]): readonly number[] {
  const list = scan.map(() => 0);
  let last = 8;
  let next = 8;
  for (const [index, place] of scan.entries()) {
    if (next !== 0) next = (last + reader.signed() + 256) & 255;
    if (index === 0 && next === 0) return preset;
    last = next === 0 ? last : next;
    list[place] = last;
  }
  return list;
}

const default_4x4 = [6, 13, 20, 28, 13, 20, 28, 32, 20, 28, 32, 37, 28, 32, 37, 42];
// prettier-ignore
const default_8x8 = [
   6, 10, 13, 16, 18, 23, 25, 27, 10, 11, 16, 18, 23, 25, 27, 29,
  13, 16, 18, 23, 25, 27, 29, 31, 16, 18, 23, 25, 27, 29, 31, 33,
  18, 23, 25, 27, 29, 31, 33, 36, 23, 25, 27, 29, 31, 33, 36, 38,
  25, 27, 29, 31, 33, 36, 38, 40, 27, 29, 31, 33, 36, 38, 40, 42,
];

/** The lists of intra blocks: of the three planes in 4 × 4, then of the first in 8 × 8 (table 7-2). */
export type IntraScaling = readonly (readonly number[])[];

export function intraScaling(sequence: ScalingLists | undefined, slice_set: ScalingLists | undefined): IntraScaling {
  const flat = [...[16, 16, 16].map((value) => Array<number>(16).fill(value)), Array<number>(64).fill(16)];
  const of_sequence = sequence ? withFallback(sequence, [default_4x4, default_8x8]) : flat;
  if (!slice_set) return of_sequence;
  const fallback = sequence ? [of_sequence[0] ?? [], of_sequence[3] ?? []] : [default_4x4, default_8x8];
  return withFallback(slice_set, fallback);
}

/** A list that is absent is the one before it, the first of each size that of `fallback`. */
function withFallback(lists: ScalingLists, [small = [], large = []]: readonly (readonly number[])[]): IntraScaling {
  const first = lists[0] ?? small;
  const second = lists[1] ?? first;
  return [first, second, lists[2] ?? second, lists[6] ?? large];
}
