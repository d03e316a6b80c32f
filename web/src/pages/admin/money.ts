import type { AdminMargin } from '../../../../src/dashboard/views/admin.ts';
import type { Cost } from '../../ui/Money.tsx';

/** Names of the groups of margins. */
export const margin_group_labels = {
  model: 'Model',
  route: 'Route',
  provider: 'Provider',
  account: 'Account',
  day: 'Day',
} as const;

/** Exact sums of amounts with six digits. */
export function sumOf(costs: readonly Cost[], currency: string): Cost {
  const millionths = costs.reduce((sum, { amount, exact = amount }) => sum + millionthsOf(exact), 0n);
  const digits = (millionths < 0n ? -millionths : millionths).toString().padStart(7, '0');
  const exact = `${millionths < 0n ? '-' : ''}${digits.slice(0, -6)}.${digits.slice(-6)}`;
  return { amount: exact, exact, currency };
}

/** Returns an amount with up to six digits as millionths. */
export function millionthsOf(text: string): bigint {
  const [whole = '0', fraction = ''] = text.replace('-', '').split('.');
  const size = BigInt(whole + fraction.padEnd(6, '0').slice(0, 6));
  return text.startsWith('-') ? -size : size;
}

/** Returns the margin's share of the revenue, in tenths of a percent, cut. */
export function shareText({ revenue, margin }: Pick<AdminMargin, 'revenue' | 'margin'>): string {
  const all = millionthsOf(revenue.exact);
  if (all <= 0n) return '–';
  const tenths = (millionthsOf(margin.exact) * 1000n) / all;
  const size = tenths < 0n ? -tenths : tenths;
  return `${tenths < 0n ? '−' : ''}${size / 10n}.${size % 10n} %`;
}
