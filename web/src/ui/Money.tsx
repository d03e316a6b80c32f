import { Text } from '@mantine/core';
import { decimal_point, decimalText, is_sign_first } from './decimal.ts';

/** An amount as the API writes it: `amount` with two digits, `exact` with six. */
export type Cost = { amount: string; currency: string; exact?: string };

const signs: Record<string, string> = { USD: '$', EUR: '€', GBP: '£', PLN: 'zł' };

/** `$1,234.56`, `1,234.56 zł`, `CHF 1,234.56`: never through a floating number. */
export function moneyText({ amount, currency }: Cost): string {
  const negative = amount.startsWith('-');
  const digits = decimalText(negative ? amount.slice(1) : amount);
  const sign = signs[currency];
  const text =
    is_sign_first && currency !== 'PLN'
      ? sign
        ? `${sign}${digits}`
        : `${currency} ${digits}`
      : `${digits} ${sign ?? currency}`;
  return negative ? `−${text}` : text;
}

/** The exact amount without its useless zeros, for what costs less than a cent. */
export function exactText({ amount, exact, currency }: Cost): string {
  const digits = (exact ?? amount).replace(/(\.\d\d\d*?)0+$/, '$1');
  return moneyText({ amount: digits, currency });
}

type Props = {
  cost: Cost;
  /** All its digits, without useless zeros. In a `column` there is room in their place, so that the points are one below the other. */
  exact?: boolean | 'column';
  signed?: boolean;
  dimmed?: boolean;
};

/** One rule for all amounts: sums and balances have two decimals; what one thing costs has as many as it needs, from two to six. */
export function Money({ cost, exact = false, signed = false, dimmed = false }: Props) {
  const text = exact === false ? moneyText(cost) : exactText(cost);
  const shown = signed && !cost.amount.startsWith('-') && /[1-9]/.test(cost.exact ?? cost.amount) ? `+${text}` : text;
  const [, digits = shown, unit = ''] = /^(.*\d)(\D*)$/.exec(shown) ?? [];
  return (
    <Text
      span
      inherit
      className="figure"
      title={`${cost.exact ?? cost.amount} ${cost.currency}`}
      style={{ whiteSpace: 'nowrap' }}
      {...(dimmed && { c: 'dimmed' })}
    >
      {digits}
      {exact === 'column' && <span className="no-digits" style={{ width: `${missingDigits(digits)}ch` }} aria-hidden />}
      {unit}
    </Text>
  );
}

const decimals_max = 6;

function missingDigits(digits: string): number {
  return Math.max(0, decimals_max - (digits.split(decimal_point)[1]?.length ?? 0));
}
