import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { makeImages } from '../../../src/providers/sandbox/image.ts';
import { type ImageRequest, readMediaRequest } from '../../../src/providers/sandbox/media-request.ts';
import { drawTestImage } from '../../../src/providers/sandbox/test-image.ts';

function orderOf(text: string, input: { [key: string]: number } = {}): ImageRequest {
  const order = readMediaRequest('image', input, text);
  if (order.kind !== 'image') throw new Error('not an image');
  return order;
}

async function makeImage(text: string, input: { [key: string]: number } = {}): Promise<Buffer> {
  const [file] = await makeImages(orderOf(text, input));
  return file ?? Buffer.alloc(0);
}

/** Brightness (0 to 255) of every pixel. */
async function brightness(image: Buffer): Promise<{ pixels: Buffer; width: number; height: number }> {
  const { data, info } = await sharp(image).greyscale().raw().toBuffer({ resolveWithObject: true });
  return { pixels: data, width: info.width, height: info.height };
}

/** WCAG contrast of white against a grey from 0 to 255. */
function contrastWithWhite(grey: number): number {
  const share = grey / 255;
  const luminance = share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  return 1.05 / (luminance + 0.05);
}

describe('makeImages', () => {
  it.each([
    [{}, 768, 768],
    [{ width: 16, height: 16 }, 16, 16],
    [{ width: 2048, height: 16 }, 2048, 16],
    [{ width: 17, height: 2048 }, 17, 2048],
    [{ width: 2048, height: 2048 }, 2048, 2048],
  ])('turns %j into a PNG of %d × %d', async (input, width, height) => {
    const image = await makeImage('a red bicycle', input);
    expect(await sharp(image).metadata()).toMatchObject({
      format: 'png',
      width,
      height,
      channels: 3,
      hasAlpha: false,
    });
    await sharp(image).stats(); // decodes every pixel
  });

  it('returns the same bytes for the same order', async () => {
    expect(await makeImage('a red bicycle')).toEqual(await makeImage('a red bicycle'));
  });

  it('returns another image for another text, seed or size, and for each of n', async () => {
    const four = await makeImages(orderOf('a red bicycle', { n: 4 }));
    const others = await Promise.all([
      makeImage('a blue bicycle'),
      makeImage('a red bicycle', { seed: 1 }),
      makeImage('a red bicycle', { width: 767 }),
    ]);
    expect(four).toHaveLength(4);
    expect(new Set([...four, ...others].map((file) => file.toString('base64'))).size).toBe(7);
    expect(four[0]).toEqual(await makeImage('a red bicycle'));
  });

  it('draws the text: the same image without it differs in the middle', async () => {
    const options = { width: 400, height: 400, seed: 'same' };
    const [with_text, without] = await Promise.all(
      ['HELLO', ''].map((text) => brightness(Buffer.from(drawTestImage({ ...options, text })))),
    );
    const share = (from_y: number, to_y: number) => {
      let changed = 0;
      for (let at = from_y * 400; at < to_y * 400; at++) {
        if (Math.abs((with_text?.pixels[at] ?? 0) - (without?.pixels[at] ?? 0)) > 30) changed++;
      }
      return changed / ((to_y - from_y) * 400);
    };
    expect(share(170, 230)).toBeGreaterThan(0.3);
    expect(share(0, 60)).toBe(0);
  });

  it('draws the text white on dark, legible on every kind of image', async () => {
    for (let seed = 0; seed < 40; seed++) {
      const image = drawTestImage({ width: 320, height: 320, text: 'legible words here', seed: String(seed) });
      const { pixels } = await brightness(
        await sharp(Buffer.from(image)).extract({ left: 60, top: 110, width: 200, height: 100 }).png().toBuffer(),
      );
      const sorted = [...pixels].toSorted((a, b) => a - b);
      const white = sorted.filter((grey) => grey > 245).length / sorted.length;
      const ground = sorted[Math.floor(sorted.length / 2)] ?? 255;
      expect(white, `seed ${seed}`).toBeGreaterThan(0.1);
      expect(contrastWithWhite(ground), `seed ${seed}`).toBeGreaterThan(4.5);
    }
  });

  it('makes an image of any text at any size', async () => {
    const side = fc.integer({ min: 16, max: 200 });
    const text = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 300 }),
      fc.string({ unit: fc.constantFrom('\ud83d', '\u0000', '\u0301', '<', '&', 'ب', '🚲', ' ', 'W'), maxLength: 300 }),
    );
    await fc.assert(
      fc.asyncProperty(text, side, side, async (words, width, height) => {
        expect(await sharp(await makeImage(words, { width, height })).metadata()).toMatchObject({ width, height });
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['4,000 characters', 'all work and no play makes a dull picture '.repeat(100).slice(0, 4_000)],
    ['one word of 10,000', 'w'.repeat(10_000)],
    ['10,000 emoji', '🚲'.repeat(5_000)],
    ['10,000 accents', 'a' + '\u0301'.repeat(9_999)],
  ])('accepts %s', async (_name, text) => {
    const before = process.cpuUsage();
    expect(await sharp(await makeImage(text)).metadata()).toMatchObject({ width: 768 });
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1_000).toBeLessThan(5_000);
  });
});
