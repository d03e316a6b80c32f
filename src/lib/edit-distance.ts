const distance_max = 2;

/** Longer words are not compared: the work grows with the product of the lengths. */
const length_max = 64;

/**
 * The candidate that a person who wrote `word` most likely meant; undefined if none is near. Near is:
 * at most two edits (insert, delete, replace, swap of neighbours), and at most one edit for every two
 * characters, so that `4:3` does not suggest `1:1`. Upper and lower case count as equal. Of several
 * the first in `candidates` wins.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: { candidate: string; distance: number } | undefined;
  for (const candidate of candidates) {
    const distance = editDistance(word.toLowerCase(), candidate.toLowerCase());
    if (distance * 2 > Math.max(word.length, candidate.length)) continue;
    if (distance < (best?.distance ?? distance_max + 1)) best = { candidate, distance };
  }
  return best?.candidate;
}

/**
 * Edits between `a` and `b` (optimal string alignment: no part is edited twice); Infinity when there
 * are more than two, or when one of them is longer than 64.
 */
export function editDistance(a: string, b: string): number {
  if (a === b) return 0;
  if (Math.max(a.length, b.length) > length_max || Math.abs(a.length - b.length) > distance_max) return Infinity;
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      current.push(cheapestEdit(a, b, row, column, { before, above, left: current[column - 1] ?? Infinity }));
    }
    [before, above] = [above, current];
  }
  const distance = above[b.length] ?? Infinity;
  return distance <= distance_max ? distance : Infinity;
}

type Costs = { before: readonly number[]; above: readonly number[]; left: number };

function cheapestEdit(a: string, b: string, row: number, column: number, costs: Costs): number {
  const replaced = (costs.above[column - 1] ?? Infinity) + (a[row - 1] === b[column - 1] ? 0 : 1);
  const swaps = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
  const swapped = swaps ? (costs.before[column - 2] ?? Infinity) + 1 : Infinity;
  return Math.min(replaced, swapped, costs.left + 1, (costs.above[column] ?? Infinity) + 1);
}
