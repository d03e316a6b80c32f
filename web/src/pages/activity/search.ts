export type ActivityTab = 'all' | 'tasks' | 'chats';

/** Search parameters of the page: the list, its filters and its order. */
export type ActivitySearch = {
  /** Absent: all. */
  tab?: 'tasks' | 'chats' | undefined;
  q?: string | undefined;
  status?: string | undefined;
  outcome?: string | undefined;
  model?: string | undefined;
  key?: string | undefined;
  project?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  sort?: 'oldest' | 'cost' | undefined;
};

/** Values of an address may be anything: a number where somebody looks for `2026`. */
export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  const q = search['q'];
  return {
    tab: tabOf(search),
    q: typeof q === 'number' || typeof q === 'boolean' ? String(q) : text('q'),
    status: text('status'),
    outcome: text('outcome'),
    model: text('model'),
    key: text('key'),
    project: text('project'),
    from: text('from'),
    to: text('to'),
    sort: search['sort'] === 'oldest' || search['sort'] === 'cost' ? search['sort'] : undefined,
  };
}

/** Only generations have a status. */
function tabOf({ tab, status }: Record<string, unknown>): 'tasks' | 'chats' | undefined {
  if (tab === 'tasks' || tab === 'chats') return tab;
  return tab !== 'all' && typeof status === 'string' && status !== '' ? 'tasks' : undefined;
}
