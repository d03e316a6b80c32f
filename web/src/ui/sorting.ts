import { useState } from 'react';
import type { Column } from './ListTable.tsx';

/** A value by which rows are sorted; null for a row without one, which comes last either way. */
export type SortValue = string | number | bigint | null;

/**
 * Sorts the rows of a list that is here as a whole. A click on a column sorts by it, names from A and numbers from the largest; the next
 * click turns it round, and the third brings back the order in which the rows came.
 */
export function useSorted<Row>(rows: readonly Row[], values: Readonly<Record<string, (row: Row) => SortValue>>) {
  const [sort, setSort] = useState<{ column: string; is_ascending: boolean }>();
  const valueOf = sort && values[sort.column];
  const sorted = valueOf ? sortedBy(rows, valueOf, sort.is_ascending) : rows;
  const sortOf = (column: string): NonNullable<Column['sort']> => ({
    is_ascending: sort?.column === column ? sort.is_ascending : undefined,
    toggle: () => {
      const begins_ascending = rows.some((row) => typeof values[column]?.(row) === 'string');
      if (sort?.column !== column) setSort({ column, is_ascending: begins_ascending });
      else if (sort.is_ascending === begins_ascending) setSort({ column, is_ascending: !begins_ascending });
      else setSort(undefined);
    },
  });
  return { sorted, sortOf };
}

/** Returns the rows in the order of their values; those of the same value stay as they were. */
export function sortedBy<Row>(rows: readonly Row[], valueOf: (row: Row) => SortValue, is_ascending: boolean): Row[] {
  return rows.toSorted((a, b) => compare(valueOf(a), valueOf(b), is_ascending));
}

function compare(a: SortValue, b: SortValue, is_ascending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order =
    typeof a === 'string' || typeof b === 'string'
      ? String(a).localeCompare(String(b), 'en')
      : a < b
        ? -1
        : a > b
          ? 1
          : 0;
  return is_ascending ? order : -order;
}
