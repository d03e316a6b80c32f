/** Search parameters of the page: the list and its filters. */
export type ActivitySearch = {
  tab?: 'tasks' | 'chats' | undefined;
  status?: string | undefined;
  outcome?: string | undefined;
  model?: string | undefined;
  key?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
};

/** Values of an address may be anything. */
export function readActivitySearch(search: Record<string, unknown>): ActivitySearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  return {
    tab: search['tab'] === 'chats' ? 'chats' : undefined,
    status: text('status'),
    outcome: text('outcome'),
    model: text('model'),
    key: text('key'),
    from: text('from'),
    to: text('to'),
  };
}
