import { expect, it } from 'vitest';
import type { UsageView } from '../../src/dashboard/views/usage.ts';
import { barsOf, seriesOf } from '../../web/src/pages/usage/bars.ts';

const cost = { amount: '1.00', exact: '1.000000', currency: 'USD' };
const from = '2026-11-28T00:00:00.000Z';
const to = '2026-11-29T00:00:00.000Z';

/** Charges of one day by these tags, 1 USD of each. */
function viewOf(tags: readonly string[]): UsageView {
  const sums = { count: 1, cost, units: {} };
  return {
    from,
    to,
    before: { from, to },
    step: 'day',
    group: 'tag',
    rows: tags.map((id) => ({ id, name: id, ...sums, before: sums })),
    rows_more: 0,
    bars: [{ at: from, parts: tags.map((id) => ({ id, ...sums })) }],
    total: sums,
    total_before: sums,
    pairs: [],
  };
}

it('a tag named others has a bar of its own beside that of all others', () => {
  const view = viewOf(['others', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']);
  const series = seriesOf(view);
  const [bar] = barsOf(view, series, (part) => Number(part.cost.exact), Date.parse(to));
  expect(series.map(({ name }) => name)).toEqual(['others', 'a', 'b', 'c', 'd', 'e', 'f', 'Others']);
  expect(series.map(({ id }) => bar?.values[id])).toEqual([1, 1, 1, 1, 1, 1, 1, 2]);
});
