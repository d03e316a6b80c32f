/**
 * Reads the order for the sandbox from a run's input: every number in its range, the text free of anything
 * that cannot be drawn or stored as JSON.
 */
import { InputRefused, type Json } from '../provider.ts';

export type ImageRequest = { kind: 'image'; text: string; seed: number; width: number; height: number; n: number };
export type VideoRequest = {
  kind: 'video';
  text: string;
  seed: number;
  aspect_ratio: AspectRatio;
  resolution: Resolution;
  duration: number;
};
export type AudioRequest = { kind: 'audio'; text: string; seed: number; duration: number };
export type MediaRequest = ImageRequest | VideoRequest | AudioRequest;

export type AspectRatio = 'adaptive' | '16:9' | '9:16' | '1:1';
export type Resolution = '480p' | '720p' | '1080p';

type Input = { [key: string]: Json };

/**
 * The order of `input` with `text` as its words. The built-in catalogue's schemas keep values in
 * range; a model of the operator's own may not, so InputRefused names the field that is out of it.
 */
export function readMediaRequest(kind: MediaRequest['kind'], input: Input, text: string): MediaRequest {
  const common = { text: drawable(text), seed: readNumber(input, 'seed', 0, 2 ** 32 - 1, 0) };
  if (kind === 'image') {
    const width = readWhole(input, 'width', 16, 2048, 768);
    const height = readWhole(input, 'height', 16, 2048, 768);
    return { kind, ...common, width, height, n: readWhole(input, 'n', 1, 4, 1) };
  }
  if (kind === 'audio') return { kind, ...common, duration: readNumber(input, 'duration', 1, 30, 5) };
  const aspect_ratio = readChoice(input, 'aspect_ratio', ['adaptive', '16:9', '9:16', '1:1']);
  const resolution = readChoice(input, 'resolution', ['480p', '720p', '1080p']);
  return { kind, ...common, aspect_ratio, resolution, duration: readNumber(input, 'duration', 1, 10, 5) };
}

function readNumber(input: Input, field: string, low: number, high: number, otherwise: number): number {
  const value = input[field] ?? otherwise;
  if (typeof value === 'number' && value >= low && value <= high) return value;
  throw refused(field, `a number from ${low} to ${high}`);
}

function readWhole(input: Input, field: string, low: number, high: number, otherwise: number): number {
  const value = readNumber(input, field, low, high, otherwise);
  if (Number.isInteger(value)) return value;
  throw refused(field, `a whole number from ${low} to ${high}`);
}

/** The first choice is the default. */
function readChoice<T extends string>(input: Input, field: string, choices: readonly [T, ...T[]]): T {
  const value = input[field] ?? choices[0];
  const choice = choices.find((one) => one === value);
  if (choice !== undefined) return choice;
  throw refused(field, `one of ${choices.join(', ')}`);
}

function refused(field: string, what: string): InputRefused {
  return new InputRefused('invalid_request', `The sandbox needs ${field} to be ${what}.`);
}

const text_length_max = 10_000; // far more than an image shows, and small enough for a row

/** Composed letters, one space between words, no control or invisible characters, well-formed. */
function drawable(text: string): string {
  return text
    .slice(0, text_length_max)
    .toWellFormed()
    .normalize('NFC')
    .replace(/[\p{Cf}\p{Variation_Selector}]/gu, '')
    .replace(/[\s\p{Cc}\p{Z}]+/gu, ' ')
    .trim();
}
