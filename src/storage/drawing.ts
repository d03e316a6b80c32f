import type { InputVideoTrack } from 'mediabunny';
import { EncodedPacketSink } from 'mediabunny';
import sharp, { type Metadata, type Sharp } from 'sharp';
import type { ByteSource } from './byte-source.ts';
import { isComplete } from './completeness.ts';
import { decodeKeyFrame } from './h264/decode.ts';
import { thumbnail_sizes } from './key.ts';
import { bars_max, loudnessOf } from './loudness.ts';
import { bytesOf, image_formats, openTracks } from './measure.ts';
import { sniff, sniff_bytes, type Container } from './sniff.ts';

/** Thumbnails of a file as WebP, one of each size. */
export type DrawnThumbnails = { drawn: readonly Uint8Array[] };

// An image is decoded on one processor: what is drawn in the background leaves the others alone, and keepImageThreads
// counts on it.
sharp.concurrency(1);

/**
 * Draws the thumbnails of an image, a frame of a video, or the loudness of a recording. Draws none of what it cannot
 * decode. Hostile files may loop or eat memory: see media-processes.ts.
 */
export async function draw(source: ByteSource): Promise<{ done: DrawnThumbnails; spent: boolean }> {
  let spent = false;
  try {
    const container = sniff(source.read(0, sniff_bytes));
    if (!container || !isComplete(source, container)) return { done: { drawn: [] }, spent };
    spent = true;
    const image = image_formats[container] ? await openImage(source) : await drawTracks(source, container);
    return { done: { drawn: await shrink(image) }, spent: false };
  } catch {
    return { done: { drawn: [] }, spent };
  }
}

/** An image that can be decoded, with its sides as it is shown. */
type Image = { image: Sharp; width: number; height: number };

/** The longer side is at most so many times the shorter one; of what is longer, the middle is shown. */
const ratio_max = 2;

const webp = { quality: 68, alphaQuality: 80, effort: 4 };

/** Makes all sizes: the shorter side is of that size, and never longer than that of the image. */
async function shrink({ image, width, height }: Image): Promise<Buffer[]> {
  const largest = await scaled(image, width, height, thumbnail_sizes[1]).raw().toBuffer({ resolveWithObject: true });
  const { data, info } = largest;
  const small = (size: number) =>
    scaled(sharp(data, { raw: info }), info.width, info.height, size)
      .webp(webp)
      .toBuffer();
  return Promise.all(thumbnail_sizes.map(small));
}

function scaled(image: Sharp, width: number, height: number, size: number): Sharp {
  const scale = Math.min(1, size / Math.min(width, height));
  const side = (pixels: number) => Math.min(Math.max(1, Math.round(pixels * scale)), size * ratio_max);
  return image.resize(side(width), side(height), { fit: 'cover', position: 'centre' });
}

/** Limits of images that are decoded line by line, and of those that are decoded as a whole. */
const pixels_max = 200_000_000;
const whole_bytes_max = 360_000_000;

/** The first image of several, upright, in the colours of screens. */
async function openImage(source: ByteSource): Promise<Image> {
  const image = sharp(bytesOf(source), { limitInputPixels: pixels_max, failOn: 'error' });
  const metadata = await image.metadata();
  if (takesTooMuch(metadata)) throw new Error('It takes too much memory to be drawn.');
  const { autoOrient } = metadata;
  return { image: image.autoOrient().toColourspace('srgb'), width: autoOrient.width, height: autoOrient.height };
}

type Sizes = Pick<Metadata, 'format' | 'width' | 'height' | 'channels' | 'depth' | 'isProgressive' | 'pageHeight'>;

/** Tells whether an image must be in memory as a whole and is too large for that. */
export function takesTooMuch(sizes: Sizes): boolean {
  const { format, isProgressive = false, width, height, channels, depth, pageHeight = height } = sizes;
  if ((format === 'png' || format === 'jpeg') && !isProgressive) return false;
  const sample_bytes = format === 'jpeg' || depth !== 'uchar' ? 2 : 1; // coefficients of a JPEG have 16 bits
  return width * pageHeight * Math.max(channels, 3) * sample_bytes > whole_bytes_max;
}

async function drawTracks(source: ByteSource, container: Container): Promise<Image> {
  using input = openTracks(source, container);
  const video = await input.getPrimaryVideoTrack();
  if (video) return drawFrame(video);
  const audio = await input.getPrimaryAudioTrack();
  if (!audio) throw new Error('There is neither a video nor an audio track.');
  return drawLoudness(await loudnessOf(source, container, input, audio));
}

/** Seconds: many videos begin with a black frame. */
const frame_at = 1;

async function drawFrame(track: InputVideoTrack): Promise<Image> {
  const sink = new EncodedPacketSink(track);
  const packet = (await sink.getKeyPacket(frame_at)) ?? (await sink.getFirstKeyPacket());
  if (!packet) throw new Error('There is no frame that stands by itself.');
  const codec = await track.getCodec();
  const image = codec === 'vp8' ? sharp(webpOf(packet.data)) : await h264Image(track, packet.data);
  const width = Math.round(await track.getDisplayWidth());
  const height = Math.round(await track.getDisplayHeight());
  const rotation = await track.getRotation();
  const [across, down] = rotation % 180 === 0 ? [width, height] : [height, width];
  // In two steps, since the order of sharp's own is another one.
  const upright = await image
    .removeAlpha()
    .resize(...shrunkSides(across, down), { fit: 'fill' })
    .raw()
    .toBuffer({ resolveWithObject: true });
  const turned = sharp(upright.data, { raw: upright.info }).rotate(rotation);
  const { data, info } = await turned.raw().toBuffer({ resolveWithObject: true });
  return { image: sharp(data, { raw: info }), width: info.width, height: info.height };
}

/** Returns the sides as they are shown, no larger than a thumbnail needs them. */
function shrunkSides(width: number, height: number): [number, number] {
  const scale = Math.min(1, (2 * thumbnail_sizes[1]) / Math.min(width, height));
  return [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
}

/** A frame of VP8 that stands by itself is an image of WebP without its header. */
function webpOf(frame: Uint8Array): Buffer {
  const odd = frame.length % 2;
  const header = Buffer.alloc(20);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(12 + frame.length + odd, 4);
  header.write('WEBPVP8 ', 8, 'latin1');
  header.writeUInt32LE(frame.length, 16);
  return Buffer.concat([header, frame, Buffer.alloc(odd)]);
}

async function h264Image(track: InputVideoTrack, frame: Uint8Array): Promise<Sharp> {
  if ((await track.getCodec()) !== 'avc') throw new Error('Frames of this codec cannot be decoded here.');
  const description = (await track.getDecoderConfig())?.description;
  const { width, height, rgb } = decodeKeyFrame(frame, description && bytesOfBuffer(description));
  return sharp(rgb, { raw: { width, height, channels: 3 } });
}

function bytesOfBuffer(source: ArrayBufferView | ArrayBufferLike): Uint8Array {
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  return new Uint8Array(source);
}

/** Of a waveform, in its largest size. */
const waveform = { width: 640, height: 320, gap: 3 };

/** A colour that can be seen on white and on black. */
const bar_colour = [120, 131, 154, 255];

function drawLoudness(bars: readonly number[]): Image {
  const { width, height, gap } = waveform;
  const pixels = Buffer.alloc(width * height * 4);
  const step = width / bars_max;
  for (const [position, loudness] of bars.entries()) {
    const half = Math.max(2, Math.round((loudness * height * 0.92) / 2));
    for (let y = height / 2 - half; y < height / 2 + half; y++) {
      for (let x = Math.round(position * step); x < Math.round((position + 1) * step) - gap; x++) {
        pixels.set(bar_colour, (y * width + x) * 4);
      }
    }
  }
  return { image: sharp(pixels, { raw: { width, height, channels: 4 } }), width, height };
}
