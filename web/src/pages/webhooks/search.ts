/** Search parameters of the page: its tab, and the filters of the list of deliveries. */
export type WebhooksSearch = {
  tab?: 'endpoints' | 'setup' | undefined;
  state?: string | undefined;
  event?: string | undefined;
  endpoint?: string | undefined;
  /** A task's id, or a part of an address. */
  q?: string | undefined;
};

/** Values of an address may be anything: a number where somebody looks for a port. */
export function readWebhooksSearch(search: Record<string, unknown>): WebhooksSearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  const { tab, q } = search;
  return {
    tab: tab === 'setup' || tab === 'endpoints' ? tab : undefined,
    state: text('state'),
    event: text('event'),
    endpoint: text('endpoint'),
    q: typeof q === 'number' || typeof q === 'boolean' ? String(q) : text('q'),
  };
}
