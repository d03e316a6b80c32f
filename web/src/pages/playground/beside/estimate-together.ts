import type { Cost } from '../../../../../src/dashboard/views/common.ts';
import type { EstimateView } from '../../../../../src/dashboard/views/playground.ts';
import { millionthsOf, sumOf } from '../../../ui/sum.ts';
import { problemText } from '../form/problems.ts';

/** Returns the hold of several runs as one: the sum, or the problems of those that cannot run, with their names. */
export function estimateTogether(views: readonly EstimateView[], names: readonly string[]): EstimateView | undefined {
  const [only, ...others] = views;
  if (only === undefined || others.length === 0) return only;
  const fine = views.flatMap((view) => (view.ok ? [view] : []));
  const [first] = fine;
  if (first === undefined || fine.length < views.length) {
    const errors = views.flatMap((view, index) => {
      if (view.ok) return [];
      return view.errors.map((problem) => ({ ...problem, message: `${names[index]}: ${problemText(problem)}` }));
    });
    return { ok: false, errors };
  }
  const estimated_cost = sumOf(
    fine.map((view) => view.estimated_cost),
    first.estimated_cost.currency,
  );
  const isOver = (left: Cost | null) => left !== null && millionthsOf(estimated_cost.exact) > millionthsOf(left.exact);
  const of_sum = isOver(first.available) ? 'insufficient_balance' : isOver(first.key_left) ? 'spend_limit' : null;
  const with_obstacle = fine.find(({ obstacle }) => obstacle !== null);
  return {
    ...(with_obstacle ?? first),
    estimated_cost,
    obstacle: with_obstacle?.obstacle ?? of_sum,
  };
}
