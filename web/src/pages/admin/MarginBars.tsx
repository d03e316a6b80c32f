import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { Alert, Group, SegmentedControl, Stack, Table, Text } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import { useState, type ReactNode } from 'react';
import type { AdminMargin } from '../../../../src/dashboard/views/admin.ts';
import { month_form } from '../../ui/dates.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { exactText, Money } from '../../ui/Money.tsx';
import { useSorted } from '../../ui/sorting.ts';
import { Status } from '../../ui/Status.tsx';
import { millionthsOf, sumOf } from '../../ui/sum.ts';
import { margin_group_labels, shareText } from './money.ts';

const bars_max = 12;

type Props = {
  rows: AdminMargin[];
  /** Grouping of the rows: `model`. */
  by: keyof typeof margin_group_labels;
  /** In words: `November 2026`. */
  month: string;
  label: (row: AdminMargin) => string;
  link?: (row: AdminMargin) => ReactNode;
};

/** Revenue and upstream cost, as bars or as a table. One currency at a time: sums over several mean nothing. */
export function MarginBars({ rows, by, month, label, link }: Props) {
  const [look, setLook] = useState('chart');
  const currencies = currenciesOf(rows);
  const [chosen, setCurrency] = useState<string>();
  const currency = currencies.find((each) => each === chosen) ?? currencies[0] ?? 'USD';
  const shown = rows.filter((row) => row.currency === currency);
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="sm">
        <Summary rows={shown} currency={currency} month={month} />
        <Group gap="xs">
          {currencies.length > 1 && (
            <SegmentedControl
              aria-label="Currency"
              size="xs"
              value={currency}
              data={currencies}
              onChange={setCurrency}
            />
          )}
          <SegmentedControl
            aria-label="Show as"
            size="xs"
            value={look}
            onChange={setLook}
            data={[
              { value: 'chart', label: 'Chart' },
              { value: 'table', label: 'Table' },
            ]}
          />
        </Group>
      </Group>
      <Losses rows={shown} by={by} label={label} />
      {look === 'chart' ? (
        <Chart rows={shown} currency={currency} by={by} label={label} />
      ) : (
        <MarginTable rows={shown} by={by} label={label} {...(link && { link })} />
      )}
    </Stack>
  );
}

const losses_named_max = 5;

/** Rows whose upstreams cost more than callers paid, first the worst. */
function Losses({ rows, by, label }: Pick<Props, 'rows' | 'by' | 'label'>) {
  const losses = rows
    .filter((row) => marginState(row) === 'loss')
    .toSorted((a, b) => Number(a.margin.exact) - Number(b.margin.exact));
  if (losses.length === 0) return null;
  const named = losses.slice(0, losses_named_max).map((row) => `${label(row)} (${exactText(row.margin)})`);
  const others = losses.length - named.length;
  return (
    <Alert
      color="red"
      variant="light"
      icon={<ExclamationTriangleIcon aria-hidden />}
      title={`Upstreams cost more than callers paid: ${countText(losses.length, by)}`}
    >
      {named.join(', ')}
      {others > 0 && ` and ${others} more`}
    </Alert>
  );
}

/** Tells whether a row earned nothing, or less than nothing. What cost nothing and brought nothing is neither. */
function marginState({ revenue, upstream_cost, margin }: AdminMargin): 'loss' | 'none' | 'gain' {
  const earned = millionthsOf(margin.exact);
  if (earned < 0n) return 'loss';
  const is_empty = millionthsOf(revenue.exact) === 0n && millionthsOf(upstream_cost.exact) === 0n;
  return earned === 0n && !is_empty ? 'none' : 'gain';
}

/** The one of most runs first. */
function currenciesOf(rows: AdminMargin[]): string[] {
  const runs = new Map<string, number>();
  for (const row of rows) runs.set(row.currency, (runs.get(row.currency) ?? 0) + row.runs);
  return [...runs].toSorted((a, b) => b[1] - a[1]).map(([currency]) => currency);
}

function Summary({ rows, currency, month }: { rows: AdminMargin[]; currency: string; month: string }) {
  const sum = (name: 'revenue' | 'upstream_cost' | 'margin') =>
    exactText(
      sumOf(
        rows.map((row) => row[name]),
        currency,
      ),
    );
  return (
    <Text size="sm" c="dimmed" style={{ flex: '1 1 260px' }}>
      {month}: revenue {sum('revenue')}, upstream cost {sum('upstream_cost')}, margin {sum('margin')}.
    </Text>
  );
}

function Chart({ rows, currency, by, label }: Omit<Props, 'month' | 'link'> & { currency: string }) {
  const by_size = rows.toSorted((a, b) => Number(b.revenue.exact) - Number(a.revenue.exact));
  const shown = by === 'day' ? rows : by_size.slice(0, bars_max);
  const data = shown.map((row) => ({
    name: label(row),
    revenue: Number(row.revenue.exact), // for the height of a bar; amounts are told by the table
    upstream_cost: Number(row.upstream_cost.exact),
  }));
  // Where nothing was paid to upstreams, the room of its bars would push all others away from their names.
  const series = kinds_of_bars.filter(({ name }) => name === 'revenue' || data.some((each) => each[name] > 0));
  return (
    <div
      role="img"
      aria-label={`Revenue and upstream cost by ${margin_group_labels[by].toLowerCase()}, in ${currency}. The table has the same numbers.`}
    >
      <Legend />
      <BarChart
        {...(by === 'day' ? columns_look : rowsLook(data.length))}
        data={data}
        dataKey="name"
        valueFormatter={(value) => `${value.toLocaleString('en-US', { maximumFractionDigits: 4 })} ${currency}`}
        series={[...series]}
        barProps={({ name }) => (name === 'upstream_cost' ? { fill: 'url(#hatched)', stroke: '#e8590c' } : {})}
      >
        <defs>
          <pattern
            id="hatched"
            width="7"
            height="7"
            patternUnits="userSpaceOnUse"
            patternTransform="rotate(45)"
            aria-hidden
          >
            <rect width="7" height="7" fill="#fd7e14" opacity="0.25" />
            <rect width="3" height="7" fill="#e8590c" />
          </pattern>
        </defs>
      </BarChart>
      {by !== 'day' && rows.length > bars_max && (
        <Text size="xs" c="dimmed">
          The {bars_max} largest of {rows.length}; the table has all.
        </Text>
      )}
    </div>
  );
}

const kinds_of_bars = [
  { name: 'revenue', label: 'Revenue', color: 'brand.5' },
  { name: 'upstream_cost', label: 'Upstream cost', color: 'orange.6' },
] as const;

const columns_look = {
  h: 280,
  gridAxis: 'x',
  tickLine: 'y',
  maxBarWidth: 48,
  barChartProps: { accessibilityLayer: false, margin: { top: 12 } },
  yAxisProps: { width: 90 },
  xAxisProps: { interval: 'preserveStartEnd' },
} as const;

/** Names are long, and every bar has its own: they stand beside bars that lie. */
function rowsLook(count: number) {
  const yAxisProps = { width: 130, interval: 0, tickFormatter: (text: string) => shortened(text) };
  const barChartProps = { accessibilityLayer: false };
  return {
    h: 60 + 44 * count,
    orientation: 'vertical',
    gridAxis: 'y',
    maxBarWidth: 16,
    yAxisProps,
    barChartProps,
  } as const;
}

const hatched = 'repeating-linear-gradient(-45deg, #e8590c 0 3px, rgb(253 126 20 / 25%) 3px 7px)';

function Legend() {
  return (
    <Group gap="md" justify="flex-end" mb="xs" aria-hidden>
      {[
        { name: 'Revenue', background: 'var(--mantine-color-brand-5)' },
        { name: 'Upstream cost', background: hatched },
      ].map(({ name, background }) => (
        <Group key={name} gap={6}>
          <span style={{ width: 14, height: 14, borderRadius: 3, background }} />
          <Text size="sm">{name}</Text>
        </Group>
      ))}
    </Group>
  );
}

/** Names of models and routes are long; their end tells more than their beginning. */
function shortened(text: string): string {
  return text.length <= 18 ? text : `…${text.slice(-17)}`;
}

function MarginTable({ rows, by, label, link }: Omit<Props, 'month'>) {
  const title = margin_group_labels[by];
  const { sorted, sortOf } = useSorted(rows, {
    [title]: label,
    Runs: (row) => row.runs,
    Revenue: (row) => millionthsOf(row.revenue.exact),
    'Upstream cost': (row) => millionthsOf(row.upstream_cost.exact),
    Margin: (row) => millionthsOf(row.margin.exact),
    '%': (row) => (Number(row.revenue.exact) > 0 ? Number(row.margin.exact) / Number(row.revenue.exact) : null),
    'Cost unknown': (row) => row.unknown,
  });
  const number = (name: string) => ({ name, align: 'right', sort: sortOf(name) }) as const;
  return (
    <ListTable
      caption={`Margins by ${margin_group_labels[by].toLowerCase()}`}
      columns={[
        { name: title, sort: sortOf(title) },
        ...['Runs', 'Revenue', 'Upstream cost', 'Margin', '%', 'Cost unknown'].map(number),
      ]}
    >
      {sorted.map((row) => (
        <Table.Tr key={`${row.name} ${row.currency}`}>
          <Table.Td maw={320}>
            <Text size="sm" component="div" truncate title={label(row)}>
              {link ? link(row) : label(row)}
            </Text>
          </Table.Td>
          <Table.Td ta="right" className="figure">
            {row.runs.toLocaleString('en-US')}
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={row.revenue} exact="column" />
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={row.upstream_cost} exact="column" />
          </Table.Td>
          <Table.Td ta="right">
            <Money cost={row.margin} exact="column" />
            <MarginState row={row} />
          </Table.Td>
          <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
            {shareText(row)}
          </Table.Td>
          <Table.Td ta="right" className="figure">
            {row.unknown === 0 ? '–' : row.unknown.toLocaleString('en-US')}
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}

function MarginState({ row }: { row: AdminMargin }) {
  const state = marginState(row);
  if (state === 'gain') return null;
  return (
    <div>
      <Status of={state === 'loss' ? 'bad' : 'warning'} label={state === 'loss' ? 'Loss' : 'No margin'} />
    </div>
  );
}

/** `November 2026`, of `2026-11`. */
export function monthText(month: string): string {
  return month_form.format(new Date(`${month}-15T00:00:00Z`));
}

/** `1 model`, `3 routes`. */
function countText(count: number, by: Props['by']): string {
  switch (by) {
    case 'model':
      return count === 1 ? '1 model' : `${count} models`;
    case 'route':
      return count === 1 ? '1 route' : `${count} routes`;
    case 'provider':
      return count === 1 ? '1 provider' : `${count} providers`;
    case 'account':
      return count === 1 ? '1 account' : `${count} accounts`;
    case 'day':
      return count === 1 ? '1 day' : `${count} days`;
  }
}
