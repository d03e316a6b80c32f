/** A plane of a frame. */
export type Plane = { samples: Uint8Array; stride: number };

/** Which neighbours of a block there are in its slice. */
export type Around = { left: boolean; above: boolean; corner: boolean; above_right: boolean };

/**
 * The samples around a block in one line: those to the left from the lowest up, the corner, those above from the left.
 * `corner` is the index of the corner.
 */
const edge = new Int32Array(8 + 1 + 16);
const raw = new Int32Array(8 + 1 + 16);
const corner = 8;

/** Predicts a block of 4 × 4 or 8 × 8 from the samples around it (ITU-T H.264, 8.3.1.2 and 8.3.2.2). */
export function predictBlock(plane: Plane, at: number, size: 4 | 8, mode: number, around: Around): void {
  readEdge(plane, at, size, around);
  if (size === 8) smoothEdge(around);
  const { samples, stride } = plane;
  const sampleAt = samplers[mode];
  const mean = mode === 2 ? meanOf(size, around) : 0;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) samples[at + y * stride + x] = sampleAt ? sampleAt(x, y, size) : mean;
  }
}

function readEdge({ samples, stride }: Plane, at: number, size: number, around: Around): void {
  edge.fill(128);
  if (around.left) for (let y = 0; y < size; y++) edge[corner - 1 - y] = samples[at + y * stride - 1] ?? 0;
  if (around.corner) edge[corner] = samples[at - stride - 1] ?? 0;
  if (!around.above) return;
  for (let x = 0; x < size * 2; x++) {
    const column = around.above_right ? x : Math.min(x, size - 1);
    edge[corner + 1 + x] = samples[at - stride + column] ?? 0;
  }
}

/** Before a block of 8 × 8 is predicted, what is around it is smoothed (8.3.2.2.1). */
function smoothEdge({ left, above, corner: has_corner }: Around): void {
  raw.set(edge);
  const before = (index: number) => raw[index - 1] ?? 0;
  const here = (index: number) => raw[index] ?? 0;
  const after = (index: number) => raw[index + 1] ?? 0;
  const inner = (index: number) => (before(index) + 2 * here(index) + after(index) + 2) >> 2;
  if (above) {
    for (let index = corner + 2; index < corner + 16; index++) edge[index] = inner(index);
    const first = corner + 1;
    edge[first] = has_corner ? inner(first) : (3 * here(first) + after(first) + 2) >> 2;
    const last = corner + 16;
    edge[last] = (before(last) + 3 * here(last) + 2) >> 2;
  }
  if (left) {
    for (let index = corner - 7; index < corner - 1; index++) edge[index] = inner(index);
    const first = corner - 1;
    edge[first] = has_corner ? inner(first) : (3 * here(first) + before(first) + 2) >> 2;
    edge[0] = (3 * here(0) + after(0) + 2) >> 2;
  }
  if (!has_corner) return;
  if (left && above) edge[corner] = inner(corner);
  else if (left) edge[corner] = (3 * here(corner) + before(corner) + 2) >> 2;
  else if (above) edge[corner] = (3 * here(corner) + after(corner) + 2) >> 2;
}

function meanOf(size: number, { left, above }: Around): number {
  if (!left && !above) return 128;
  let sum = 0;
  for (let index = 1; index <= size; index++) {
    if (left) sum += edge[corner - index] ?? 0;
    if (above) sum += edge[corner + index] ?? 0;
  }
  const count = left && above ? size * 2 : size;
  return Math.floor((sum + count / 2) / count);
}

/** The mean of two neighbours in the line around the block; of three, the one in the middle twice. */
function two(index: number): number {
  return ((edge[corner + index] ?? 0) + (edge[corner + index + 1] ?? 0) + 1) >> 1;
}

function three(index: number): number {
  const at = corner + index;
  return ((edge[at - 1] ?? 0) + 2 * (edge[at] ?? 0) + (edge[at + 1] ?? 0) + 2) >> 2;
}

type Sampler = (x: number, y: number, size: number) => number;

/** By the number of the mode; the third is the mean. */
const samplers: readonly (Sampler | undefined)[] = [
  (x) => edge[corner + 1 + x] ?? 0,
  (_, y) => edge[corner - 1 - y] ?? 0,
  undefined,
  downLeft,
  (x, y) => three(x - y),
  verticalRight,
  horizontalDown,
  (x, y) => (y % 2 === 0 ? two(x + (y >> 1) + 1) : three(x + (y >> 1) + 2)),
  horizontalUp,
];

function downLeft(x: number, y: number, size: number): number {
  if (x + y < 2 * size - 2) return three(x + y + 2);
  const last = corner + 2 * size;
  return ((edge[last - 1] ?? 0) + 3 * (edge[last] ?? 0) + 2) >> 2;
}

function verticalRight(x: number, y: number): number {
  const place = 2 * x - y;
  if (place < -1) return three(place + 1);
  const at = x - (y >> 1);
  if (place === -1) return three(0);
  return place % 2 === 0 ? two(at) : three(at);
}

function horizontalDown(x: number, y: number): number {
  const place = 2 * y - x;
  if (place < -1) return three(-place - 1);
  const at = y - (x >> 1);
  if (place === -1) return three(0);
  return place % 2 === 0 ? two(-at - 1) : three(-at);
}

function horizontalUp(x: number, y: number, size: number): number {
  const place = x + 2 * y;
  const at = y + (x >> 1);
  const last = edge[corner - size] ?? 0;
  if (place > 2 * size - 3) return last;
  if (place === 2 * size - 3) return ((edge[corner - size + 1] ?? 0) + 3 * last + 2) >> 2;
  return place % 2 === 0 ? two(-at - 2) : three(-at - 2);
}

/** Predicts the luma of a whole macroblock (8.3.3). */
export function predictLuma(plane: Plane, at: number, mode: number, around: Around): void {
  if (mode === 3) return predictSlope(plane, at, 16);
  const { samples, stride } = plane;
  if (mode === 2) {
    const mean = meanAround(plane, at, 16, around.left, around.above);
    for (let y = 0; y < 16; y++) samples.fill(mean, at + y * stride, at + y * stride + 16);
  } else copyEdge(plane, at, 16, mode === 1);
}

/** Predicts a plane of colour of a whole macroblock (8.3.4). */
export function predictChroma(plane: Plane, at: number, mode: number, around: Around): void {
  if (mode === 3) return predictSlope(plane, at, 8);
  if (mode !== 0) return copyEdge(plane, at, 8, mode === 1);
  const { samples, stride } = plane;
  for (let y = 0; y < 8; y += 4) {
    for (let x = 0; x < 8; x += 4) {
      const from = at + y * stride + x;
      // Beside the diagonal the nearer edge alone counts, if it is there.
      const left = around.left && !(x > 0 && y === 0 && around.above);
      const above = around.above && !(x === 0 && y > 0 && around.left);
      const of_left = sumBeside(plane, at + y * stride, 4, true);
      const of_above = sumBeside(plane, at + x, 4, false);
      const mean = left && above ? (of_left + of_above + 4) >> 3 : left ? (of_left + 2) >> 2 : (of_above + 2) >> 2;
      for (let row = 0; row < 4; row++)
        samples.fill(left || above ? mean : 128, from + row * stride, from + row * stride + 4);
    }
  }
}

/** The sum of the samples to the left of a place, or above it. */
function sumBeside({ samples, stride }: Plane, at: number, count: number, is_left: boolean): number {
  let sum = 0;
  for (let index = 0; index < count; index++)
    sum += samples[is_left ? at + index * stride - 1 : at - stride + index] ?? 0;
  return sum;
}

function meanAround(plane: Plane, at: number, size: number, left: boolean, above: boolean): number {
  if (!left && !above) return 128;
  const sum = (left ? sumBeside(plane, at, size, true) : 0) + (above ? sumBeside(plane, at, size, false) : 0);
  const count = left && above ? size * 2 : size;
  return Math.floor((sum + count / 2) / count);
}

function copyEdge({ samples, stride }: Plane, at: number, size: number, is_left: boolean): void {
  for (let y = 0; y < size; y++) {
    const row = at + y * stride;
    if (is_left) samples.fill(samples[row - 1] ?? 0, row, row + size);
    else samples.copyWithin(row, at - stride, at - stride + size);
  }
}

/** A plane through the edges. */
function predictSlope({ samples, stride }: Plane, at: number, size: 8 | 16): void {
  const half = size / 2;
  const above = (x: number) => samples[at - stride + x] ?? 0;
  const left = (y: number) => samples[at + y * stride - 1] ?? 0;
  let across = 0;
  let down = 0;
  for (let step = 1; step <= half; step++) {
    across += step * (above(half - 1 + step) - above(half - 1 - step));
    down += step * (left(half - 1 + step) - left(half - 1 - step));
  }
  const [factor, shift] = size === 16 ? [5, 6] : [34, 6];
  const slope_x = (factor * across + 32) >> shift;
  const slope_y = (factor * down + 32) >> shift;
  const base = 16 * (left(size - 1) + above(size - 1)) + 16;
  for (let y = 0; y < size; y++) {
    for (let x = 0; x < size; x++) {
      const value = (base + slope_x * (x - half + 1) + slope_y * (y - half + 1)) >> 5;
      samples[at + y * stride + x] = value < 0 ? 0 : value > 255 ? 255 : value;
    }
  }
}
