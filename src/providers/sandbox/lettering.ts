/**
 * Sets text for the sandbox's images: wraps it into a box, finds the largest size that fits and
 * turns it into outlines. Characters that the bundled fonts lack are drawn as boxes.
 */
import { type Font, openFont } from './font.ts';

export type Box = { x: number; y: number; width: number; height: number };

export type Lettering = {
  /** SVG path data of all letters. */
  path: string;
  /** Position: the box that the lines really fill. */
  box: Box;
  size: number;
};

const line_height = 1.25;
const ellipsis = '…';
const bold = openFont('DejaVuSans-Bold.ttf');
const fonts: Font[] = [bold, openFont('DejaVuSans.ttf')];

/**
 * `text` centred in `box`, as large as possible between the two sizes. What does not fit at the
 * smaller size ends in an ellipsis.
 */
export function letterInBox(text: string, box: Box, sizes: { min: number; max: number }): Lettering {
  const words = text.split(' ').filter((word) => word !== '');
  const widest = words.reduce((most, word) => Math.max(most, lineWidth(word)), 0);
  const whole_words = Math.max(sizes.max * 0.4, box.width / widest); // below it long words are broken instead
  let size = Math.max(sizes.min, Math.min(sizes.max, whole_words));
  let lines = wrap(words, box.width / size);
  while (size > sizes.min && lines.length * size * line_height > box.height) {
    size = Math.max(sizes.min, size * 0.92);
    lines = wrap(words, box.width / size);
  }
  const lines_max = Math.max(1, Math.floor(box.height / (size * line_height)));
  if (lines.length > lines_max)
    lines = [...lines.slice(0, lines_max - 1), shorten(lines[lines_max - 1] ?? '', box.width / size)];
  return place(lines, box, size);
}

/** Draws one line of `text` whose left end stands on the baseline at (x, y). */
export function letterLine(text: string, x: number, y: number, size: number): string {
  let at = x;
  let path = '';
  for (const character of text) {
    path += characterPath(character, at, y, size);
    at += widthOf(character) * size;
  }
  return path;
}

/** Width of `text` on one line, in ems. */
export function lineWidth(text: string): number {
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}

function place(lines: string[], box: Box, size: number): Lettering {
  const widths = lines.map((line) => lineWidth(line) * size);
  const width = Math.max(0, ...widths);
  const height = lines.length * size * line_height;
  const filled = { x: box.x + (box.width - width) / 2, y: box.y + (box.height - height) / 2, width, height };
  const capital = (bold.cap_height / bold.units_per_em) * size;
  const path = lines.map((line, i) => {
    const x = box.x + (box.width - (widths[i] ?? 0)) / 2;
    const baseline = filled.y + size * line_height * (i + 0.5) + capital / 2;
    return letterLine(inVisualOrder(line), x, baseline, size);
  });
  return { path: path.join(''), box: filled, size };
}

/** Lines of at most `width` ems; a word that is wider is broken. */
function wrap(words: string[], width: number): string[] {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  const space = widthOf(' ');
  for (const word of words.flatMap((long) => breakWord(long, width))) {
    const needed = lineWidth(word);
    if (line !== '' && used + space + needed > width) {
      lines.push(line);
      line = '';
    }
    used = line === '' ? needed : used + space + needed;
    line = line === '' ? word : `${line} ${word}`;
  }
  return line === '' ? lines : [...lines, line];
}

function breakWord(word: string, width: number): string[] {
  if (lineWidth(word) <= width) return [word];
  const pieces: string[] = [];
  let piece = '';
  let used = 0;
  for (const character of word) {
    const needed = widthOf(character);
    if (piece !== '' && used + needed > width) {
      pieces.push(piece);
      piece = '';
      used = 0;
    }
    piece += character;
    used += needed;
  }
  return [...pieces, piece];
}

function shorten(line: string, width: number): string {
  const characters = [...line];
  while (characters.length > 0 && lineWidth(characters.join('') + ellipsis) > width) characters.pop();
  return characters.join('').trimEnd() + ellipsis;
}

const right_to_left =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+(?:[\s\p{P}]+[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff]+)*/gu;

/** Hebrew and Arabic runs turned round, so that they read from the right; no joining of letters. */
function inVisualOrder(line: string): string {
  return line.replace(right_to_left, (run) => [...run].toReversed().join(''));
}

const widths = new Map<string, number>();

function widthOf(character: string): number {
  const cached = widths.get(character);
  if (cached !== undefined) return cached;
  const code_point = character.codePointAt(0) ?? 0;
  const font = fontFor(code_point);
  const width = font ? font.advance(code_point) / font.units_per_em : missing_width;
  if (widths.size < 5_000) widths.set(character, width); // all of a usual language, bounded for a random one
  return width;
}

function characterPath(character: string, x: number, baseline: number, size: number): string {
  const code_point = character.codePointAt(0) ?? 0;
  const font = fontFor(code_point);
  return font ? font.path(code_point, x, baseline, size) : missingPath(x, baseline, size);
}

function fontFor(code_point: number): Font | undefined {
  return fonts.find((font) => font.has(code_point));
}

const missing_width = 0.8;

/** A hollow box: the inner rectangle runs the other way round, so that it is cut out. */
function missingPath(x: number, baseline: number, size: number): string {
  const at = (dx: number, dy: number) => `${(x + dx * size).toFixed(2)} ${(baseline - dy * size).toFixed(2)}`;
  const outer = `M${at(0.08, 0)}L${at(0.08, 0.73)}L${at(0.72, 0.73)}L${at(0.72, 0)}Z`;
  const inner = `M${at(0.16, 0.08)}L${at(0.64, 0.08)}L${at(0.64, 0.65)}L${at(0.16, 0.65)}Z`;
  return outer + inner;
}
