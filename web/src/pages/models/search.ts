export const kinds = ['image', 'video', 'audio', 'chat', 'embedding', 'rerank', 'moderation'] as const;

/** Columns by which models are sorted; with a minus the other way round. */
export const sorts = ['name', 'price', 'context', 'speed'] as const;

export type ModelSort = (typeof sorts)[number] | `-${(typeof sorts)[number]}`;

/** Models that are compared at most. */
export const compared_max = 4;

/** Search parameters of the page: filters, order and choice of models. */
export type ModelsSearch = {
  q?: string | undefined;
  kind?: (typeof kinds)[number] | undefined;
  /** Capabilities that a model must have, with commas between them. */
  can?: string | undefined;
  /** Tokens of context at least. */
  context?: number | undefined;
  sort?: ModelSort | undefined;
  /** Ids of the models to compare, with commas between them. */
  compare?: string | undefined;
  view?: 'compare' | 'changes' | undefined;
};

/** Values of an address may be anything. */
export function readModelsSearch(search: Record<string, unknown>): ModelsSearch {
  const { q, kind, context, sort, view } = search;
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  return {
    q: typeof q === 'number' ? String(q) : text('q'),
    kind: kinds.find((one) => one === kind),
    can: text('can'),
    context: typeof context === 'number' && context > 0 ? context : undefined,
    sort: sorts.flatMap((one): ModelSort[] => [one, `-${one}`]).find((one) => one === sort),
    compare: text('compare'),
    view: view === 'compare' || view === 'changes' ? view : undefined,
  };
}

/** The parts of a list in an address. */
export function partsOf(list: string | undefined): string[] {
  return [...new Set((list ?? '').split(',').filter((part) => part !== ''))];
}
