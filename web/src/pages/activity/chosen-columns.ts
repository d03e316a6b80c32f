import { useState } from 'react';
import { columns, offered, type ColumnName } from './columns.tsx';
import type { ActivityTab } from './search.ts';

const remembered = (tab: ActivityTab) => `medley.columns.${tab}`;

/** The columns of a list that this browser shows, in their order, and a way to change them. */
export function useChosenColumns(tab: ActivityTab): {
  chosen: readonly ColumnName[];
  choose: (names: string[]) => void;
} {
  const [by_tab, setByTab] = useState<Partial<Record<ActivityTab, readonly ColumnName[]>>>({});
  const chosen = by_tab[tab] ?? readRemembered(tab);
  const choose = (names: string[]) => {
    const next = inOrder(tab, names);
    setByTab({ ...by_tab, [tab]: next });
    try {
      localStorage.setItem(remembered(tab), JSON.stringify(next));
    } catch {
      // A browser that keeps nothing shows them until the page is left.
    }
  };
  return { chosen, choose };
}

/** Columns that the browser remembers: they may be of another version, or of anybody's making. */
function readRemembered(tab: ActivityTab): readonly ColumnName[] {
  try {
    const names: unknown = JSON.parse(localStorage.getItem(remembered(tab)) ?? 'null');
    if (Array.isArray(names)) return inOrder(tab, names);
  } catch {
    // As if nothing was remembered.
  }
  return offered[tab].usual;
}

function inOrder(tab: ActivityTab, names: readonly unknown[]): readonly ColumnName[] {
  const { names: all, fixed } = offered[tab];
  return all.filter((name) => name === fixed || names.includes(name));
}

/** Columns of a file that has what is shown: what a line is, its id and its labels are in every one. */
export function exportColumns(chosen: readonly ColumnName[]): string {
  const shown = [...chosen, 'labels' as const].flatMap((name) => columns[name].files);
  return [...new Set(['type', 'id', ...shown])].join(',');
}
