/** A line of two texts that are compared. */
export type DiffLine = { kind: 'same' | 'added' | 'removed'; text: string };

/** Lines of both texts that are compared with each other; of more, all of the old and then all of the new is shown. */
const lines_max = 2_000;

export function diffOf(before: string, after: string): DiffLine[] {
  const old = before.split('\n');
  const now = after.split('\n');
  if (old.length > lines_max || now.length > lines_max) {
    return [...old.map((text) => lineOf('removed', text)), ...now.map((text) => lineOf('added', text))];
  }
  const common = commonLengths(old, now);
  const at = (row: number, column: number) => common[row * (now.length + 1) + column] ?? 0;
  const lines: DiffLine[] = [];
  let [row, column] = [0, 0];
  while (row < old.length || column < now.length) {
    const [was, is] = [old[row], now[column]];
    if (was !== undefined && was === is) {
      lines.push(lineOf('same', was));
      row += 1;
      column += 1;
    } else if (was !== undefined && (is === undefined || at(row + 1, column) >= at(row, column + 1))) {
      lines.push(lineOf('removed', was));
      row += 1;
    } else {
      lines.push(lineOf('added', is ?? ''));
      column += 1;
    }
  }
  return lines;
}

const lineOf = (kind: DiffLine['kind'], text: string): DiffLine => ({ kind, text });

/** Returns for each pair of places how many lines from there on both have in common, in their order. */
function commonLengths(old: readonly string[], now: readonly string[]): Uint16Array {
  const width = now.length + 1;
  const lengths = new Uint16Array((old.length + 1) * width);
  for (let row = old.length - 1; row >= 0; row -= 1) {
    for (let column = now.length - 1; column >= 0; column -= 1) {
      const [down = 0, right = 0] = [lengths[(row + 1) * width + column], lengths[row * width + column + 1]];
      const both = (lengths[(row + 1) * width + column + 1] ?? 0) + 1;
      lengths[row * width + column] = old[row] === now[column] ? both : Math.max(down, right);
    }
  }
  return lengths;
}
