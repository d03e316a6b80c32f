/** Search parameters of the page. */
export type WebhooksSearch = { tab?: 'setup' | undefined; state?: string | undefined };

export function readWebhooksSearch(search: Record<string, unknown>): WebhooksSearch {
  const state = search['state'];
  return {
    tab: search['tab'] === 'setup' ? 'setup' : undefined,
    state: typeof state === 'string' && state !== '' ? state : undefined,
  };
}
