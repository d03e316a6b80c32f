export const kinds = ['image', 'video', 'audio', 'chat', 'embedding', 'rerank', 'moderation'] as const;

/** Search parameters of the page: filters of the models. */
export type ModelsSearch = { q?: string | undefined; kind?: (typeof kinds)[number] | undefined };

/** Values of an address may be anything. */
export function readModelsSearch(search: Record<string, unknown>): ModelsSearch {
  const { q, kind } = search;
  return {
    q: typeof q === 'string' && q !== '' ? q : undefined,
    kind: kinds.find((one) => one === kind),
  };
}
