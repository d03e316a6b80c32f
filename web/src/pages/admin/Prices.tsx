import { Anchor, Select, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { AdminMargin, AdminMargins } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { Filters } from '../../ui/Filters.tsx';
import { Card, Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { FileButton } from '../../ui/FileButton.tsx';
import { MarginBars, monthText } from './MarginBars.tsx';
import { PriceList } from './PriceList.tsx';
import { margin_group_labels } from './money.ts';
import { margin_groups, type PricesSearch } from './search.ts';

const route = getRouteApi('/signed-in/operating/admin/prices');

/** The last twelve months (UTC), newest first. */
function months(now: Date): string[] {
  return Array.from({ length: 12 }, (_, back) => {
    return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back, 1)).toISOString().slice(0, 7);
  });
}

/** The page of revenue, upstream cost and margin. */
export function Prices() {
  const { month: filter, by = 'model' } = route.useSearch();
  const choices = months(new Date());
  const month = filter ?? choices[0] ?? '';
  const all = choices.includes(month) ? choices : [...choices, month];
  const navigate = useNavigate();
  const set = (change: PricesSearch) =>
    void navigate({ to: '/admin/prices', search: (now) => ({ ...now, ...change }), replace: true });
  const query_string = queryOf({ month, by });
  const query = useQuery({
    queryKey: ['admin', 'margins', month, by],
    queryFn: ({ signal }) => api.get<AdminMargins>(`/dash/admin/margins${query_string}`, { signal }),
  });
  return (
    <Page
      title="Prices & margins"
      about="Revenue, upstream cost and margin of a month (UTC), then the prices that hold now."
      actions={<FileButton href={`/dash/admin/margins.csv${query_string}`} />}
    >
      <Filters isFiltered={false} clear={() => set({ month: undefined, by: undefined })}>
        <Select
          label="Month"
          value={month}
          allowDeselect={false}
          w={{ base: '100%', xs: 190 }}
          data={all.map((value) => ({ value, label: monthText(value) }))}
          onChange={(value) => set({ month: value ?? undefined })}
        />
        <Select
          label="By"
          value={by}
          allowDeselect={false}
          w={{ base: '100%', xs: 150 }}
          data={margin_groups.map((value) => ({ value, label: margin_group_labels[value] }))}
          onChange={(value) => set({ by: margin_groups.find((group) => group === value) })}
        />
      </Filters>
      <Loaded query={query} height={380}>
        {({ data, names }) =>
          data.length === 0 ? (
            <Empty title={`No charges in ${monthText(month)}`}>Choose another month.</Empty>
          ) : (
            <Card>
              <MarginBars
                key={by}
                rows={data}
                by={by}
                month={monthText(month)}
                label={({ name }) => (name === null ? 'unknown' : (names[name] ?? name))}
                {...(by === 'account' && { link: (row: AdminMargin) => <AccountLink row={row} names={names} /> })}
              />
              <Unknown rows={data} />
            </Card>
          )
        }
      </Loaded>
      <PriceList />
    </Page>
  );
}

function AccountLink({ row: { name }, names }: { row: AdminMargin; names: Record<string, string> }) {
  if (name === null) return 'unknown';
  return (
    <Anchor component={Link} to={`/admin/accounts/${name}`} size="sm">
      {names[name] ?? name}
    </Anchor>
  );
}

function Unknown({ rows }: { rows: readonly AdminMargin[] }) {
  const unknown = rows.reduce((sum, row) => sum + row.unknown, 0);
  if (unknown === 0) return null;
  return (
    <Text size="sm" c="dimmed" mt="sm">
      The upstream cost of {unknown.toLocaleString('en-US')} runs, calls and attempts is unknown and in no sum. Add cost
      rows to their routes in medley.yaml. For a model that was added here, type what its provider asks:{' '}
      <Anchor component={Link} to="/admin/providers" size="sm">
        Providers
      </Anchor>
      , Price.
    </Text>
  );
}
