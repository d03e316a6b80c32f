import type { AdminMargin } from '../../../../src/dashboard/views/admin.ts';
import { millionthsOf } from '../../ui/sum.ts';

/** Names of the groups of margins. */
export const margin_group_labels = {
  model: 'Model',
  route: 'Route',
  provider: 'Provider',
  account: 'Account',
  day: 'Day',
} as const;

/** Returns the margin's share of the revenue, in tenths of a percent, cut. */
export function shareText({ revenue, margin }: Pick<AdminMargin, 'revenue' | 'margin'>): string {
  const all = millionthsOf(revenue.exact);
  if (all <= 0n) return '–';
  const tenths = (millionthsOf(margin.exact) * 1000n) / all;
  const size = tenths < 0n ? -tenths : tenths;
  return `${tenths < 0n ? '−' : ''}${size / 10n}.${size % 10n} %`;
}
