/**
 * Returns the jsonb parameter of an SQL function. Amounts become texts, since a JSON number of sixteen digits
 * would not survive; halves of surrogate pairs, which jsonb refuses, become U+FFFD, as the driver makes them
 * of a text.
 */
export function recordText(record: object): string {
  return JSON.stringify(record, (_name, value: unknown) => {
    if (typeof value === 'bigint') return String(value);
    return typeof value === 'string' ? value.toWellFormed() : value;
  });
}
