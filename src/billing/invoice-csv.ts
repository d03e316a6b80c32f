import type { Invoice } from './invoice.ts';

export const invoice_columns = [
  'number',
  'month',
  'line',
  'model',
  'kind',
  'charges',
  'units',
  'amount',
  'currency',
  'supplement_to',
] as const;

/** The rows of an invoice for spreadsheets: one per line, then the sums. */
export function invoiceRows(invoice: Invoice): (string | number)[][] {
  const { number, month, currency, lines, supplement_to = '' } = invoice;
  const row = (line: string, amount: string, rest: (string | number)[] = ['', '', '', '']) => [
    number,
    month,
    line,
    ...rest,
    amount,
    currency,
    supplement_to,
  ];
  return [
    ...lines.map(({ model, kind, charges, units, amount }) =>
      row('charge', amount, [model, kind, charges, unitsText(units)]),
    ),
    ...(invoice.tax_percent === null
      ? []
      : [row('net', invoice.net), row(`tax ${invoice.tax_percent} %`, invoice.tax)]),
    row('total', invoice.total),
  ];
}

/** `image 2 · megapixel 0.5`. */
export function unitsText(units: Record<string, string>): string {
  return Object.entries(units)
    .map(([unit, amount]) => `${unit.replaceAll('_', ' ')} ${amount}`)
    .join(' · ');
}
