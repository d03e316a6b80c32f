const one_decimal = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1,
  useGrouping: false,
});

/** `3.2`: a number with one digit of its fraction. */
export function oneDecimal(number: number): string {
  return one_decimal.format(number);
}
