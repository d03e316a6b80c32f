/** Units that are counted and charged, in the order in which lists have them. */
const names: Record<string, (count: number) => string> = {
  image: (count) => (count === 1 ? 'image' : 'images'),
  megapixel: (count) => (count === 1 ? 'megapixel' : 'megapixels'),
  second: (count) => (count === 1 ? 'second' : 'seconds'),
  minute: (count) => (count === 1 ? 'minute' : 'minutes'),
  character: (count) => (count === 1 ? 'character' : 'characters'),
  input_token: (count) => (count === 1 ? 'input token' : 'input tokens'),
  cached_input_token: (count) => (count === 1 ? 'cached input token' : 'cached input tokens'),
  cache_write_token: (count) => (count === 1 ? 'cache write token' : 'cache write tokens'),
  cache_write_1h_token: (count) => (count === 1 ? 'cache write token (1 h)' : 'cache write tokens (1 h)'),
  output_token: (count) => (count === 1 ? 'output token' : 'output tokens'),
  web_search: (count) => (count === 1 ? 'web search' : 'web searches'),
  code_interpreter: (count) => (count === 1 ? 'code container' : 'code containers'),
  search_unit: (count) => (count === 1 ? 'search unit' : 'search units'),
  request: (count) => (count === 1 ? 'request' : 'requests'),
};

/** After a fraction some languages have another form: `1,5 megapiksela`. Only of these is a part charged. */
const part_words: Record<string, string> = { megapixel: 'megapixels', second: 'seconds', minute: 'minutes' };

const order = Object.keys(names);

/** A number for the name of a unit that is not counted. */
const several = 2;

/** Returns the name of so many units; one that a newer catalogue has is named by its own words. */
export function unitName(unit: string, count = several): string {
  const name = unit.replaceAll('_', ' ');
  const of_part = Number.isInteger(count) ? undefined : part_words[unit];
  return of_part ?? names[unit]?.(count) ?? (count === 1 ? name : `${name}s`);
}

/** Returns the units of which something was used, in the order of their list; unknown ones last. */
export function sortedUnits(units: Record<string, string>): string[] {
  const used = Object.keys(units).filter((unit) => /[1-9]/.test(units[unit] ?? ''));
  return used.toSorted((a, b) => (order.indexOf(a) + 1 || 99) - (order.indexOf(b) + 1 || 99));
}
