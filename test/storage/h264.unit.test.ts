import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { BufferSource, EncodedPacketSink, Input, MP4 } from 'mediabunny';
import { describe, expect, it } from 'vitest';
import { decodeKeyFrame, decodePlanes } from '../../src/storage/h264/decode.ts';

/**
 * Frames of 88 × 56 that x264 made, and the SHA-256 of what FFmpeg decodes of them without smoothing the edges of blocks:
 * luma, then the two planes of colour.
 */
const frames = {
  baseline: 'fcb62b0d244d8954d4f81af98acb1488e239f3f2fbdc13f68fe10f0225c2ef6f',
  main: 'b7e8cd9937bcce998e1619c927a52934957ff262985c0268e759a665655fb747',
  high: '9d5552046fedfac82594696fe4f8375e741b3fef810664f685974dfc1d10750b',
  'high-cavlc': 'c7255e31b173b0b61971d0ee91c2374a4c150ee5b72885ac8bb9d275fe09a569',
  matrices: 'b8fcb3f9e2cc0ec2b55299809e91fccc8282f3f6444a1ecffcc57ce5e0516946',
  slices: '404b4ab2b1741fa434b77dbfff0ce2273b5f5e0e80cf7fede04dc75aebf61ac2',
  'low-quality': '0bfbc2ac3517e56803b72bf4d6a2f1dbed2aad9ac50a328f2586c2c9c1847849',
  'high-quality': '5086937f5161fa5acd1af82a7705825b72d6ab93b88e1d188223b9dcb10ea67e',
  'high-quality-cavlc': 'cd4248f049f5e0c9d80532210031a6dc0389b638c8c634b1d50bd05e6103be31',
  offsets: 'e0a7f5a9bae6b6c1e348505d94062b44d78ac528f97f0d868e8e792fd652873e',
};

type Name = keyof typeof frames;
const names = Object.keys(frames) as Name[];

async function packetOf(name: Name): Promise<{ packet: Uint8Array; description: Uint8Array }> {
  const bytes = readFileSync(new URL(`../corpora/h264/${name}.mp4`, import.meta.url));
  using input = new Input({ formats: [MP4], source: new BufferSource(bytes) });
  const track = await input.getPrimaryVideoTrack();
  const packet = track && (await new EncodedPacketSink(track).getFirstKeyPacket());
  const description = (await track?.getDecoderConfig())?.description;
  if (!packet || !(description instanceof Uint8Array)) throw new Error(`${name} has no frame`);
  return { packet: packet.data, description };
}

function hashOf({ planes }: ReturnType<typeof decodePlanes>): string {
  const hash = createHash('sha256');
  for (const [index, { samples, stride }] of planes.entries()) {
    const [width, height] = index === 0 ? [88, 56] : [44, 28];
    for (let y = 0; y < height; y++) hash.update(samples.subarray(y * stride, y * stride + width));
  }
  return hash.digest('hex');
}

describe('a frame of H.264 that stands by itself', () => {
  it.each(names)('is decoded to the same samples as by FFmpeg: %s', async (name) => {
    const { packet, description } = await packetOf(name);
    expect(hashOf(decodePlanes(packet, description))).toBe(frames[name]);
    expect(decodeKeyFrame(packet, description)).toMatchObject({ width: 88, height: 56 });
  });

  it('is decoded with start codes between its units, too', async () => {
    const { packet, description } = await packetOf('high');
    const start = Buffer.of(0, 0, 0, 1);
    const sets_bytes = unitsOf(description.subarray(6), 2, [1, 1]);
    const stream = [...sets_bytes, ...unitsOf(packet, 4)].flatMap((unit) => [start, unit]);
    expect(hashOf(decodePlanes(Buffer.concat(stream)))).toBe(frames.high);
  });

  it('that is damaged anywhere throws an error or shows something else, and always ends', async () => {
    for (const name of ['baseline', 'slices', 'high-cavlc'] as const) {
      const { packet, description } = await packetOf(name);
      for (let at = 4; at < packet.length; at += 61) {
        const damaged = Buffer.from(packet);
        damaged[at] = (damaged[at] ?? 0) ^ 0x55;
        throwsIn(() => decodeKeyFrame(damaged, description));
      }
      expect(throwsIn(() => decodeKeyFrame(packet.subarray(0, packet.length / 2), description))).toBe(true);
      expect(throwsIn(() => decodeKeyFrame(Buffer.alloc(packet.length), description))).toBe(true);
    }
  });

  it('whose parameters are damaged throws or shows something else, and always ends', async () => {
    const { packet, description } = await packetOf('matrices');
    for (let bit = 0; bit < description.length * 8; bit++) {
      const damaged = Buffer.from(description);
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      throwsIn(() => decodeKeyFrame(packet, damaged));
    }
    expect(throwsIn(() => decodeKeyFrame(packet, Buffer.alloc(0)))).toBe(true);
  });
});

/** Units with their lengths before them, in groups whose counts stand between them if there are any. */
function unitsOf(bytes: Uint8Array, length_bytes: number, groups?: readonly number[]): Buffer[] {
  const buffer = Buffer.from(bytes);
  const units: Buffer[] = [];
  for (let at = 0; at + length_bytes <= buffer.length;) {
    const length = buffer.readUIntBE(at, length_bytes);
    units.push(buffer.subarray(at + length_bytes, at + length_bytes + length));
    at += length_bytes + length + (groups ? 1 : 0);
    if (groups && units.length === groups.length) break;
  }
  return units;
}

function throwsIn(work: () => unknown): boolean {
  try {
    work();
    return false;
  } catch (error) {
    if (error instanceof Error) return true;
    throw error;
  }
}
