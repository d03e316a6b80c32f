import { useQuery } from '@tanstack/react-query';
import type { BudgetsView } from '../../../../src/dashboard/views/budgets.ts';
import type { UsageView } from '../../../../src/dashboard/views/usage.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import type { UsageSearch } from './search.ts';

/** A line across a chart, with its name. */
export type Line = { name: string; value: number };

/** Reads the budgets of a day that a chart of days is about: of the account, or of the project or key that is chosen. */
export function useBudgetLines({ step }: Pick<UsageView, 'step'>, search: UsageSearch): Line[] {
  const { account, base } = usePlace();
  const { data } = useQuery({
    queryKey: [account.id, 'budgets'],
    queryFn: ({ signal }) => api.get<BudgetsView>(`${base}/budgets`, { signal }),
  });
  const { model, kind, project, key } = search;
  if (step !== 'day' || model !== undefined || kind !== undefined || !data) return [];
  const [scope, subject] =
    key !== undefined ? ['key', key] : project !== undefined ? ['project', project] : ['account', undefined];
  return data.data
    .filter((budget) => budget.period === 'day' && budget.scope === scope && budget.subject?.id === subject)
    .map(({ name, amount }) => ({ name: `Budget ${name}`, value: Number(amount.exact) }));
}

/** Tells in words where the lines are. */
export function linesText(lines: readonly Line[], textOf: (value: number) => string): string {
  return lines.map(({ name, value }) => ` ${name} is ${textOf(value)} a day.`).join('');
}
