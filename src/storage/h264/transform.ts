import type { Plane } from './intra.ts';
import type { IntraScaling } from './parameter-sets.ts';

/** Factors of levels by the remainder of the quality by 6, for the places of table 8-15 and of 8.5.9. */
const factors_4x4 = [
  [10, 16, 13],
  [11, 18, 14],
  [13, 20, 16],
  [14, 23, 18],
  [16, 25, 20],
  [18, 29, 23],
];
const factors_8x8 = [
  [20, 18, 32, 19, 25, 24],
  [22, 19, 35, 21, 28, 26],
  [26, 23, 42, 24, 33, 31],
  [28, 25, 45, 26, 35, 33],
  [32, 28, 51, 30, 40, 38],
  [36, 32, 58, 34, 46, 43],
];

function placeIn4x4(row: number, column: number): number {
  if (row % 2 === 0 && column % 2 === 0) return 0;
  return row % 2 === 1 && column % 2 === 1 ? 1 : 2;
}

function placeIn8x8(row: number, column: number): number {
  if (row % 2 === 1 && column % 2 === 1) return 1;
  if (row % 2 === 1 || column % 2 === 1) return row % 4 === 0 || column % 4 === 0 ? 3 : 5;
  if (row % 4 === 0 && column % 4 === 0) return 0;
  return row % 4 === 2 && column % 4 === 2 ? 2 : 4;
}

/** Scales of levels (8.5.9): of the three planes in 4 × 4, then of luma in 8 × 8; `remainder × size + place` each. */
export function levelScales(scaling: IntraScaling): Int32Array[] {
  return scaling.map((weights) => {
    const side = Math.sqrt(weights.length);
    const [factors, placeOf] = side === 4 ? [factors_4x4, placeIn4x4] : [factors_8x8, placeIn8x8];
    const scales = new Int32Array(6 * weights.length);
    for (const [remainder, row_of_factors] of factors.entries()) {
      for (const [index, weight] of weights.entries()) {
        const factor = row_of_factors[placeOf(Math.floor(index / side), index % side)] ?? 0;
        scales[remainder * weights.length + index] = weight * factor;
      }
    }
    return scales;
  });
}

/** Undoes the quantisation of one level (8.5.12.1 and 8.5.13.1): `bits` is 4 for 4 × 4, 6 for 8 × 8. */
export function scaleLevel(level: number, scale: number, qp: number, bits: 4 | 6): number {
  const shift = Math.floor(qp / 6) - bits;
  return shift >= 0 ? (level * scale) << shift : (level * scale + (1 << (-shift - 1))) >> -shift;
}

/** The first levels of the sixteen blocks of luma, which are coded as a block of their own (8.5.10). */
export function transformLumaDc(levels: Int32Array, scale: number, qp: number): void {
  hadamard(levels, 1, 4);
  hadamard(levels, 4, 1);
  for (let index = 0; index < 16; index++) levels[index] = scaleLevel(levels[index] ?? 0, scale, qp, 6);
}

function hadamard(values: Int32Array, step: number, next: number): void {
  for (let line = 0; line < 4; line++) {
    const at = line * next;
    const [a = 0, b = 0, c = 0, d = 0] = [values[at], values[at + step], values[at + 2 * step], values[at + 3 * step]];
    values[at] = a + b + c + d;
    values[at + step] = a + b - c - d;
    values[at + 2 * step] = a - b - c + d;
    values[at + 3 * step] = a - b + c - d;
  }
}

/** The same for the four blocks of a plane of colour (8.5.11). */
export function transformChromaDc(levels: Int32Array, scale: number, qp: number): void {
  const [a = 0, b = 0, c = 0, d = 0] = levels;
  const sums = [a + b + c + d, a - b + c - d, a + b - c - d, a - b - c + d];
  for (const [index, sum] of sums.entries()) levels[index] = ((sum * scale) << Math.floor(qp / 6)) >> 5;
}

/** Transforms a block of 4 × 4 back, and adds it to what was predicted (8.5.12). */
export function add4x4({ samples, stride }: Plane, at: number, values: Int32Array): void {
  for (let row = 0; row < 16; row += 4) transform4(values, row, 1);
  for (let column = 0; column < 4; column++) transform4(values, column, 4);
  addTo(samples, stride, at, values, 4);
}

function transform4(values: Int32Array, at: number, step: number): void {
  const a = values[at] ?? 0;
  const b = values[at + step] ?? 0;
  const c = values[at + 2 * step] ?? 0;
  const d = values[at + 3 * step] ?? 0;
  const even_1 = a + c;
  const even_2 = a - c;
  const odd_2 = (b >> 1) - d;
  const odd_1 = b + (d >> 1);
  values[at] = even_1 + odd_1;
  values[at + step] = even_2 + odd_2;
  values[at + 2 * step] = even_2 - odd_2;
  values[at + 3 * step] = even_1 - odd_1;
}

/** The same for 8 × 8 (8.5.13). */
export function add8x8({ samples, stride }: Plane, at: number, values: Int32Array): void {
  for (let row = 0; row < 64; row += 8) transform8(values, row, 1);
  for (let column = 0; column < 8; column++) transform8(values, column, 8);
  addTo(samples, stride, at, values, 8);
}

function transform8(values: Int32Array, at: number, step: number): void {
  const value = (index: number) => values[at + index * step] ?? 0;
  const [d0, d1, d2, d3] = [value(0), value(1), value(2), value(3)];
  const [d4, d5, d6, d7] = [value(4), value(5), value(6), value(7)];
  const a0 = d0 + d4;
  const a1 = -d3 + d5 - d7 - (d7 >> 1);
  const a2 = d0 - d4;
  const a3 = d1 + d7 - d3 - (d3 >> 1);
  const a4 = (d2 >> 1) - d6;
  const a5 = -d1 + d7 + d5 + (d5 >> 1);
  const a6 = d2 + (d6 >> 1);
  const a7 = d3 + d5 + d1 + (d1 >> 1);
  const even = [a0 + a6, a2 + a4, a2 - a4, a0 - a6];
  const odd = [a7 - (a1 >> 2), (a3 >> 2) - a5, a3 + (a5 >> 2), a1 + (a7 >> 2)];
  for (let index = 0; index < 4; index++) {
    values[at + index * step] = (even[index] ?? 0) + (odd[index] ?? 0);
    values[at + (7 - index) * step] = (even[index] ?? 0) - (odd[index] ?? 0);
  }
}

function addTo(samples: Uint8Array, stride: number, at: number, values: Int32Array, size: number): void {
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const place = at + y * stride + x;
      const sum = (samples[place] ?? 0) + (((values[y * size + x] ?? 0) + 32) >> 6);
      samples[place] = sum < 0 ? 0 : sum > 255 ? 255 : sum;
    }
  }
}
