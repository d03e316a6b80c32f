import type { UsageGroup } from './groups.ts';
import type { UsageRow } from './usage.ts';

/** A group of a report: its charges of the range, and those of the range before it. */
export type ComparedGroup = { id: string; used: readonly UsageRow[]; used_before: readonly UsageRow[] | undefined };

/**
 * Returns the groups of two ranges, the most expensive of the first range first. A charge without the label is in the
 * group ''.
 */
export function compareGroups(
  usages: readonly UsageRow[],
  earlier: readonly UsageRow[],
  by: UsageGroup,
): ComparedGroup[] {
  const ids = Map.groupBy(usages, (row) => row[by] ?? '');
  const ids_before = Map.groupBy(earlier, (row) => row[by] ?? '');
  return [...new Set([...ids.keys(), ...ids_before.keys()])]
    .map((id) => ({ id, used: ids.get(id) ?? [], used_before: ids_before.get(id) }))
    .map((row) => ({ ...row, cost: costOf(row.used) }))
    .toSorted((a, b) => (a.cost === b.cost ? (a.id < b.id ? -1 : 1) : a.cost > b.cost ? -1 : 1));
}

/** Returns the sum of these costs. */
export function costOf(rows: readonly UsageRow[]): bigint {
  return rows.reduce((sum, { cost }) => sum + cost, 0n);
}
