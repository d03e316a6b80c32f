/** The sandbox's videos: the image of the prompt, a bouncing ball, a progress bar and a time code. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import sharp from 'sharp';
import { loadEncoder } from './encoder.ts';
import { type Frame, type Stamp, barStamp, colourOf, discStamp, frameFromRgb, stampOnto, white } from './frames.ts';
import { letterLine, lineWidth } from './lettering.ts';
import { repackVideo } from './mp4.ts';
import type { Resolution, VideoRequest } from './media-request.ts';
import { drawTestImage } from './test-image.ts';

/** The MP4 file of an order, as long as asked for. Same order, same bytes. */
export async function makeVideo(request: VideoRequest): Promise<Buffer> {
  const { width, height, frame_rate } = formatOf(request);
  const frame_count = Math.ceil(request.duration * frame_rate - 1e-6); // rounding up keeps key frames within a second
  const background = await drawBackground(request, width, height);
  const moving = await makeMovingParts(background);
  const encoder = await loadEncoder().createH264MP4Encoder();
  try {
    encoder.width = width;
    encoder.height = height;
    encoder.frameRate = frame_rate;
    encoder.groupOfPictures = frame_rate;
    encoder.speed = 10; // the fastest: 7 instead of 12 ms a frame at 480p
    encoder.quantizationParameter = 28;
    encoder.initialize();
    const frame: Frame = { width, height, bytes: new Uint8Array(background.bytes.length) };
    for (let index = 0; index < frame_count; index++) {
      frame.bytes.set(background.bytes);
      drawMoment(frame, moving, index / frame_count, request.duration);
      encoder.addFrameYuv(frame.bytes);
      await nextTurn(); // lets an image be made in between
    }
    encoder.finalize();
    return await repackVideo(encoder.FS.readFile(encoder.outputFilename), frame_count, request.duration);
  } finally {
    encoder.FS.unlink(encoder.outputFilename);
    encoder.delete();
  }
}

/** Frames per second fall with the size, so that 5 s of video cost at most about 2 s of one core. */
const formats: Record<Resolution, { short: number; long: number; frame_rate: number }> = {
  '480p': { short: 480, long: 854, frame_rate: 24 },
  '720p': { short: 720, long: 1280, frame_rate: 24 },
  '1080p': { short: 1080, long: 1920, frame_rate: 12 },
};

function formatOf(request: VideoRequest): { width: number; height: number; frame_rate: number } {
  const { short, long, frame_rate } = formats[request.resolution];
  if (request.aspect_ratio === '1:1') return { width: short, height: short, frame_rate };
  if (request.aspect_ratio === '9:16') return { width: short, height: long, frame_rate };
  return { width: long, height: short, frame_rate };
}

async function drawBackground(request: VideoRequest, width: number, height: number): Promise<Frame> {
  const seed = JSON.stringify([request.kind, request.text, request.seed, request.aspect_ratio]);
  const unit = Math.min(width, height);
  const svg = drawTestImage({
    width,
    height,
    text: request.text,
    seed,
    free_above: unit * 0.1,
    free_below: unit * 0.3,
  });
  const rgb = await sharp(Buffer.from(svg)).removeAlpha().raw().toBuffer();
  return frameFromRgb(rgb, width, height);
}

type MovingParts = {
  ball: Stamp;
  /** Progress bar as long as it gets, with its height. */
  bar: { left: number; top: number; width: number; height: number };
  digits: Map<string, { stamp: Stamp; advance: number }>;
  digit_size: number;
};

/** Players lay their controls over the lowest 80 pixels or so: what is to be read stands at the top. */
const bar_above_bottom = 0.2;

async function makeMovingParts({ width, height }: Frame): Promise<MovingParts> {
  const unit = Math.min(width, height);
  const digit_size = Math.round(unit * 0.05);
  const bar = {
    left: digit_size,
    top: height - Math.round(unit * bar_above_bottom),
    width: width - 2 * digit_size,
    height: Math.round(unit / 60),
  };
  const digits: MovingParts['digits'] = new Map();
  for (const character of '0123456789.:/ s') digits.set(character, await letterStamp(character, digit_size));
  return { ball: discStamp(unit * 0.035), bar, digits, digit_size };
}

async function letterStamp(character: string, size: number): Promise<{ stamp: Stamp; advance: number }> {
  const advance = lineWidth(character) * size;
  const [width, height] = [Math.ceil(advance), Math.ceil(size)];
  const path = letterLine(character, 0, size * 0.9, size);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><path d="${path}" fill="#fff"/></svg>`;
  const cover = await sharp(Buffer.from(svg)).extractChannel('alpha').raw().toBuffer();
  return { stamp: { width, height, cover }, advance };
}

const gold = colourOf(255, 209, 102);
const shade = colourOf(24, 26, 40);

/** Draws the parts that differ from frame to frame; `progress` runs from 0 to 1. */
function drawMoment(frame: Frame, moving: MovingParts, progress: number, duration_s: number): void {
  const { bar, ball, digit_size } = moving;
  stampOnto(frame, barStamp(bar.width, bar.height), bar.left, bar.top, shade);
  const done = Math.round(bar.width * progress);
  if (done > 0) stampOnto(frame, barStamp(done, bar.height), bar.left, bar.top, gold);
  const bounce = Math.abs(Math.sin(progress * duration_s * Math.PI)) * ball.height * 1.2; // one jump a second
  const ball_left = Math.round(bar.left + (bar.width - ball.width) * progress);
  stampOnto(frame, ball, ball_left, Math.round(bar.top - ball.height - bounce), gold);
  const code = `${timeCode(progress * duration_s)} / ${timeCode(duration_s)}`;
  drawDigits(frame, moving, code, digit_size, digit_size);
}

function drawDigits(frame: Frame, moving: MovingParts, text: string, left: number, top: number): void {
  const letters = [...text].flatMap((character) => moving.digits.get(character) ?? []);
  const width = Math.ceil(letters.reduce((sum, letter) => sum + letter.advance, 0));
  const pad = Math.round(moving.digit_size * 0.3);
  stampOnto(frame, barStamp(width + 2 * pad, moving.digit_size + 2 * pad), left, top - pad, shade);
  let at = left + pad;
  for (const { stamp, advance } of letters) {
    stampOnto(frame, stamp, Math.round(at), top, white);
    at += advance;
  }
}

/** Minutes, seconds and tenths, such as `0:03.2`. */
function timeCode(seconds: number): string {
  const tenths = Math.floor(seconds * 10 + 1e-6);
  return `${Math.floor(tenths / 600)}:${String(Math.floor(tenths / 10) % 60).padStart(2, '0')}.${tenths % 10}`;
}
