import type { SpeedGrouping } from '../../../../src/dashboard/views/speed.ts';
import { hoursOf, periodNamed, type Period } from '../../ui/periods.ts';
import { readGroup } from '../usage/groups.ts';

export const measures = [
  { value: 'first', label: 'Time to first token' },
  { value: 'total', label: 'Total time' },
] as const;

export type Measure = (typeof measures)[number]['value'];

/** Search parameters of the page. */
export type SpeedSearch = {
  period?: Period | undefined;
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
    period: periodNamed(search['period']),
    group: readGroup(search['group'], groups),
    measure: measures.find(({ value }) => value === search['measure'])?.value,
    model: text('model'),
    key: text('key'),
  };
}

const minute_ms = 60_000;

/** The period as moments, to the minute: within one, the answer of the service is the same. */
export function momentsOf({ period = '24h' }: SpeedSearch, now_ms: number): { from: string; to: string } {
  const to_ms = (Math.floor(now_ms / minute_ms) + 1) * minute_ms;
  return { from: new Date(to_ms - hoursOf(period) * 3_600_000).toISOString(), to: new Date(to_ms).toISOString() };
}
