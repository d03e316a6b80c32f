import { Text } from '@mantine/core';

/** An amount as the API writes it: `amount` with two digits, `exact` with six. */
export type Cost = { amount: string; currency: string; exact?: string };

const signs: Record<string, string> = { USD: '$', EUR: '€', GBP: '£', PLN: 'zł' };

/** `$12.34`, `12.34 zł`, `CHF 12.34`: never through a floating number. */
export function moneyText({ amount, currency }: Cost): string {
  const negative = amount.startsWith('-');
  const digits = negative ? amount.slice(1) : amount;
  const sign = signs[currency];
  const text = currency === 'PLN' ? `${digits} zł` : sign ? `${sign}${digits}` : `${currency} ${digits}`;
  return negative ? `−${text}` : text;
}

/** The exact amount without its useless zeros, for what costs less than a cent. */
export function exactText({ amount, exact, currency }: Cost): string {
  const digits = (exact ?? amount).replace(/(\.\d\d\d*?)0+$/, '$1');
  return moneyText({ amount: digits, currency });
}

/** All six digits, for columns of amounts one below the other. */
export function ledgerText({ amount, exact, currency }: Cost): string {
  return moneyText({ amount: exact ?? amount, currency });
}

type Props = { cost: Cost; exact?: boolean | 'all'; signed?: boolean };

export function Money({ cost, exact = false, signed = false }: Props) {
  const text = exact === 'all' ? ledgerText(cost) : exact ? exactText(cost) : moneyText(cost);
  const shown = signed && !cost.amount.startsWith('-') && /[1-9]/.test(cost.exact ?? cost.amount) ? `+${text}` : text;
  return (
    <Text span inherit className="figure" title={`${cost.exact ?? cost.amount} ${cost.currency}`}>
      {shown}
    </Text>
  );
}
