import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { draw, takesTooMuch } from '../../src/storage/drawing.ts';
import { gainOfMp3 } from '../../src/storage/loudness.ts';
import * as samples from './samples.ts';

const sourceOf = (bytes: Uint8Array) => {
  const buffer = Buffer.from(bytes);
  return { size_bytes: buffer.length, read: (start: number, length: number) => buffer.subarray(start, start + length) };
};

/** The thumbnails of a file, or none. */
async function drawn(bytes: Uint8Array): Promise<Buffer[]> {
  const { done } = await draw(sourceOf(bytes));
  return done.drawn.map((each) => Buffer.from(each));
}

/** Sides of the thumbnails, such as `114 × 64`. */
async function sidesOf(bytes: Uint8Array): Promise<string[]> {
  const all = await Promise.all((await drawn(bytes)).map((each) => sharp(each).metadata()));
  for (const { format, exif, icc } of all) expect({ format, exif, icc }).toEqual({ format: 'webp' });
  return all.map(({ width, height }) => `${width} × ${height}`);
}

/** The colour of one pixel. */
async function pixelOf(image: Buffer | undefined, x: number, y: number): Promise<number[]> {
  const { data, info } = await sharp(image).ensureAlpha().raw().toBuffer({ resolveWithObject: true });
  return [...data.subarray((y * info.width + x) * 4, (y * info.width + x) * 4 + 4)];
}

describe('thumbnails of an image', () => {
  it.each([
    ['a wide PNG', () => samples.sampleImage('png', 1600, 900), ['114 × 64', '569 × 320']],
    ['a tall JPEG that lies on its side', () => samples.sampleImage('jpeg', 900, 600, 6), ['64 × 96', '320 × 480']],
    ['a WebP', () => samples.sampleImage('webp', 640, 640), ['64 × 64', '320 × 320']],
    ['an AVIF', () => samples.sampleImage('avif', 300, 200), ['96 × 64', '300 × 200']],
    ['one that is smaller than a thumbnail', () => samples.sampleImage('gif', 30, 20), ['30 × 20', '30 × 20']],
    ['a strip, of which the middle is shown', () => samples.sampleImage('png', 3000, 400), ['128 × 64', '640 × 320']],
    ['one pixel', () => samples.sampleImage('png', 1, 1), ['1 × 1', '1 × 1']],
  ])('are WebP with 64 and 320 pixels on the shorter side, without metadata: %s', async (_, make, sides) => {
    expect(await sidesOf(await make())).toEqual(sides);
  });

  it('show the first image of an animation', async () => {
    const plain = { width: 80, height: 80, channels: 3 } as const;
    const paint = (background: string) =>
      sharp({ create: { ...plain, background } })
        .png()
        .toBuffer();
    const images = await Promise.all(['red', 'blue'].map(paint));
    const animation = await sharp(images, { join: { animated: true } })
      .gif({ loop: 0, delay: [100, 100] })
      .toBuffer();
    const [small] = await drawn(animation);
    const [red = 0, , blue = 0] = await pixelOf(small, 30, 30);
    expect(red).toBeGreaterThan(200);
    expect(blue).toBeLessThan(50);
  });

  it('keep what is transparent', async () => {
    const clear = { width: 100, height: 100, channels: 4, background: { r: 0, g: 0, b: 0, alpha: 0 } } as const;
    const [small] = await drawn(await sharp({ create: clear }).png().toBuffer());
    expect((await pixelOf(small, 20, 20))[3]).toBe(0);
  });

  it('of 25 detailed pictures have less than 150 kB together', async () => {
    const noise = { type: 'gaussian', mean: 128, sigma: 60 } as const;
    const dots = sharp({ create: { width: 128, height: 72, channels: 3, background: 'teal', noise } });
    const photo = await dots.resize(1280, 720, { kernel: 'cubic' }).png().toBuffer();
    const [small] = await drawn(photo);
    expect(small?.length).toBeGreaterThan(500); // it is no plain area
    expect((small?.length ?? 0) * 25).toBeLessThan(150_000);
  });
});

describe('a thumbnail of a video', () => {
  it('is a frame, with the sides of the video', async () => {
    expect(await sidesOf(await samples.mp4(176, 144, 30))).toEqual(['78 × 64', '176 × 144']);
    expect(await sidesOf(await samples.mp4(176, 144, 30, 'mov'))).toEqual(['78 × 64', '176 × 144']);
  });

  it('shows what the encoder was given', async () => {
    const [, large] = await drawn(await samples.mp4(176, 144, 3));
    const { data } = await sharp(large).removeAlpha().greyscale().raw().toBuffer({ resolveWithObject: true });
    // The encoder was given bytes that grow along the rows: see samples.ts.
    const expected = (pixel: number) => (pixel >> 2) & 255;
    const differences = Array.from({ length: 176 * 144 }, (_, at) => Math.abs((data[at] ?? 0) - expected(at)));
    const far = differences.filter((difference) => difference > 24 && difference < 232);
    expect(far.length / differences.length).toBeLessThan(0.1);
  });
});

describe('a thumbnail of a recording', () => {
  /** A tone that is loud in its second half only. */
  const rising = () => {
    const bytes = samples.wav(2);
    bytes.fill(0, 44, 44 + (bytes.length - 44) / 2);
    return bytes;
  };

  it.each([
    ['WAV', () => samples.wav(1)],
    ['MP3', () => samples.mp3(100)],
    ['Ogg', () => samples.sampleAudio('ogg', 50)],
    ['AAC', () => samples.sampleAudio('aac', 50)],
    ['MP4', () => samples.sampleAudio('mp4', 50)],
    ['WebM', () => samples.sampleAudio('webm', 50)],
  ])('is its loudness over time: %s', async (_, make) => {
    expect(await sidesOf(await make())).toEqual(['128 × 64', '640 × 320']);
  });

  it('is high where it is loud, and transparent around that', async () => {
    const [, large] = await drawn(rising());
    const alphaAt = async (x: number, y: number) => (await pixelOf(large, x, y))[3] ?? 0;
    expect(await alphaAt(42, 60)).toBeLessThan(60); // in the quiet half, far from the middle
    expect(await alphaAt(482, 60)).toBeGreaterThan(200);
    expect(await alphaAt(42, 160)).toBeGreaterThan(200); // silence is a thin line
  });

  it('takes the gain that each frame of MP3 says', () => {
    // MPEG-1, stereo, no checksum: 9 + 3 + 8 bits of side information, then 12 of a length, 9, and 8 of the gain.
    const withGain = (gain: number) => {
      const frame = samples.mp3(1);
      const at = 32 + 20;
      for (let bit = 0; bit < 12; bit++) setBit(frame, at + bit, 1);
      for (let bit = 0; bit < 8; bit++) setBit(frame, at + 21 + bit, (gain >> (7 - bit)) & 1);
      return frame;
    };
    expect(gainOfMp3(withGain(210))).toBe(1);
    expect(gainOfMp3(withGain(214))).toBe(2);
    expect(gainOfMp3(samples.mp3(1))).toBe(0); // no levels: silence
  });
});

function setBit(bytes: Buffer, at: number, bit: number): void {
  const byte = bytes[at >> 3] ?? 0;
  const mask = 0x80 >> (at & 7);
  bytes[at >> 3] = bit === 1 ? byte | mask : byte & ~mask;
}

describe('what cannot be decoded', () => {
  it.each<[string, () => Promise<Uint8Array> | Uint8Array]>([
    ['nothing', () => Buffer.alloc(0)],
    ['a text', () => Buffer.from('A red bicycle')],
    ['a picture that is cut off', async () => (await samples.sampleImage('png', 400, 300)).subarray(0, 5_000)],
    ['a video that is cut off', async () => (await samples.mp4(96, 64, 10)).subarray(0, -100)],
    ['a WebM whose frames are none', () => samples.webm(64, 48, 3)],
    ['a WAV without samples', () => samples.wav(0)],
    ['a video whose frames are zeros', async () => withoutFrames(await samples.mp4(96, 64, 10))],
  ])('has no thumbnail, and that is no error: %s', async (_, make) => {
    expect(await drawn(await make())).toEqual([]);
  });

  it.each<[string, Omit<Parameters<typeof takesTooMuch>[0], 'channels' | 'depth'>, boolean]>([
    ['a PNG, line by line', { format: 'png', isProgressive: false, width: 12_000, height: 12_000 }, false],
    ['the same in seven passes', { format: 'png', isProgressive: true, width: 12_000, height: 12_000 }, true],
    [
      'a progressive JPEG of 50 megapixels',
      { format: 'jpeg', isProgressive: true, width: 10_000, height: 5_000 },
      false,
    ],
    ['one of 80', { format: 'jpeg', isProgressive: true, width: 10_000, height: 8_000 }, true],
    ['a WebP of 144 megapixels', { format: 'webp', isProgressive: false, width: 12_000, height: 12_000 }, true],
    [
      'an animation, of which one image is decoded',
      { format: 'gif', isProgressive: false, width: 4_000, height: 400_000, pageHeight: 4_000 },
      false,
    ],
  ])('is an image that takes too much memory: %s', (_, metadata, expected) => {
    expect(takesTooMuch({ channels: 3, depth: 'uchar', ...metadata })).toBe(expected);
  });
});

function withoutFrames(bytes: Buffer): Buffer {
  const at = bytes.indexOf('mdat', 0, 'latin1') + 4;
  const copy = Buffer.from(bytes);
  copy.fill(0, at, at + copy.readUInt32BE(at - 8) - 8);
  return copy;
}
