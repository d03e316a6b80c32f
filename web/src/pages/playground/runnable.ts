import type { EstimateView } from '../../../../src/dashboard/views/playground.ts';

type Estimated = { view: EstimateView | undefined; is_stale: boolean; error: Error | null };

/**
 * Tells whether a button may begin so many runs. The service decides in the end; what it said of an older input does not
 * count. Several runs begin only once their sum is there to be seen.
 */
export function isRunnable({ view, is_stale, error }: Estimated, runs = 1): boolean {
  if (is_stale) return runs === 1;
  if (error || !view) return false;
  return view.ok && view.obstacle === null;
}
