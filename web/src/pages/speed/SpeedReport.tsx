import { Button, SegmentedControl, SimpleGrid, Stack, Table } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useMemo, type ReactNode } from 'react';
import type { SpeedFigures, SpeedGrouping, SpeedView } from '../../../../src/dashboard/views/speed.ts';
import { api, queryOf } from '../../api.ts';
import { durationText } from '../../ui/duration.ts';
import { scoreText } from '../../ui/Feedback.tsx';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { periodNamed, periods } from '../../ui/periods.ts';
import { useSorted } from '../../ui/sorting.ts';
import { Empty, Loaded } from '../../ui/states.tsx';
import { useNow } from '../../ui/Time.tsx';
import { stepName, stepsOf, type Bar, type Series } from '../usage/bars.ts';
import { groupChoices, groupName, nameOf, readGroup } from '../usage/groups.ts';
import { StackedBars } from '../usage/StackedBars.tsx';
import { measures, momentsOf, type Measure, type SpeedSearch } from './search.ts';

type Props = {
  about: string;
  path: string;
  query_key: readonly string[];
  groups: readonly SpeedGrouping[];
  search: SpeedSearch;
  set: (change: SpeedSearch) => void;
  filters?: ReactNode;
};

/** A report of speed: the figures of a period, the median and the slowest over time, and the same by group. */
export function SpeedReport({ about, path, query_key, groups, search, set, filters }: Props) {
  const now_ms = useNow(60_000);
  const { period = '24h', group = 'model', model, key } = search;
  const query_text = queryOf({ ...momentsOf(search, now_ms), group, model, key });
  const query = useQuery({
    queryKey: [...query_key, query_text],
    queryFn: ({ signal }) => api.get<SpeedView>(`${path}${query_text}`, { signal }),
    placeholderData: keepPreviousData,
  });
  const setPeriod = (value: string | undefined) => set({ period: periodNamed(value) });
  return (
    <Page title="Speed" about={about}>
      <Filters
        isFiltered={model !== undefined || key !== undefined}
        clear={() => set({ model: undefined, key: undefined })}
      >
        <ChoiceFilter label="Period" value={period} data={periods} onChange={setPeriod} width={180} required />
        {filters}
      </Filters>
      <Loaded query={query} height={520}>
        {(view) => <Report view={view} groups={groups} search={search} set={set} />}
      </Loaded>
    </Page>
  );
}

type ReportProps = Pick<Props, 'groups' | 'search' | 'set'> & { view: SpeedView };

function Report({ view, groups, search, set }: ReportProps) {
  const { total } = view;
  if (!total) {
    return (
      <Empty
        title="No calls in this period"
        action={
          <Button component={Link} to="/playground">
            Open the playground
          </Button>
        }
      >
        Choose another period, or make a call: its times appear here when it ends.
      </Empty>
    );
  }
  return (
    <Stack gap="lg">
      <Totals total={total} />
      <OverTime view={view} measure={measureOf(view, search)} set={set} />
      <ByGroup view={view} groups={groups} set={set} />
    </Stack>
  );
}

/** Media have no first token. */
function measureOf({ total }: SpeedView, { measure }: SpeedSearch): Measure {
  return measure ?? (total?.first_p50_ms === null ? 'total' : 'first');
}

function Totals({ total }: { total: SpeedFigures }) {
  return (
    <Card>
      <SimpleGrid cols={{ base: 2, sm: total.feedback_count > 0 ? 5 : 4 }}>
        <Figure name="Succeeded" value={shareText(total)} note={`of ${total.count.toLocaleString('en')}`} />
        <Figure name="First token" value={timeText(total.first_p50_ms)} note={`p95 ${timeText(total.first_p95_ms)}`} />
        <Figure name="Total time" value={timeText(total.total_p50_ms)} note={`p95 ${timeText(total.total_p95_ms)}`} />
        <Figure name="Output" value={rateText(total.tokens_per_second)} note="median of streamed answers" />
        {total.feedback_count > 0 && (
          <Figure
            name="Feedback"
            value={feedbackText(total)}
            note={`mean of ${total.feedback_count.toLocaleString('en')}, from −1 to +1`}
          />
        )}
      </SimpleGrid>
    </Card>
  );
}

const series: Series[] = [
  { id: 'p50', name: 'Median', color: 'brand.6' },
  { id: 'p95', name: 'p95', color: 'orange.6' },
];

function OverTime({ view, measure, set }: { view: SpeedView; measure: Measure; set: Props['set'] }) {
  const bars = useMemo(() => barsOf(view, measure), [view, measure]);
  const name = measures.find(({ value }) => value === measure)?.label ?? '';
  const [p50, p95] = [view.total?.[`${measure}_p50_ms`] ?? null, view.total?.[`${measure}_p95_ms`] ?? null];
  return (
    <Card
      title="Over time"
      side={
        <SegmentedControl
          aria-label="Time of"
          size="xs"
          value={measure}
          data={[...measures]}
          onChange={(value) => set({ measure: measures.find((each) => each.value === value)?.value })}
        />
      }
    >
      <StackedBars
        type="default"
        summary={`${name}: median ${timeText(p50)}, p95 ${timeText(p95)}.`}
        caption={`${name} by ${stepName(view.step)}`}
        bars={bars}
        series={series}
        textOf={durationText}
        step={view.step === 'hour' ? 'Hour' : 'Day'}
      />
    </Card>
  );
}

/** Every hour or day of the period, also those without calls. */
function barsOf(view: SpeedView, measure: Measure): Bar[] {
  const points = new Map(view.points.map((point) => [Date.parse(point.at), point]));
  return stepsOf(Date.parse(view.from), Date.parse(view.to), view.step).map(({ at_ms, ...step }) => {
    const point = points.get(at_ms);
    const [p50, p95] = [point?.[`${measure}_p50_ms`] ?? null, point?.[`${measure}_p95_ms`] ?? null];
    return { ...step, values: p50 === null || p95 === null ? {} : { p50, p95 } };
  });
}

const feedback = 'Feedback';

/** Columns of numbers, by which the table can be sorted. */
const numbers: Readonly<Record<string, (row: SpeedFigures) => number | null>> = {
  Calls: ({ count }) => count,
  Succeeded: ({ count, failed }) => (count - failed) / Math.max(1, count),
  'First token': (row) => row.first_p50_ms,
  'First token, p95': (row) => row.first_p95_ms,
  'Total time': (row) => row.total_p50_ms,
  'Total time, p95': (row) => row.total_p95_ms,
  'Tokens per second': (row) => row.tokens_per_second,
  [feedback]: (row) => row.feedback_score,
};

function ByGroup({ view, groups, set }: Pick<ReportProps, 'view' | 'groups' | 'set'>) {
  const { sorted, sortOf } = useSorted(view.rows, numbers);
  const has_feedback = view.rows.some(({ feedback_count }) => feedback_count > 0);
  const shown = Object.keys(numbers).filter((name) => has_feedback || name !== feedback);
  return (
    <Card
      title="In detail"
      side={
        <ChoiceFilter
          label="Group by"
          value={view.group}
          data={groupChoices(groups, view.pairs, view.group)}
          onChange={(value) => set({ group: readGroup(value, groups) })}
          width={200}
          required
        />
      }
    >
      <ListTable
        caption={`Speed by ${groupName(view.group)}`}
        columns={[
          { name: groupName(view.group) },
          ...shown.map((name) => ({ name, align: 'right' as const, wraps: true, sort: sortOf(name) })),
        ]}
      >
        {sorted.map((row) => (
          <Table.Tr key={row.id}>
            <Table.Th scope="row" role="rowheader" fw={400}>
              {nameOf(row, view.group)}
            </Table.Th>
            <Numbers row={row} has_feedback={has_feedback} />
          </Table.Tr>
        ))}
      </ListTable>
    </Card>
  );
}

function Numbers({ row, has_feedback }: { row: SpeedFigures; has_feedback: boolean }) {
  const cells = [
    row.count.toLocaleString('en'),
    shareText(row),
    timeText(row.first_p50_ms),
    timeText(row.first_p95_ms),
    timeText(row.total_p50_ms),
    timeText(row.total_p95_ms),
    rateText(row.tokens_per_second),
    ...(has_feedback ? [feedbackText(row)] : []),
  ];
  return cells.map((text, index) => (
    <Table.Td key={String(index)} ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
      {text}
    </Table.Td>
  ));
}

/** `99.2 %`; rounded down, so that 100 % means all. */
function shareText({ count, failed }: SpeedFigures): string {
  const share = Math.floor(((count - failed) / Math.max(1, count)) * 1_000) / 10;
  return `${share.toLocaleString('en')} %`;
}

/** The mean of the scores, of which there may be none. */
function feedbackText({ feedback_score }: SpeedFigures): string {
  return feedback_score === null ? '–' : scoreText(feedback_score);
}

function timeText(time_ms: number | null): string {
  return time_ms === null ? '–' : durationText(time_ms);
}

function rateText(tokens: number | null): string {
  return tokens === null ? '–' : `${tokens.toLocaleString('en', { maximumFractionDigits: 1 })}/s`;
}
