export type ActivityTab = 'all' | 'tasks' | 'chats';

/** Search parameters of the page: the list, its filters and its order. */
export type ActivitySearch = {
  tab?: 'all' | 'chats' | undefined;
  q?: string | undefined;
  status?: string | undefined;
  outcome?: string | undefined;
  model?: string | undefined;
  key?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  sort?: 'oldest' | undefined;
};

/** Values of an address may be anything: a number where somebody looks for `2026`. */
export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  const q = search['q'];
  return {
    tab: search['tab'] === 'chats' || search['tab'] === 'all' ? search['tab'] : undefined,
    q: typeof q === 'number' || typeof q === 'boolean' ? String(q) : text('q'),
    status: text('status'),
    outcome: text('outcome'),
    model: text('model'),
    key: text('key'),
    from: text('from'),
    to: text('to'),
    sort: search['sort'] === 'oldest' ? 'oldest' : undefined,
  };
}
