import { BadStream, type BitReader } from './bits.ts';
import { CabacSyntax } from './cabac-syntax.ts';
import { CavlcSyntax } from './cavlc-syntax.ts';
import { intraScaling, type SliceSet, type SequenceSet } from './parameter-sets.ts';
import type { Syntax } from './syntax.ts';
import { levelScales } from './transform.ts';

/** The header of a slice, before its macroblocks (ITU-T H.264, 7.3.3). */
export type Slice = {
  first: number;
  qp: number;
  slice_set: SliceSet;
  sequence: SequenceSet;
  scales: Int32Array[];
  syntax: Syntax;
};

export type ParameterSets = { sequences: Map<number, SequenceSet>; slice_sets: Map<number, SliceSet> };

/** The type of a slice all of whose blocks are predicted from the frame itself; 5 more: so are those of all slices. */
const intra_slice = 2;

export function readSlice(
  unit: { type: number; is_reference: boolean },
  reader: BitReader,
  sets: ParameterSets,
): Slice {
  const first = reader.unsigned();
  if (reader.unsigned() % 5 !== intra_slice) throw new BadStream('the frame needs others');
  const slice_set = sets.slice_sets.get(reader.unsigned());
  const sequence = slice_set && sets.sequences.get(slice_set.sequence_id);
  if (!slice_set || !sequence) throw new BadStream('the frame names parameters that are not there');
  const is_refresh = unit.type === 5;
  reader.bits(sequence.frame_number_bits);
  if (!sequence.frames_only && reader.flag()) throw new BadStream('fields are not decoded');
  if (is_refresh) reader.unsigned();
  skipOrder(reader, sequence, slice_set);
  if (slice_set.redundant_count_present && reader.unsigned() > 0) throw new BadStream('a slice is there twice');
  if (unit.is_reference) skipMarking(reader, is_refresh);
  const qp = slice_set.qp + reader.signed();
  if (!(qp >= 0 && qp <= 51)) throw new BadStream('there is no such quality');
  if (slice_set.deblocking_present && reader.unsigned() !== 1) {
    reader.signed();
    reader.signed();
  }
  const syntax = slice_set.is_cabac ? new CabacSyntax(reader, qp) : new CavlcSyntax(reader);
  const scales = levelScales(intraScaling(sequence.scaling, slice_set.scaling));
  return { first, qp, slice_set, sequence, scales, syntax };
}

function skipOrder(reader: BitReader, { order_count }: SequenceSet, { bottom_order_present }: SliceSet): void {
  if (order_count.type === 0) {
    reader.bits(order_count.lsb_bits);
    if (bottom_order_present) reader.signed();
  } else if (order_count.type === 1 && !order_count.delta_always_zero) {
    reader.signed();
    if (bottom_order_present) reader.signed();
  }
}

/** Numbers after each of the operations on frames that are kept (7.3.3.3). */
const operands = [0, 1, 1, 2, 1, 0, 1];

function skipMarking(reader: BitReader, is_refresh: boolean): void {
  if (is_refresh) return void reader.bits(2);
  if (!reader.flag()) return;
  for (;;) {
    const operation = reader.unsigned();
    if (operation === 0) return;
    reader.check();
    for (let left = operands[operation] ?? 0; left > 0; left--) reader.unsigned();
  }
}
