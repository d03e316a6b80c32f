import type { UsageGrouping } from '../../../../src/dashboard/views/usage.ts';
import { readGroup } from './groups.ts';

export const periods = [
  { value: 'today', label: 'Today' },
  { value: '2d', label: 'Today and yesterday' },
  { value: '7d', label: 'Last 7 days' },
  { value: '30d', label: 'Last 30 days' },
  { value: 'week', label: 'This week' },
  { value: 'last-week', label: 'Last week' },
  { value: 'month', label: 'This month' },
  { value: 'last-month', label: 'Last month' },
  { value: '90d', label: 'Last 90 days' },
  { value: 'custom', label: 'Other days' },
] as const;

export type Period = (typeof periods)[number]['value'];

/** Groups of every account; metadata has its own. */
export const groups = ['model', 'key', 'project', 'kind', 'user', 'tag'] as const;

/** Search parameters of the page. */
export type UsageSearch = {
  period?: Period | undefined;
  /** UTC days of a custom period, both included. */
  from?: string | undefined;
  to?: string | undefined;
  group?: UsageGrouping | undefined;
  /** Of the second chart. */
  unit?: string | undefined;
  model?: string | undefined;
  key?: string | undefined;
  project?: string | undefined;
  kind?: string | undefined;
};

/** Values of an address may be anything. */
export function readUsageSearch(search: Record<string, unknown>): UsageSearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  return {
    period: periods.find(({ value }) => value === search['period'])?.value,
    from: text('from'),
    to: text('to'),
    group: readGroup(search['group'], groups),
    unit: text('unit'),
    model: text('model'),
    key: text('key'),
    project: text('project'),
    kind: text('kind'),
  };
}

const day_ms = 86_400_000;

/** The moments at which the period begins and ends, whole UTC days. */
export function rangeOf({ period = '30d', from, to }: UsageSearch, now_ms: number): { from: string; to: string } {
  const now = new Date(now_ms);
  const today_ms = Math.floor(now_ms / day_ms) * day_ms;
  const monday_ms = today_ms - ((now.getUTCDay() + 6) % 7) * day_ms;
  const month_ms = (back: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1);
  const texts = (first_ms: number, next_ms: number) => {
    return { from: new Date(first_ms).toISOString(), to: new Date(next_ms).toISOString() };
  };
  const last = (days: number) => texts(today_ms - (days - 1) * day_ms, today_ms + day_ms);
  switch (period) {
    case 'today':
      return last(1);
    case '2d':
      return last(2);
    case '7d':
      return last(7);
    case '90d':
      return last(90);
    case 'week':
      return texts(monday_ms, today_ms + day_ms);
    case 'last-week':
      return texts(monday_ms - 7 * day_ms, monday_ms);
    case 'month':
      return texts(month_ms(0), today_ms + day_ms);
    case 'last-month':
      return texts(month_ms(1), month_ms(0));
    case 'custom': {
      const [first_ms, last_ms] = [dayOf(from) ?? today_ms - 29 * day_ms, dayOf(to) ?? today_ms];
      return texts(first_ms, Math.max(last_ms, first_ms) + day_ms);
    }
    default:
      return last(30);
  }
}

function dayOf(text: string | undefined): number | undefined {
  const at_ms = /^\d{4}-\d{2}-\d{2}$/.test(text ?? '') ? Date.parse(`${text}T00:00:00Z`) : Number.NaN;
  return Number.isNaN(at_ms) ? undefined : at_ms;
}
