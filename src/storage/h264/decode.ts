import { BadStream, BitReader, unescape } from './bits.ts';
import { Frame } from './frame.ts';
import type { Plane } from './intra.ts';
import { readSliceSet, readSequenceSet, type SequenceSet } from './parameter-sets.ts';
import { readSlice, type ParameterSets } from './slice.ts';

/** Pixels row by row, three bytes each. */
export type Pixels = { width: number; height: number; rgb: Uint8Array };

/**
 * Decodes a frame of H.264 that stands by itself: 4:2:0, 8 bits, no fields. `description` is the `avcC` box of a file
 * whose units have their lengths before them; without it start codes part them. Throws for everything else.
 */
export function decodeKeyFrame(packet: Uint8Array, description?: Uint8Array): Pixels {
  const { planes, sequence } = decodePlanes(packet, description);
  return pixelsOf(planes, sequence);
}

type Decoded = { planes: readonly Plane[]; sequence: SequenceSet };

/** The same as luma and two planes of colour, in whole macroblocks. */
export function decodePlanes(packet: Uint8Array, description?: Uint8Array): Decoded {
  const sets: ParameterSets = { sequences: new Map(), slice_sets: new Map() };
  const configuration = description === undefined ? undefined : readDescription(description);
  for (const unit of configuration?.units ?? []) addSet(sets, unit);
  const units = configuration ? unitsByLength(packet, configuration.length_bytes) : unitsByStartCode(packet);
  let frame: Frame | undefined;
  let sequence: SequenceSet | undefined;
  for (const unit of units) {
    const head = unit[0] ?? 0;
    const type = head & 31;
    addSet(sets, unit);
    if (type !== 1 && type !== 5) continue;
    const slice = readSlice(
      { type, is_reference: ((head >> 5) & 3) !== 0 },
      new BitReader(unescape(unit.subarray(1))),
      sets,
    );
    sequence ??= slice.sequence;
    if (slice.sequence !== sequence) throw new BadStream('the slices have different sizes');
    frame ??= new Frame(sequence.width, sequence.height);
    frame.decode(slice);
  }
  if (!frame?.is_whole || !sequence) throw new BadStream('the frame is not whole');
  return { planes: frame.planes, sequence };
}

function addSet(sets: ParameterSets, unit: Uint8Array): void {
  const type = (unit[0] ?? 0) & 31;
  if (type === 7) {
    const sequence = readSequenceSet(unit);
    sets.sequences.set(sequence.id, sequence);
  } else if (type === 8) {
    const slice_set = readSliceSet(unit);
    sets.slice_sets.set(slice_set.id, slice_set);
  }
}

/** The parameter sets of an `avcC` box, and the bytes of a length (ISO 14496-15, 5.3.3.1). */
function readDescription(bytes: Uint8Array): { length_bytes: number; units: Uint8Array[] } {
  const units: Uint8Array[] = [];
  let at = 5;
  for (const mask of [31, 255]) {
    const count = (bytes[at++] ?? 0) & mask;
    for (let index = 0; index < count; index++) {
      const length = (bytes[at] ?? 0) * 256 + (bytes[at + 1] ?? 0);
      units.push(bytes.subarray(at + 2, at + 2 + length));
      at += 2 + length;
    }
  }
  return { length_bytes: ((bytes[4] ?? 0) & 3) + 1, units };
}

function* unitsByLength(packet: Uint8Array, length_bytes: number): Generator<Uint8Array> {
  for (let at = 0; at + length_bytes < packet.length;) {
    let length = 0;
    for (let index = 0; index < length_bytes; index++) length = length * 256 + (packet[at + index] ?? 0);
    at += length_bytes;
    if (length > packet.length - at) throw new BadStream('the frame is cut off');
    yield packet.subarray(at, at + length);
    at += length;
  }
}

const start_code = Buffer.of(0, 0, 1);

function* unitsByStartCode(packet: Uint8Array): Generator<Uint8Array> {
  const bytes = Buffer.from(packet.buffer, packet.byteOffset, packet.byteLength);
  for (let at = bytes.indexOf(start_code); at !== -1;) {
    const next = bytes.indexOf(start_code, at + 3);
    yield bytes.subarray(at + 3, next === -1 ? bytes.length : next);
    at = next;
  }
}

/** By the number of the matrix (table E-5): how red and blue go into luma. That of television, old or new, where it is unknown. */
function weightsOf({ colours, height }: SequenceSet): { red: number; blue: number } {
  const is_new = colours.matrix === 1 || (colours.matrix === 2 && height * 16 >= 720);
  if (colours.matrix === 9 || colours.matrix === 10) return { red: 0.2627, blue: 0.0593 };
  return is_new ? { red: 0.2126, blue: 0.0722 } : { red: 0.299, blue: 0.114 };
}

function pixelsOf([luma, blue, red]: readonly Plane[], sequence: SequenceSet): Pixels {
  const { crop, colours } = sequence;
  const width = sequence.width * 16 - crop.left - crop.right;
  const height = sequence.height * 16 - crop.top - crop.bottom;
  if (!luma || !blue || !red || width < 1 || height < 1) throw new BadStream('the frame shows nothing');
  const weights = weightsOf(sequence);
  const [black, luma_scale, chroma_scale] = colours.full_range ? [0, 1, 1] : [16, 255 / 219, 255 / 224];
  const to_red = 2 * (1 - weights.red) * chroma_scale;
  const to_blue = 2 * (1 - weights.blue) * chroma_scale;
  const green = 1 - weights.red - weights.blue;
  const rgb = new Uint8ClampedArray(width * height * 3);
  for (let y = 0, at = 0; y < height; y++) {
    const row = (y + crop.top) * luma.stride + crop.left;
    const chroma_row = ((y + crop.top) >> 1) * blue.stride;
    for (let x = 0; x < width; x++, at += 3) {
      const chroma = chroma_row + ((x + crop.left) >> 1);
      const light = ((luma.samples[row + x] ?? 0) - black) * luma_scale;
      const b = ((blue.samples[chroma] ?? 0) - 128) * to_blue;
      const r = ((red.samples[chroma] ?? 0) - 128) * to_red;
      rgb[at] = light + r;
      rgb[at + 1] = light - (r * weights.red + b * weights.blue) / green;
      rgb[at + 2] = light + b;
    }
  }
  return { width, height, rgb: new Uint8Array(rgb.buffer) };
}
