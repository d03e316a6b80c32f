import type { JSONValue } from '@ai-sdk/provider';
import { asField, type Field, type InputDraft } from './fields.ts';

/** Models take a size as one text, as two numbers, or as a shape and a class of pixels. */

type Pixels = { width: number; height: number };

const size_fields = ['size', 'image_size', 'video_size'];
const ratio_fields = ['aspect_ratio', 'ratio'];
const resolution_fields = ['resolution', 'image_resolution', 'video_resolution'];

/** 1792x1024 is meant where 16:9 is offered: 1.6 % apart. */
const shape_distance_max = Math.log(1.04);

/** Twice as wide and high is four times as many pixels. */
const area_distance_max = Math.log(4.2);

/** Sets what `size` (`1024x1536`) means to the model. `setting` is its name in the call. */
export function putSize(draft: InputDraft, setting: string, size: string | undefined, kind: 'image' | 'video'): void {
  if (size === undefined) return;
  const pixels = readSize(size);
  const field = draft.field(size_fields);
  if (field && (!pixels || !field.choices)) return draft.set(field.name, size);
  const exact = pixels && field?.choices?.find((choice) => sameSize(readSize(choice), pixels));
  if (field && exact !== undefined) return draft.set(field.name, exact);
  if (pixels && putNumbers(draft, pixels)) return;
  if (pixels && putShape(draft, pixels, kind)) return;
  if (field) return draft.set(field.name, size); // the service refuses it, and lists the sizes
  draft.warn(setting);
}

/** Sets the shape (`16:9`): of its own field, or the first listed size that has it. */
export function putRatio(draft: InputDraft, ratio: string | undefined): void {
  if (ratio === undefined) return;
  const field = draft.field(ratio_fields);
  if (field) return draft.set(field.name, nearestShape(field, ratio) ?? ratio);
  const sizes = draft.field(size_fields);
  const size = sizes?.choices && nearestShape(sizes, ratio);
  if (sizes && size !== undefined) return draft.set(sizes.name, size);
  draft.warn('aspectRatio');
}

/** The listed value that is this shape, or nearly; undefined if there is none, or if nothing is listed. */
function nearestShape({ choices }: Field, ratio: string): JSONValue | undefined {
  if (choices?.includes(ratio) === true) return ratio;
  const wanted_ratio = readRatio(ratio);
  if (wanted_ratio === undefined) return undefined;
  return nearest(choices ?? [], shape_distance_max, (choice) => {
    const each = readRatio(choice);
    return each === undefined ? undefined : Math.abs(Math.log(each / wanted_ratio));
  });
}

function putNumbers(draft: InputDraft, { width, height }: Pixels): boolean {
  const [wide, high] = [draft.field(['width']), draft.field(['height'])];
  if (!wide || !high) return false;
  draft.set('width', asField(wide, width));
  draft.set('height', asField(high, height));
  return true;
}

/** The shape that is meant, in the class of size that is nearest. */
function putShape(draft: InputDraft, pixels: Pixels, kind: 'image' | 'video'): boolean {
  const [shapes, classes] = [draft.field(ratio_fields), draft.field(resolution_fields)];
  if (!shapes && !(classes && kind === 'video')) return false; // a class alone says nothing of an image's shape
  const divisor = greatestCommonDivisor(pixels.width, pixels.height);
  const ratio = `${pixels.width / divisor}:${pixels.height / divisor}`;
  if (shapes) draft.set(shapes.name, nearestShape(shapes, ratio) ?? ratio);
  if (!classes?.choices) return true;
  const log_area = Math.log(pixels.width * pixels.height);
  const size = nearest(classes.choices, area_distance_max, (choice) => {
    const area = areaOf(choice, pixels, kind);
    return area === undefined ? undefined : Math.abs(Math.log(area) - log_area);
  });
  const says_pixels = classes.choices.some((choice) => areaOf(choice, pixels, kind) !== undefined);
  if (size !== undefined) draft.set(classes.name, size);
  else if (says_pixels) draft.set(classes.name, `${pixels.width}x${pixels.height}`); // refused, with the list
  return true;
}

function readSize(value: JSONValue): Pixels | undefined {
  const match = typeof value === 'string' ? /^(\d{1,5})[x×*](\d{1,5})$/i.exec(value) : null;
  const [width, height] = [Number(match?.[1]), Number(match?.[2])];
  return width > 0 && height > 0 ? { width, height } : undefined;
}

function sameSize(a: Pixels | undefined, b: Pixels): boolean {
  return a?.width === b.width && a.height === b.height;
}

function readRatio(value: JSONValue): number | undefined {
  const match = typeof value === 'string' ? /^(\d{1,5}(?:\.\d+)?)[:/x](\d{1,5}(?:\.\d+)?)$/.exec(value) : null;
  const ratio = match ? Number(match[1]) / Number(match[2]) : Number.NaN;
  return Number.isFinite(ratio) && ratio > 0 ? ratio : undefined;
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

/** The pixels of a class of sizes in the shape of `pixels`: `720p`, `4k` of videos, `2K` of images, `1 MP`, `1024x1024`. */
function areaOf(choice: JSONValue, { width, height }: Pixels, kind: 'image' | 'video'): number | undefined {
  if (typeof choice !== 'string') return undefined;
  const pixels = readSize(choice);
  if (pixels) return pixels.width * pixels.height;
  const [, digits, unit = ''] = /^(\d{1,5}(?:\.\d+)?)\s?(p|k|mp)$/i.exec(choice) ?? [];
  const number = Number(digits);
  const oblong = Math.max(width, height) / Math.min(width, height);
  switch (unit.toLowerCase()) {
    case 'p':
      return number ** 2 * oblong;
    case 'mp':
      return number * 1_000_000;
    case 'k':
      return kind === 'video' ? (number * 540) ** 2 * oblong : (number * 1024) ** 2;
    default:
      return undefined;
  }
}

function nearest(
  choices: readonly JSONValue[],
  distance_max: number,
  distanceTo: (choice: JSONValue) => number | undefined,
): JSONValue | undefined {
  let best: { choice: JSONValue; distance: number } | undefined;
  for (const choice of choices) {
    const distance = distanceTo(choice);
    if (distance === undefined || distance > distance_max) continue;
    if (!best || distance < best.distance) best = { choice, distance };
  }
  return best?.choice;
}
