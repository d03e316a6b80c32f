/** What the address of the page says: which model, beside which others, whose input, what ran last. */
export type PlaygroundSearch = {
  model?: string | undefined;
  /** Chat models beside it, with commas. */
  beside?: string | undefined;
  /** A task whose input to begin with. */
  task?: string | undefined;
  /** The run that is looked at. */
  run?: string | undefined;
};

/** Values of an address may be anything. */
export function readPlaygroundSearch(search: Record<string, unknown>): PlaygroundSearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  return { model: text('model'), beside: text('beside'), task: text('task'), run: text('run') };
}
