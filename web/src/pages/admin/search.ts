import { periodNamed, type Period } from '../../ui/periods.ts';
import { readLabelSearch, type LabelSearch } from '../activity/search.ts';

/** Search parameters of the operators' pages. Values of an address may be anything. */

type Search = Record<string, unknown>;

function textOf(search: Search, name: string): string | undefined {
  const value = search[name];
  return typeof value === 'string' && value !== '' ? value : undefined;
}

export type AccountsSearch = { search?: string | undefined };

export function readAccountsSearch(search: Search): AccountsSearch {
  return { search: textOf(search, 'search') };
}

export type RoutesSearch = { search?: string | undefined; state?: 'open' | undefined };

export function readRoutesSearch(search: Search): RoutesSearch {
  return { search: textOf(search, 'search'), state: search['state'] === 'open' ? 'open' : undefined };
}

export type FailuresSearch = { from?: string | undefined; route?: string | undefined };

export function readFailuresSearch(search: Search): FailuresSearch {
  return { from: textOf(search, 'from'), route: textOf(search, 'route') };
}

export type DeliveriesSearch = { state?: string | undefined; account?: string | undefined };

export function readDeliveriesSearch(search: Search): DeliveriesSearch {
  return { state: textOf(search, 'state'), account: textOf(search, 'account') };
}

export const call_kinds = [
  { value: 'chats', label: 'Chat calls' },
  { value: 'tasks', label: 'Tasks' },
] as const;

export const call_statuses = [
  { value: 'queued', label: 'Queued' },
  { value: 'running', label: 'Running' },
  { value: 'succeeded', label: 'Succeeded' },
  { value: 'failed', label: 'Failed' },
] as const;

export type CallsSearch = LabelSearch & {
  of?: (typeof call_kinds)[number]['value'] | undefined;
  account?: string | undefined;
  model?: string | undefined;
  route?: string | undefined;
  status?: (typeof call_statuses)[number]['value'] | undefined;
  period?: Period | undefined;
};

export function readCallsSearch(search: Search): CallsSearch {
  return {
    of: call_kinds.find(({ value }) => value === search['of'])?.value,
    account: textOf(search, 'account'),
    model: textOf(search, 'model'),
    route: textOf(search, 'route'),
    status: call_statuses.find(({ value }) => value === search['status'])?.value,
    ...readLabelSearch(search),
    period: periodNamed(search['period']),
  };
}

export const margin_groups = ['model', 'route', 'provider', 'account', 'day'] as const;

export type PricesSearch = { month?: string | undefined; by?: (typeof margin_groups)[number] | undefined };

export function readPricesSearch(search: Search): PricesSearch {
  const month = textOf(search, 'month');
  return {
    month: month !== undefined && /^20\d\d-(0[1-9]|1[0-2])$/.test(month) ? month : undefined,
    by: margin_groups.find((group) => group === search['by']),
  };
}

export type AuditSearch = {
  account?: string | undefined;
  action?: string | undefined;
  /** The id of the one entry that is looked for. */
  entry?: string | undefined;
  /** Days. */
  from?: string | undefined;
  to?: string | undefined;
};

export function readAuditSearch(search: Search): AuditSearch {
  return {
    account: textOf(search, 'account'),
    action: textOf(search, 'action'),
    entry: textOf(search, 'entry'),
    from: textOf(search, 'from'),
    to: textOf(search, 'to'),
  };
}
