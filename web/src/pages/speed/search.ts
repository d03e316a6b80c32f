import type { SpeedGrouping } from '../../../../src/dashboard/views/speed.ts';
import { readGroup } from '../usage/groups.ts';

export const periods = [
  { value: '1h', label: 'Last hour', hours: 1 },
  { value: '24h', label: 'Last 24 hours', hours: 24 },
  { value: '3d', label: 'Last 3 days', hours: 72 },
  { value: '7d', label: 'Last 7 days', hours: 168 },
  { value: '30d', label: 'Last 30 days', hours: 720 },
] as const;

export type SpeedPeriod = (typeof periods)[number]['value'];

export const measures = [
  { value: 'first', label: 'Time to first word' },
  { value: 'total', label: 'Time to the end' },
] as const;

export type Measure = (typeof measures)[number]['value'];

/** Search parameters of the page. */
export type SpeedSearch = {
  period?: SpeedPeriod | undefined;
  group?: SpeedGrouping | undefined;
  measure?: Measure | undefined;
  model?: string | undefined;
  key?: string | undefined;
};

/** Groups that a report may have beside metadata; of accounts and operators some. */
const groups = ['model', 'key', 'route', 'user', 'tag'] as const;

/** Values of an address may be anything. */
export function readSpeedSearch(search: Record<string, unknown>): SpeedSearch {
  const text = (name: string) => (typeof search[name] === 'string' && search[name] !== '' ? search[name] : undefined);
  return {
    period: periods.find(({ value }) => value === search['period'])?.value,
    group: readGroup(search['group'], groups),
    measure: measures.find(({ value }) => value === search['measure'])?.value,
    model: text('model'),
    key: text('key'),
  };
}

const minute_ms = 60_000;

/** The period as moments, to the minute: within one, the answer of the service is the same. */
export function momentsOf({ period = '24h' }: SpeedSearch, now_ms: number): { from: string; to: string } {
  const hours = periods.find(({ value }) => value === period)?.hours ?? 24;
  const to_ms = (Math.floor(now_ms / minute_ms) + 1) * minute_ms;
  return { from: new Date(to_ms - hours * 3_600_000).toISOString(), to: new Date(to_ms).toISOString() };
}
