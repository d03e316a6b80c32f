import { exact, rational, roundHalfUp, type Money } from '../money/money.ts';
import type { Statement } from '../money/statement.ts';

/** The issuer of invoices, from medley.yaml. */
export type Issuer = {
  readonly name: string;
  readonly address: string;
  readonly tax_id: string;
  readonly series: string;
  /** The tax that is contained in what callers pay, decimal text; without it invoices tell of none. */
  readonly tax_percent?: string;
};

export type Customer = {
  account_id: string;
  name: string;
  /** Lines of it. */
  address: string[];
  tax_id: string;
  email: string;
};

/**
 * Everything that an invoice says: written down when it is made, and never changed, whatever becomes of names,
 * addresses and prices. Amounts are decimal texts with six digits.
 */
export type Invoice = {
  version: 1;
  number: string;
  /** The number of the month's first invoice, if this one adds what was charged in the month after that was made. */
  supplement_to?: string;
  /** Day, UTC. */
  issued_on: string;
  /** The month it is about. */
  month: string;
  /** First and last day of it. */
  from: string;
  to: string;
  currency: string;
  issuer: { name: string; address: string[]; tax_id: string };
  customer: Customer;
  /** Charges by model and kind; the amounts add up to `total`. */
  lines: { model: string; kind: string; charges: number; units: Record<string, string>; amount: string }[];
  tax_percent: string | null;
  net: string;
  tax: string;
  /** The ledger's charges of the month, tax included; of a supplementary invoice: the difference. */
  total: string;
  /** opening + what was paid in and corrected − total = closing. */
  balance: {
    opening: string;
    movements: { type: 'topup' | 'adjustment'; at: string; amount: string; reason: string; ref: string }[];
    closing: string;
  };
};

export type Draft = {
  number: string;
  supplement_to?: string | undefined;
  issued_at: Date;
  month: string;
  currency: string;
  issuer: Issuer;
  customer: Customer;
  statement: Statement;
};

/** Writes the invoice of a month. Throws if it does not add up to the millionth. */
export function writeInvoice(draft: Draft): Invoice {
  const { number, supplement_to, issued_at, month, currency, issuer, customer, statement } = draft;
  const { lines, movements, opening, charged, closing } = statement;
  const moved = movements.reduce((sum, { amount }) => sum + amount, 0n);
  if (opening + moved - charged !== closing) {
    throw new Error(
      `${month} of ${customer.account_id} does not add up: ${opening} + ${moved} - ${charged} ≠ ${closing}`,
    );
  }
  const net = netOf(charged, issuer.tax_percent);
  const { from, to } = periodOf(month);
  return {
    version: 1,
    number,
    ...(supplement_to !== undefined && { supplement_to }),
    issued_on: dayOf(issued_at),
    month,
    from: dayOf(from),
    to: dayOf(new Date(to.getTime() - 1)),
    currency,
    issuer: { name: issuer.name, address: linesOf(issuer.address), tax_id: issuer.tax_id },
    customer,
    lines: lines.map((line) => ({ ...line, charges: Number(line.charges), amount: exact(line.amount) })),
    tax_percent: issuer.tax_percent ?? null,
    net: exact(net),
    tax: exact(charged - net),
    total: exact(charged),
    balance: {
      opening: exact(opening),
      movements: movements.map((one) => ({ ...one, amount: exact(one.amount) })),
      closing: exact(closing),
    },
  };
}

/** Returns the amount without the tax that it contains. */
function netOf(total: Money, tax_percent = '0'): Money {
  const { numerator, denominator } = rational(tax_percent) ?? { numerator: 0n, denominator: 1n };
  return roundHalfUp(total * 100n * denominator, 100n * denominator + numerator);
}

function linesOf(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

function dayOf(date: Date): string {
  return date.toISOString().slice(0, 10);
}

/** A month as people write it, such as 2026-01. */
export function isMonth(text: string): boolean {
  return /^20\d\d-(0[1-9]|1[0-2])$/.test(text);
}

/** Could this be the number of an invoice? */
export function isInvoiceNumber(text: string): boolean {
  return /^[A-Z0-9]{1,10}-\d{4}-\d{4,12}$/.test(text);
}

/** The moments at which a month begins and ends, UTC. */
export function periodOf(month: string): { from: Date; to: Date } {
  const from = new Date(`${month}-01T00:00:00Z`);
  return { from, to: new Date(Date.UTC(from.getUTCFullYear(), from.getUTCMonth() + 1, 1)) };
}

/** The month so many months before the one of `now`. */
export function monthBefore(now: Date, months: number): string {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1)).toISOString().slice(0, 7);
}
