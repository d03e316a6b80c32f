import { Button, SimpleGrid, Stack, Text } from '@mantine/core';
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { useMemo } from 'react';
import type { UsageGrouping, UsageView } from '../../../../src/dashboard/views/usage.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { FileButton } from '../../ui/FileButton.tsx';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { exactText, Money, moneyText } from '../../ui/Money.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { useNow } from '../../ui/Time.tsx';
import { useChoices } from '../activity/filters.ts';
import { ModelAndKey } from '../activity/ModelAndKey.tsx';
import { decimalText } from '../../ui/decimal.ts';
import { kindText } from '../../ui/kinds.ts';
import { quantityText } from '../../ui/price.ts';
import { sortedUnits, unitName } from '../../ui/units.ts';
import { barsOf, rangeText, seriesOf, stepName, type Series } from './bars.ts';
import { groupChoices, groupPhrase, nameOf, readGroup } from './groups.ts';
import { groups, periods, rangeOf, type Period, type UsageSearch } from './search.ts';
import { Refused } from './Refused.tsx';
import { SpendMail } from './SpendMail.tsx';
import { linesText, useBudgetLines } from './lines.ts';
import { StackedBars } from './StackedBars.tsx';
import { changeText, UsageTable } from './UsageTable.tsx';

const route = getRouteApi('/signed-in/usage');

const kinds = ['chat', 'embedding', 'rerank', 'moderation', 'image', 'video', 'audio'].map((value) => {
  return { value, label: kindText(value) };
});

/** The page of charges by day and group, compared with the period before. */
export function Usage() {
  const { account, base, me } = usePlace();
  const search = route.useSearch();
  const navigate = useNavigate();
  const set = (change: UsageSearch) => void navigate({ to: '/usage', search: { ...search, ...change }, replace: true });
  const now_ms = useNow(60_000);
  const { group = 'model', model, key, project, kind } = search;
  const range = rangeOf(search, now_ms);
  const query = queryOf({ ...range, group, model, key, project, kind });
  const usage = useQuery({
    queryKey: [account.id, 'usage', query],
    queryFn: ({ signal }) => api.get<UsageView>(`${base}/usage${query}`, { signal }),
    placeholderData: keepPreviousData,
    refetchInterval: 30_000,
  });
  return (
    <Page
      title="Usage"
      about="Charges by UTC day, read from the ledger and exact to the millionth."
      actions={
        <>
          <FileButton href={`${base}/usage/table.csv${query}`} label="Table (CSV)" size="xs" />
          <FileButton href={`${base}/usage/charges.csv${query}`} label="All charges (CSV)" size="xs" />
          {!account.is_limited && <SpendMail group={group} pairs={usage.data?.pairs ?? []} />}
        </>
      }
    >
      <UsageFilters search={search} set={set} />
      <Loaded query={usage} height={520}>
        {(view) =>
          view.total.count === 0 && view.total_before.count === 0 ? (
            <Nothing isFiltered={[model, key, project, kind].some((value) => value !== undefined)} />
          ) : (
            <Results view={view} search={search} set={set} now_ms={now_ms} />
          )
        }
      </Loaded>
      {kind === undefined && <Refused range={range} only={{ model, key, project }} now_ms={now_ms} />}
      <Card title="The same from the API">
        {account.is_limited && (
          <Text size="sm" c="dimmed" mb="xs">
            Your keys answer with the usage of their project alone.
          </Text>
        )}
        <CodeBox text={snippetOf(me.base_url, range, group, usage.data?.step ?? 'day')} label="the request" />
      </Card>
    </Page>
  );
}

function UsageFilters({ search, set }: { search: UsageSearch; set: (change: UsageSearch) => void }) {
  const { period = '30d', from, to, model, key, project, kind } = search;
  const { projects } = useChoices();
  const setPeriod = (value: string | undefined) => {
    const chosen: Period = periods.find((each) => each.value === value)?.value ?? '30d';
    const days = chosen === 'custom' ? daysOf(rangeOf(search, Date.now())) : { from: undefined, to: undefined };
    set({ period: chosen, ...days });
  };
  return (
    <Filters
      isFiltered={[model, key, project, kind].some((value) => value !== undefined)}
      clear={() => set({ model: undefined, key: undefined, project: undefined, kind: undefined })}
    >
      <ChoiceFilter label="Period" value={period} data={periods} onChange={setPeriod} width={220} required />
      {period === 'custom' && (
        <>
          <DayFilter label="From (UTC)" value={from} onChange={(value) => set({ from: value })} />
          <DayFilter label="To (UTC)" value={to} onChange={(value) => set({ to: value })} />
        </>
      )}
      <ModelAndKey search={search} set={set} />
      {(projects.length > 1 || project !== undefined) && (
        <ChoiceFilter label="Project" value={project} data={projects} onChange={(value) => set({ project: value })} />
      )}
      <ChoiceFilter label="Kind" value={kind} data={kinds} onChange={(value) => set({ kind: value })} width={130} />
    </Filters>
  );
}

function daysOf({ from, to }: { from: string; to: string }) {
  return { from: from.slice(0, 10), to: new Date(Date.parse(to) - 1).toISOString().slice(0, 10) };
}

type ResultsProps = { view: UsageView; search: UsageSearch; set: (change: UsageSearch) => void; now_ms: number };

function Results({ view, search, set, now_ms }: ResultsProps) {
  const { total, total_before, rows, step, before } = view;
  const series = useMemo(() => seriesOf(view), [view]);
  const bars = useMemo(() => barsOf(view, series, ({ cost }) => Number(cost.exact), now_ms), [view, series, now_ms]);
  const { currency } = total.cost;
  const textOf = (value: number) => exactText({ amount: value.toFixed(2), exact: value.toFixed(6), currency });
  const step_name = step === 'hour' ? 'Hour' : 'Day';
  const lines = useBudgetLines(view, search);
  const [first] = rows;
  const summary = `${moneyText(total.cost)} for ${total.count.toLocaleString('en')} ${total.count === 1 ? 'charge' : 'charges'}, ${rangeText(view)}${first && first.count > 0 ? `; most for ${nameOf(first, view.group)}: ${moneyText(first.cost)}` : ''}.`;
  return (
    <Stack gap="lg">
      <Card>
        <SimpleGrid cols={{ base: 2, sm: 4 }}>
          <Figure name="Spend" value={<Money cost={total.cost} />} note={rangeText(view)} />
          <Figure name="Before" value={<Money cost={total_before.cost} />} note={rangeText(before)} />
          <Figure name="Change" value={changeText(total.cost.exact, total_before.cost.exact)} note="of spend" />
          <Figure
            name="Charges"
            value={total.count.toLocaleString('en')}
            note={`${total_before.count.toLocaleString('en')} before`}
          />
        </SimpleGrid>
      </Card>
      <Card
        title="Spend"
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
        <StackedBars
          summary={summary + linesText(lines, textOf)}
          lines={lines}
          caption={`Spend by ${stepName(step)} and ${groupPhrase(view.group)}`}
          bars={bars}
          series={series}
          textOf={textOf}
          step={step_name}
        />
      </Card>
      <UnitsCard view={view} series={series} search={search} set={set} now_ms={now_ms} />
      <Card title={`By ${groupPhrase(view.group)}`}>
        <UsageTable view={view} search={search} />
        {view.rows_more > 0 && (
          <Text size="sm" c="dimmed" mt="sm">
            {view.rows_more.toLocaleString('en')} more groups cost less than these; the total has them. The API lists
            all.
          </Text>
        )}
      </Card>
    </Stack>
  );
}

function UnitsCard({ view, series, search, set, now_ms }: ResultsProps & { series: Series[] }) {
  const units = sortedUnits(view.total.units);
  const unit = units.find((each) => each === search.unit) ?? units[0];
  const bars = useMemo(
    () => (unit === undefined ? [] : barsOf(view, series, ({ units: used }) => Number(used[unit] ?? 0), now_ms)),
    [view, series, unit, now_ms],
  );
  if (unit === undefined) return null;
  const using = series.filter(({ id }) => bars.some(({ values }) => (values[id] ?? 0) > 0));
  return (
    <Card
      title="Units"
      side={
        units.length > 1 && (
          <ChoiceFilter
            label="Unit"
            value={unit}
            data={units.map((value) => ({ value, label: unitName(value) }))}
            onChange={(value) => set({ unit: value })}
            required
          />
        )
      }
    >
      <StackedBars
        summary={`${quantityText({ unit, quantity: view.total.units[unit] ?? '0' })}, ${rangeText(view)}; ${decimalText(view.total_before.units[unit] ?? '0')} in the period before.`}
        caption={`${unitName(unit)} by ${stepName(view.step)} and ${groupPhrase(view.group)}`}
        bars={bars}
        series={using}
        textOf={(value) => decimalText(String(Math.round(value * 1000) / 1000))}
        step={view.step === 'hour' ? 'Hour' : 'Day'}
      />
    </Card>
  );
}

function Nothing({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered)
    return <Empty title="Nothing matches these filters">Remove one of them, or choose another period.</Empty>;
  return (
    <Empty
      title="No charges in this period"
      action={
        <Button component={Link} to="/playground">
          Open the playground
        </Button>
      }
    >
      <Text inherit>Charges appear here when the work ends.</Text>
    </Empty>
  );
}

function snippetOf(
  base_url: string,
  { from, to }: { from: string; to: string },
  group: UsageGrouping,
  step: string,
): string {
  const by = group === 'kind' ? 'modality' : encodeURIComponent(group);
  return `curl "${base_url}/v1/usage?from=${from}&to=${to}&group_by=${step},${by}" \\\n  -H "Authorization: Bearer $MEDLEY_API_KEY"`;
}
