/** Returns the row of a statement that returns exactly one. Throws if there are none or several. */
export function oneRow<T>(rows: T[]): T {
  const row = rows[0];
  if (rows.length !== 1 || row === undefined) throw new Error(`expected one row, got ${rows.length}`);
  return row;
}
