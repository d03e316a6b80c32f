/** Search parameters of the page: its tab, the movements, and whether one comes back from paying. */
export type BillingSearch = {
  tab?: 'invoices' | 'details' | undefined;
  type?: string | undefined;
  from?: string | undefined;
  to?: string | undefined;
  paid?: 'yes' | 'no' | undefined;
};

/** Values of an address may be anything. */
export function readBillingSearch(search: Record<string, unknown>): BillingSearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  return {
    tab: search['tab'] === 'details' || search['tab'] === 'invoices' ? search['tab'] : undefined,
    type: text('type'),
    from: text('from'),
    to: text('to'),
    paid: search['paid'] === 'yes' ? 'yes' : search['paid'] === 'no' ? 'no' : undefined,
  };
}
