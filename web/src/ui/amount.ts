/**
 * An amount as it is sent. A comma is how many people write a point; but `1,000` may be a thousand as well, so it goes
 * as it is, and the service asks for another form.
 */
export function amountSent(text: string): string {
  const trimmed = text.trim();
  return /^[1-9]\d*,\d{3}$/.test(trimmed) ? trimmed : trimmed.replace(',', '.');
}

/** Reads an amount, or null: sets nothing, or lifts what was set. */
export function optionalAmount(text: string): string | null {
  return text.trim() === '' ? null : amountSent(text);
}
