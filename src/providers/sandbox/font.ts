/**
 * Reads glyph outlines out of a TrueType file, so that text can be drawn on a machine that has no
 * fonts installed. Knows the few tables that the bundled DejaVu fonts use and no shaping.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { assert } from '../../lib/assert.ts';

const require = createRequire(import.meta.url);

/** Turns a point of the font (units, y upwards) into a point of the drawing. */
type Transform = (x: number, y: number) => string;

export type Font = {
  units_per_em: number;
  /** Height of a capital letter in font units. */
  cap_height: number;
  has(code_point: number): boolean;
  /** Width of a character in font units. */
  advance(code_point: number): number;
  /** SVG path data of a character whose origin stands at (x, baseline), `size` pixels per em. */
  path(code_point: number, x: number, baseline: number, size: number): string;
};

/** Opens one of the bundled fonts by its file name, such as `DejaVuSans-Bold.ttf`. */
export function openFont(file_name: string): Font {
  const file = readFileSync(join(dirname(require.resolve('dejavu-fonts-ttf/package.json')), 'ttf', file_name));
  const tables = readTables(file);
  const units_per_em = tables.head.readUInt16BE(18);
  const glyphs = readCharacterMap(tables.cmap);
  const glyphOf = (code_point: number) => glyphs.get(code_point) ?? 0;
  return {
    units_per_em,
    cap_height: 0.73 * units_per_em, // 1,493 of 2,048 in all DejaVu Sans files
    has: (code_point) => glyphs.has(code_point),
    advance: (code_point) => readAdvance(tables, glyphOf(code_point)),
    path: (code_point, x, baseline, size) => {
      const scale = size / units_per_em;
      const transform: Transform = (px, py) => `${round(x + px * scale)} ${round(baseline - py * scale)}`;
      return glyphPath(tables, glyphOf(code_point), transform);
    },
  };
}

type Tables = { head: Buffer; hhea: Buffer; hmtx: Buffer; loca: Buffer; glyf: Buffer; cmap: Buffer };

function readTables(file: Buffer): Tables {
  const tables = new Map<string, Buffer>();
  for (let i = 0; i < file.readUInt16BE(4); i++) {
    const entry = 12 + 16 * i;
    const start = file.readUInt32BE(entry + 8);
    tables.set(file.toString('latin1', entry, entry + 4), file.subarray(start, start + file.readUInt32BE(entry + 12)));
  }
  const table = (name: string) => {
    const bytes = tables.get(name);
    assert(bytes, `the font has no table ${name}`);
    return bytes;
  };
  return {
    head: table('head'),
    hhea: table('hhea'),
    hmtx: table('hmtx'),
    loca: table('loca'),
    glyf: table('glyf'),
    cmap: table('cmap'),
  };
}

/** Character → glyph from the segmented table of full Unicode (format 12), which DejaVu Sans has. */
function readCharacterMap(cmap: Buffer): Map<number, number> {
  const glyphs = new Map<number, number>();
  for (let i = 0; i < cmap.readUInt16BE(2); i++) {
    const table = cmap.subarray(cmap.readUInt32BE(4 + 8 * i + 4));
    if (table.readUInt16BE(0) !== 12) continue;
    for (let group = 0; group < table.readUInt32BE(12); group++) {
      const first = table.readUInt32BE(16 + 12 * group);
      const last = table.readUInt32BE(20 + 12 * group);
      const glyph = table.readUInt32BE(24 + 12 * group);
      for (let code_point = first; code_point <= last; code_point++) glyphs.set(code_point, glyph + code_point - first);
    }
  }
  assert(glyphs.size > 0, 'the font has no full Unicode character map');
  return glyphs;
}

function readAdvance(tables: Tables, glyph: number): number {
  const count = tables.hhea.readUInt16BE(34); // glyphs beyond it share the last width
  return tables.hmtx.readUInt16BE(4 * Math.min(glyph, count - 1));
}

function glyphPath(tables: Tables, glyph: number, transform: Transform): string {
  const long = tables.head.readInt16BE(50) === 1;
  const offset = (index: number) =>
    long ? tables.loca.readUInt32BE(4 * index) : 2 * tables.loca.readUInt16BE(2 * index);
  const bytes = tables.glyf.subarray(offset(glyph), offset(glyph + 1));
  if (bytes.length === 0) return ''; // a space
  const contours = bytes.readInt16BE(0);
  return contours >= 0 ? simplePath(bytes, contours, transform) : compositePath(tables, bytes, transform);
}

/** A letter with its accents: other glyphs, moved and perhaps scaled. */
function compositePath(tables: Tables, bytes: Buffer, transform: Transform): string {
  let path = '';
  let at = 10;
  for (let more = true; more;) {
    const flags = bytes.readUInt16BE(at);
    const glyph = bytes.readUInt16BE(at + 2);
    const words = (flags & 0x01) !== 0;
    const dx = words ? bytes.readInt16BE(at + 4) : bytes.readInt8(at + 4);
    const dy = words ? bytes.readInt16BE(at + 6) : bytes.readInt8(at + 5);
    at += words ? 8 : 6;
    const [xx, xy, yx, yy, size] = readMatrix(bytes, at, flags);
    at += size;
    path += glyphPath(tables, glyph, (x, y) => transform(x * xx + y * yx + dx, x * xy + y * yy + dy));
    more = (flags & 0x20) !== 0;
  }
  return path;
}

/** The 2 × 2 matrix of a part and its length in bytes. */
function readMatrix(bytes: Buffer, at: number, flags: number): [number, number, number, number, number] {
  const value = (index: number) => bytes.readInt16BE(at + 2 * index) / 16_384;
  if (flags & 0x08) return [value(0), 0, 0, value(0), 2];
  if (flags & 0x40) return [value(0), 0, 0, value(1), 4];
  if (flags & 0x80) return [value(0), value(1), value(2), value(3), 8];
  return [1, 0, 0, 1, 0];
}

type Point = { x: number; y: number; on: boolean };

function simplePath(bytes: Buffer, contours: number, transform: Transform): string {
  const ends = Array.from({ length: contours }, (_, i) => bytes.readUInt16BE(10 + 2 * i));
  const points = readPoints(bytes, contours, (ends.at(-1) ?? -1) + 1);
  return ends.map((end, i) => contourPath(points.slice((ends[i - 1] ?? -1) + 1, end + 1), transform)).join('');
}

function readPoints(bytes: Buffer, contours: number, count: number): Point[] {
  let at = 10 + 2 * contours;
  at += 2 + bytes.readUInt16BE(at); // hinting instructions
  const flags: number[] = [];
  while (flags.length < count) {
    const flag = bytes.readUInt8(at++);
    flags.push(flag);
    if (flag & 0x08) for (let repeats = bytes.readUInt8(at++); repeats > 0; repeats--) flags.push(flag);
  }
  const readAxis = (short: number, same: number) => {
    let value = 0;
    return flags.map((flag) => {
      if (flag & short) value += flag & same ? bytes.readUInt8(at++) : -bytes.readUInt8(at++);
      else if (!(flag & same)) {
        value += bytes.readInt16BE(at);
        at += 2;
      }
      return value;
    });
  };
  const xs = readAxis(0x02, 0x10);
  const ys = readAxis(0x04, 0x20);
  return flags.map((flag, i) => ({ x: xs[i] ?? 0, y: ys[i] ?? 0, on: (flag & 0x01) !== 0 }));
}

/** One closed curve: points off the curve steer quadratic pieces; between two of them lies a hidden point. */
function contourPath(points: Point[], transform: Transform): string {
  const [first, last] = [points[0], points.at(-1)];
  if (!first || !last) return '';
  const start = first.on ? first : last.on ? last : middle(first, last);
  let path = `M${transform(start.x, start.y)}`;
  let control: Point | undefined;
  for (const point of [...(first.on ? points.slice(1) : points), start]) {
    const on = point === start || point.on;
    if (control) {
      const to = on ? point : middle(control, point);
      path += `Q${transform(control.x, control.y)} ${transform(to.x, to.y)}`;
    } else if (on) path += `L${transform(point.x, point.y)}`;
    control = on ? undefined : point;
  }
  return `${path}Z`;
}

function middle(a: Point, b: Point): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, on: true };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
