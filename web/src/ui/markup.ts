/** Returns a decimal amount with a margin in percent on it; exact, and undefined while one of both is not typed yet. */
export function withMarkup(amount: string, percent: string): string | undefined {
  const price = decimalOf(amount);
  const margin = decimalOf(percent === '' ? '0' : percent);
  if (!price || !margin) return undefined;
  const scale = 10n ** BigInt(margin.places);
  const digits = (price.digits * (100n * scale + margin.digits)).toString();
  return shifted(digits, price.places + margin.places + 2);
}

function decimalOf(text: string): { digits: bigint; places: number } | undefined {
  const match = /^(\d{1,12})(?:\.(\d{1,12}))?$/.exec(text.trim().replace(/%$/, ''));
  if (!match) return undefined;
  const [, whole = '', fraction = ''] = match;
  return { digits: BigInt(whole + fraction), places: fraction.length };
}

function shifted(digits: string, places: number): string {
  const padded = digits.padStart(places + 1, '0');
  const fraction = padded.slice(padded.length - places).replace(/0+$/, '');
  return `${padded.slice(0, padded.length - places)}.${fraction.padEnd(2, '0')}`;
}
