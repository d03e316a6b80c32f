/** Signs of the language between thousands and before a fraction: `1,234.5` in English. */
const parts = new Intl.NumberFormat('en-US').formatToParts(-12_345.6);

/** The sign before a fraction. */
export const decimal_point = parts.find(({ type }) => type === 'decimal')?.value ?? '.';
const thousands = parts.find(({ type }) => type === 'group')?.value ?? ',';

/** Writes a decimal text with its thousands apart, every digit kept: never through a floating number. */
export function decimalText(amount: string): string {
  const [whole = '', fraction] = amount.split('.');
  const grouped = whole.replaceAll(/\B(?=(\d{3})+$)/g, thousands);
  return fraction === undefined ? grouped : `${grouped}${decimal_point}${fraction}`;
}

const [first] = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' }).formatToParts(1);

/** Signs of currencies stand before the amount, as in `$1.00`. */
export const is_sign_first = first?.type === 'currency';
