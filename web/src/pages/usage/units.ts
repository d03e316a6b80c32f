const names: Record<string, [one: string, many: string]> = {
  image: ['image', 'images'],
  megapixel: ['megapixel', 'megapixels'],
  second: ['second', 'seconds'],
  minute: ['minute', 'minutes'],
  character: ['character', 'characters'],
  input_token: ['input token', 'input tokens'],
  cached_input_token: ['cached input token', 'cached input tokens'],
  cache_write_token: ['cache write token', 'cache write tokens'],
  cache_write_1h_token: ['cache write token (1 h)', 'cache write tokens (1 h)'],
  output_token: ['output token', 'output tokens'],
  web_search: ['web search', 'web searches'],
  code_interpreter: ['code container', 'code containers'],
  search_unit: ['search unit', 'search units'],
  request: ['request', 'requests'],
};

export function unitName(unit: string): string {
  return names[unit]?.[1] ?? unit;
}

/** `1,204 input tokens`, from the decimal text of the ledger. */
export function unitText(unit: string, amount: string): string {
  const [one, many] = names[unit] ?? [unit, unit];
  return `${decimalText(amount)} ${amount === '1' ? one : many}`;
}

/** Thousands apart, every digit kept. */
export function decimalText(amount: string): string {
  const [whole = '', fraction] = amount.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return fraction === undefined ? grouped : `${grouped}.${fraction}`;
}

/** Returns the units of which something was used, in the order of their list; unknown ones last. */
export function sortedUnits(units: Record<string, string>): string[] {
  const order = Object.keys(names);
  const used = Object.keys(units).filter((unit) => /[1-9]/.test(units[unit] ?? ''));
  return used.toSorted((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
}
