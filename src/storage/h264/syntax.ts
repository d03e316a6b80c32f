/** Kinds of blocks (ITU-T H.264, table 9-42): the numbers are those of the standard. */
export const block_kinds = { luma_dc: 0, luma_ac: 1, luma: 2, chroma_dc: 3, chroma_ac: 4, luma_8x8: 5 } as const;
export type BlockKind = (typeof block_kinds)[keyof typeof block_kinds];

/** A neighbour's number of levels, or of anything: -1 if there is no such neighbour in the slice. */
export type Neighbours = { left: number; above: number };

/** Patterns of coded blocks of the neighbours: four bits of luma, two of colour. */
export type Syntax = {
  /** The type of a macroblock: 0 is predicted in blocks, 25 is not compressed; of the neighbours 1 if it is not 0. */
  macroblockType(neighbours: Neighbours): number;
  /** Of the neighbours: 1 if their flag is set. */
  transform8x8(neighbours: Neighbours): boolean;
  /** A mode but for the likely one; -1 if it is that one. */
  predictionMode(): number;
  /** Of the neighbours: 1 if theirs is not 0. */
  chromaMode(neighbours: Neighbours): number;
  /** Of the neighbours: their patterns. */
  codedPattern(neighbours: Neighbours): number;
  qpDelta(): number;
  /** Reads the levels of a block into `levels` in the order of the scan. Answers how many are not 0. */
  block(kind: BlockKind, levels: Int32Array, count: number, neighbours: Neighbours): number;
  /** An 8 × 8 block of luma comes in four parts, one level of each in turn. */
  readonly splits_8x8: boolean;
  /** Copies so many samples that are not compressed. */
  samples(count: number): Uint8Array;
  /** Goes on after a macroblock, whose difference of quality was 0 or was none. Tells whether the slice has ended. */
  ends(): boolean;
};
