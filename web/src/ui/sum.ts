import type { Cost } from '../../../src/dashboard/views/common.ts';

/** Exact sums of amounts with six digits. */
export function sumOf(costs: readonly Pick<Cost, 'exact'>[], currency: string): Cost {
  const millionths = costs.reduce((sum, { exact }) => sum + millionthsOf(exact), 0n);
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
