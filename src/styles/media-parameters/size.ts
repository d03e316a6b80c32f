import type { Json, JsonObject } from '../../catalog/model.ts';
import { asField, choicesOf, fieldNamed, listed, refused, type Offer } from './offer.ts';

/** `size` is width and height in one word. Models take it as that, as two numbers, or as a shape and a class of size. */

type Pixels = { width: number; height: number };

const size_form = /^(\d{1,5})\s*[x×*]\s*(\d{1,5})$/i;

const size_fields = ['size', 'image_size', 'video_size'];
const ratio_fields = ['aspect_ratio', 'ratio'];
const resolution_fields = ['resolution', 'image_resolution', 'video_resolution'];

/** 1792x1024 is asked for where 16:9 is meant: 1.6 % apart. */
const shape_distance_max = Math.log(1.04);

/** Twice as wide and high is four times as many pixels. */
const area_distance_max = Math.log(4.2);

/** The fields that `size` becomes; undefined if the model has none. Throws ApiError 400 if it has no such size. */
export function carrySize(offer: Offer, value: Json): JsonObject | undefined {
  const field = fieldNamed(offer, size_fields);
  const choices = field === undefined ? undefined : choicesOf(offer, field);
  if (value === 'auto' || value === '') {
    return field !== undefined && choices?.includes('auto') === true ? { [field]: 'auto' } : {};
  }
  const pixels = readSize(value);
  if (!pixels) {
    if (field !== undefined) return { [field]: asField(offer, field, value) };
    throw refused('size', 'size must be "auto" or a width and a height in pixels, such as "1024x1024".');
  }
  if (field !== undefined && !choices) return { [field]: `${pixels.width}x${pixels.height}` };
  const exact = choices?.find((choice) => sameSize(readSize(choice), pixels));
  if (field !== undefined && exact !== undefined) return { [field]: exact };
  const otherwise = inTwoNumbers(offer, pixels) ?? inShape(offer, pixels);
  if (otherwise || field === undefined) return otherwise;
  throw refused('size', `${offer.model} has the sizes ${listed(choices ?? [])}, and not ${listed([value])}.`);
}

function readSize(value: Json): Pixels | undefined {
  const match = typeof value === 'string' ? size_form.exec(value) : null;
  if (!match) return undefined;
  const [width, height] = [Number(match[1]), Number(match[2])];
  return width > 0 && height > 0 ? { width, height } : undefined;
}

function sameSize(a: Pixels | undefined, b: Pixels): boolean {
  return a?.width === b.width && a.height === b.height;
}

function inTwoNumbers(offer: Offer, { width, height }: Pixels): JsonObject | undefined {
  const both = fieldNamed(offer, ['width']) !== undefined && fieldNamed(offer, ['height']) !== undefined;
  return both ? { width: asField(offer, 'width', width), height: asField(offer, 'height', height) } : undefined;
}

/** The shape that is meant, in the class of size that is nearest. */
function inShape(offer: Offer, pixels: Pixels): JsonObject | undefined {
  const field = fieldNamed(offer, ratio_fields);
  if (field === undefined) return undefined;
  const resolution = fieldNamed(offer, resolution_fields);
  const shape = shapeOf(choicesOf(offer, field), pixels);
  if (shape === undefined) {
    const choices = listed((choicesOf(offer, field) ?? []).filter((choice) => readRatio(choice) !== undefined));
    throw refused('size', `${offer.model} has the shapes ${choices}, and none like ${pixels.width}x${pixels.height}.`);
  }
  return { [field]: shape, ...(resolution !== undefined && inClass(offer, resolution, pixels)) };
}

/** The choice nearest to the shape of `pixels`; where all are allowed, that shape in its lowest terms. */
function shapeOf(choices: readonly Json[] | undefined, { width, height }: Pixels): Json | undefined {
  if (!choices) {
    const divisor = greatestCommonDivisor(width, height);
    return `${width / divisor}:${height / divisor}`;
  }
  const log_ratio = Math.log(width / height);
  return nearest(choices, shape_distance_max, (choice) => {
    const ratio = readRatio(choice);
    return ratio === undefined ? undefined : Math.abs(Math.log(ratio) - log_ratio);
  });
}

function readRatio(value: Json): number | undefined {
  const match = typeof value === 'string' ? /^(\d{1,5}(?:\.\d+)?)[:/x](\d{1,5}(?:\.\d+)?)$/.exec(value) : null;
  const ratio = match ? Number(match[1]) / Number(match[2]) : Number.NaN;
  return Number.isFinite(ratio) && ratio > 0 ? ratio : undefined;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

function inClass(offer: Offer, field: string, pixels: Pixels): JsonObject {
  const choices = choicesOf(offer, field);
  const sizes = choices?.filter((choice) => areaOf(offer, choice, pixels) !== undefined) ?? [];
  if (sizes.length === 0) return {}; // its words say nothing of pixels: the default
  const log_area = Math.log(pixels.width * pixels.height);
  const nearest_size = nearest(sizes, area_distance_max, (choice) =>
    Math.abs(Math.log(areaOf(offer, choice, pixels) ?? 1) - log_area),
  );
  if (nearest_size !== undefined) return { [field]: nearest_size };
  const { width, height } = pixels;
  throw refused('size', `${offer.model} has the resolutions ${listed(sizes)}, and none near ${width}x${height}.`);
}

/**
 * Returns the pixels of a size class in the shape of `pixels`: `720p`, `4k` of videos, `2K` of images, `1 MP`,
 * `1024x1024`.
 */
function areaOf({ kind }: Offer, choice: Json, { width, height }: Pixels): number | undefined {
  if (typeof choice !== 'string') return undefined;
  const pixels = readSize(choice);
  if (pixels) return pixels.width * pixels.height;
  const [, digits, unit = ''] = /^(\d{1,5}(?:\.\d+)?)\s?(p|k|mp)$/i.exec(choice) ?? [];
  const number = Number(digits);
  const oblong = Math.max(width, height) / Math.min(width, height);
  if (/^p$/i.test(unit)) return number ** 2 * oblong;
  if (/^mp$/i.test(unit)) return number * 1_000_000;
  if (/^k$/i.test(unit)) return kind === 'video' ? (number * 540) ** 2 * oblong : (number * 1024) ** 2;
  return undefined;
}

function nearest(
  choices: readonly Json[],
  distance_max: number,
  distanceTo: (choice: Json) => number | undefined,
): Json | undefined {
  let best: { choice: Json; distance: number } | undefined;
  for (const choice of choices) {
    const distance = distanceTo(choice);
    if (distance === undefined || distance > distance_max) continue;
    if (!best || distance < best.distance) best = { choice, distance };
  }
  return best?.choice;
}

/** The size that an input asks for, as `WIDTHxHEIGHT`; undefined where it leaves that open. */
export function requestedSize(input: JsonObject): string | undefined {
  const whole = size_fields.map((name) => readSize(input[name] ?? null)).find((pixels) => pixels !== undefined);
  const { width, height } = whole ?? input;
  if (typeof width === 'number' && typeof height === 'number') return `${width}x${height}`;
  const ratio = ratio_fields.map((name) => readRatio(input[name] ?? null)).find((each) => each !== undefined);
  const resolution = resolution_fields.map((name) => input[name]).find((value) => typeof value === 'string');
  const short = Number(/^(\d{3,4})p$/i.exec(String(resolution))?.[1]);
  if (ratio === undefined || !Number.isFinite(short)) return undefined;
  const even = (side: number) => Math.round(side / 2) * 2;
  return ratio >= 1 ? `${even(short * ratio)}x${short}` : `${short}x${even(short / ratio)}`;
}
