import { expect, it } from 'vitest';
import { rangeOf } from '../../web/src/pages/usage/search.ts';

const days = (period: 'week' | 'last-week', now: string) => {
  const { from, to } = rangeOf({ period }, Date.parse(now));
  return [from, to].map((time) => time.replace('T00:00:00.000Z', ''));
};

it.each([
  ['2026-11-23T00:00:00Z', ['2026-11-23', '2026-11-24'], ['2026-11-16', '2026-11-23']],
  ['2026-11-25T12:00:00Z', ['2026-11-23', '2026-11-26'], ['2026-11-16', '2026-11-23']],
  ['2026-11-29T23:59:59Z', ['2026-11-23', '2026-11-30'], ['2026-11-16', '2026-11-23']],
  ['2027-01-01T08:00:00Z', ['2026-12-28', '2027-01-02'], ['2026-12-21', '2026-12-28']],
])(
  'at %s this week and the last one begin on Mondays, as those of budgets and mails do',
  (now, this_week, last_week) => {
    expect(days('week', now)).toEqual(this_week);
    expect(days('last-week', now)).toEqual(last_week);
  },
);
