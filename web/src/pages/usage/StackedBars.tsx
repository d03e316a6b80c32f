import '@mantine/charts/styles.css';
import { BarChart } from '@mantine/charts';
import { Box, ColorSwatch, Group, Stack, Switch, Table, Text, useMantineTheme } from '@mantine/core';
import { useDeferredValue, useState } from 'react';
import { ListTable } from '../../ui/ListTable.tsx';
import type { Bar, Series } from './bars.ts';
import type { Line } from './lines.ts';

type Props = {
  /** Text that describes the chart, for screen readers and beside it. */
  summary: string;
  caption: string;
  bars: readonly Bar[];
  series: readonly Series[];
  textOf: (value: number) => string;
  /** The title of the first column of the table: Day or Hour. */
  step: string;
  /** Series beside each other instead of on top of each other. */
  type?: 'stacked' | 'default';
  /** Lines across it. */
  lines?: readonly Line[];
};

/** Stacked bars over time; the same numbers as a table by a switch. */
export function StackedBars(props: Props) {
  const { summary, caption, bars, series, textOf, step, type = 'stacked', lines = [] } = props;
  const [as_table, setAsTable] = useState(false);
  return (
    <Stack gap="sm">
      <Group justify="space-between" gap="sm" align="flex-start">
        <Text size="sm" c="dimmed" style={{ flex: '1 1 220px' }}>
          {summary}
        </Text>
        <Switch
          label="Show as table"
          checked={as_table}
          onChange={(event) => setAsTable(event.currentTarget.checked)}
          size="sm"
        />
      </Group>
      {as_table ? (
        <BarTable caption={caption} bars={bars} series={series} textOf={textOf} step={step} />
      ) : (
        <ChartSvg
          caption={caption}
          summary={summary}
          bars={bars}
          series={series}
          textOf={textOf}
          type={type}
          lines={lines}
        />
      )}
    </Stack>
  );
}

const height_px = 240;

/** Names of series may have dots and anything else: the chart gets numbers in their place. */
function ChartSvg(props: Omit<Props, 'step'>) {
  const { caption, summary, bars, series, textOf, type = 'stacked', lines = [] } = props;
  const is_drawn = useDeferredValue(true, false); // it takes 100 ms, for which figures and tables need not wait
  if (!is_drawn) return <Box h={height_px} />;
  const data = bars.map(({ label, values }) => ({
    label,
    ...Object.fromEntries(series.map(({ id }, index) => [`s${index}`, values[id] ?? 0])),
  }));
  return (
    <Box>
      <div role="img" aria-label={`${caption}. ${summary}`}>
        <div aria-hidden>
          <BarChart
            h={height_px}
            data={data}
            dataKey="label"
            type={type}
            series={series.map(({ name, color }, index) => ({ name: `s${index}`, label: name, color }))}
            valueFormatter={textOf}
            withLegend={false}
            maxBarWidth={40}
            gridAxis="x"
            tickLine="none"
            yAxisProps={{ width: 64 }}
            xAxisProps={{ minTickGap: 24 }}
            tooltipAnimationDuration={0}
            referenceLines={lines.map(({ name, value }) => ({
              y: value,
              label: name,
              color: 'red.7',
              labelPosition: 'insideTopRight',
              ifOverflow: 'extendDomain',
            }))}
            barChartProps={{ accessibilityLayer: false, margin: { top: 12 } }}
            barProps={{ isAnimationActive: false, stroke: 'var(--medley-surface)', strokeWidth: 1 }}
          />
        </div>
      </div>
      <Legend series={series} />
    </Box>
  );
}

function Legend({ series }: { series: readonly Series[] }) {
  const theme = useMantineTheme();
  return (
    <Group gap="md" mt="xs" component="ul" style={{ listStyle: 'none', padding: 0, marginBottom: 0 }}>
      {series.map(({ id, name, color }) => {
        const [hue = 'gray', shade = '6'] = color.split('.');
        return (
          <Group key={id} gap={6} wrap="nowrap" component="li" maw={260}>
            <ColorSwatch
              color={theme.colors[hue]?.[Number(shade)] ?? 'gray'}
              size={12}
              withShadow={false}
              aria-hidden
            />
            <Text size="sm" truncate>
              {name}
            </Text>
          </Group>
        );
      })}
    </Group>
  );
}

function BarTable({ caption, bars, series, textOf, step }: Omit<Props, 'summary'>) {
  const columns = [{ name: `${step} (UTC)` }, ...series.map(({ name }) => ({ name, align: 'right' as const }))];
  const filled = bars.filter(({ values }) => Object.keys(values).length > 0);
  return (
    <ListTable caption={caption} columns={columns}>
      {filled.map(({ at, label, values }) => (
        <Table.Tr key={at}>
          <Table.Th scope="row" role="rowheader" fw={400} style={{ whiteSpace: 'nowrap' }}>
            {label}
          </Table.Th>
          {series.map(({ id }) => (
            <Table.Td key={id} ta="right" className="figure">
              {values[id] === undefined ? '–' : textOf(values[id])}
            </Table.Td>
          ))}
        </Table.Tr>
      ))}
    </ListTable>
  );
}
