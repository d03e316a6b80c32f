import { EncodedPacketSink, type Input, type InputAudioTrack } from 'mediabunny';
import type { ByteSource } from './byte-source.ts';
import type { Container } from './sniff.ts';

/** Parts into which a recording is divided. */
export const bars_max = 64;

/** Looks into each part of a compressed recording: it is not decoded, so that an hour takes no longer than a minute. */
const looks = 3;

/**
 * Returns how loud the parts of a recording are, from 0 to 1, the loudest 1. From the samples where they are not
 * compressed; from the gain that MP3 has in each frame; else from the sizes of packets, which grow with what is heard.
 */
export async function loudnessOf(
  source: ByteSource,
  container: Container,
  input: Input,
  track: InputAudioTrack,
): Promise<number[]> {
  if (container === 'wav') return relative(loudnessOfWav(source));
  const is_mp3 = (await track.getCodec()) === 'mp3';
  const sink = new EncodedPacketSink(track);
  const duration = await input.computeDuration([track]);
  const sizes: number[] = [];
  for (let look = 0; look < bars_max * looks; look++) {
    const packet = await sink.getPacket((duration * (look + 0.5)) / (bars_max * looks), { metadataOnly: !is_mp3 });
    sizes.push(packet ? (is_mp3 ? gainOfMp3(packet.data) : packet.byteLength) : 0);
  }
  const bars = Array.from({ length: bars_max }, (_, bar) => Math.max(...sizes.slice(bar * looks, (bar + 1) * looks)));
  return is_mp3 ? relative(bars) : relative(aboveLeast(bars));
}

/** The smallest packet is silence with a header: half of it counts. */
function aboveLeast(bars: readonly number[]): number[] {
  const least = Math.min(...bars) / 2;
  return bars.map((bar) => bar - least);
}

function relative(bars: readonly number[]): number[] {
  const loudest = Math.max(...bars);
  if (!(loudest > 0)) return bars.map(() => 0);
  return bars.map((bar) => Math.sqrt(bar / loudest)); // as it is heard, a bit
}

/**
 * The largest gain in a frame of MP3: a step of 4 doubles it. What stands before it is of a fixed length: the header
 * and a checksum perhaps, then the side information (ISO 11172-3, 2.4.1.7; ISO 13818-3, 2.4.1.7).
 */
export function gainOfMp3(frame: Uint8Array): number {
  const [, second = 0, , fourth = 0] = frame;
  const is_mpeg1 = ((second >> 3) & 3) === 3;
  const channels = fourth >> 6 === 3 ? 1 : 2;
  const granules = is_mpeg1 ? 2 : 1;
  const granule_bits = is_mpeg1 ? 59 : 63;
  const private_bits = is_mpeg1 ? (channels === 1 ? 5 + 4 : 3 + 8) : channels;
  let at = 32 + ((second & 1) === 0 ? 16 : 0) + (is_mpeg1 ? 9 : 8) + private_bits;
  let loudest = 0;
  for (let part = 0; part < granules * channels; part++, at += granule_bits) {
    const length = bitsAt(frame, at, 12);
    if (length > 0) loudest = Math.max(loudest, 2 ** ((bitsAt(frame, at + 21, 8) - 210) / 4));
  }
  return loudest;
}

function bitsAt(bytes: Uint8Array, at: number, count: number): number {
  let value = 0;
  for (let bit = at; bit < at + count; bit++) value = value * 2 + (((bytes[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1);
  return value;
}

type Samples = { start: number; length: number; frame_bytes: number; sample_bytes: number; read: Read };
type Read = (bytes: Buffer, at: number) => number;

/** Of each part so much is read, from its middle. */
const window_bytes = 2 ** 15;

function loudnessOfWav(source: ByteSource): number[] {
  const { start, length, frame_bytes, sample_bytes, read } = samplesOf(source);
  const frames = Math.floor(length / frame_bytes);
  if (frames === 0) throw new Error('There are no samples.');
  return Array.from({ length: bars_max }, (_, bar) => {
    const first = Math.floor((frames * bar) / bars_max);
    const count = Math.max(1, Math.floor((frames * (bar + 1)) / bars_max) - first);
    const taken = Math.min(count, Math.max(1, Math.floor(window_bytes / frame_bytes)));
    const from = first + Math.floor((count - taken) / 2);
    const bytes = source.read(start + from * frame_bytes, taken * frame_bytes);
    let sum = 0;
    let samples = 0;
    for (let at = 0; at + sample_bytes <= bytes.length; at += sample_bytes, samples++) sum += read(bytes, at) ** 2;
    const loudness = samples === 0 ? 0 : Math.sqrt(sum / samples);
    return Number.isFinite(loudness) ? loudness : 0;
  });
}

const extensible = 0xfffe;

/** Finds the samples of a WAV file, and how they are written. Throws for compressed ones. */
function samplesOf(source: ByteSource): Samples {
  let format: Pick<Samples, 'frame_bytes' | 'sample_bytes' | 'read'> | undefined;
  for (let at = 12; at + 8 <= source.size_bytes;) {
    const head = source.read(at, 8);
    const name = head.toString('latin1', 0, 4);
    const length = head.readUInt32LE(4);
    if (name === 'fmt ') format = formatOf(source.read(at + 8, Math.min(length, 40)));
    if (name === 'data' && format) {
      return { ...format, start: at + 8, length: Math.min(length, source.size_bytes - at - 8) };
    }
    at += 8 + length + (length & 1);
  }
  throw new Error('There are no samples.');
}

function formatOf(chunk: Buffer): Pick<Samples, 'frame_bytes' | 'sample_bytes' | 'read'> {
  const tag = chunk.readUInt16LE(0);
  const channels = chunk.readUInt16LE(2);
  const bits = chunk.readUInt16LE(14);
  const read = readers[`${tag === extensible ? chunk.readUInt16LE(24) : tag}/${bits}`];
  if (!read || channels === 0) throw new Error('These samples are compressed.');
  return { sample_bytes: bits / 8, frame_bytes: channels * (bits / 8), read };
}

/** By the number of the format, 1 for whole numbers and 3 for others, and the bits of a sample. */
const readers: { readonly [format: string]: Read } = {
  '1/8': (bytes, at) => bytes.readUInt8(at) - 128,
  '1/16': (bytes, at) => bytes.readInt16LE(at),
  '1/24': (bytes, at) => bytes.readIntLE(at, 3),
  '1/32': (bytes, at) => bytes.readInt32LE(at),
  '3/32': (bytes, at) => bytes.readFloatLE(at),
  '3/64': (bytes, at) => bytes.readDoubleLE(at),
};
