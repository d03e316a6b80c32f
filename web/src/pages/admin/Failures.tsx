import { Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { AdminFailure, AdminFailures } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Page } from '../../ui/Page.tsx';
import { useSorted } from '../../ui/sorting.ts';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { FileButton } from '../../ui/FileButton.tsx';
import type { FailuresSearch } from './search.ts';

const route = getRouteApi('/signed-in/operating/admin/failures');

/** The page of upstreams' failures, by route and kind. */
export function Failures() {
  const { from, route: chosen_route } = route.useSearch();
  const navigate = useNavigate();
  const set = (change: FailuresSearch) =>
    void navigate({ to: '/admin/failures', search: (now) => ({ ...now, ...change }), replace: true });
  const query_string = queryOf({ from: from !== undefined && /^\d{4}-\d\d-\d\d$/.test(from) ? from : undefined });
  const query = useQuery({
    queryKey: ['admin', 'failures', query_string || undefined],
    queryFn: ({ signal }) => api.get<AdminFailures>(`/dash/admin/failures${query_string}`, { signal }),
    refetchInterval: 30_000,
  });
  const routes = [...new Set(query.data?.data.map((group) => group.route))].toSorted();
  return (
    <Page
      title="Failures"
      about="Failed attempts of routes. The caller may still have got a result: the next route is tried."
      actions={<FileButton href={`/dash/admin/failures.csv${query_string}`} />}
    >
      <Filters
        isFiltered={from !== undefined || chosen_route !== undefined}
        clear={() => set({ from: undefined, route: undefined })}
      >
        <DayFilter label="Since (UTC)" value={from} onChange={(value) => set({ from: value })} />
        <ChoiceFilter
          label="Route"
          value={chosen_route}
          data={routes.map((value) => ({ value, label: value }))}
          onChange={(value) => set({ route: value })}
          width={300}
        />
      </Filters>
      <Loaded query={query} height={320}>
        {({ data, since }) => {
          const rows = data.filter((group) => chosen_route === undefined || group.route === chosen_route);
          if (rows.length === 0) {
            return (
              <Empty title={chosen_route === undefined ? 'Nothing has failed' : 'This route has not failed'}>
                No attempt has failed since <Time at={since} />.
              </Empty>
            );
          }
          return (
            <Stack gap="xs">
              <Text size="sm" c="dimmed">
                Since <Time at={since} />
              </Text>
              <FailureTable rows={rows} />
            </Stack>
          );
        }}
      </Loaded>
    </Page>
  );
}

const states: Record<string, { of: string; label: string }> = {
  failed: { of: 'failed', label: 'Failed after it started' },
  not_started: { of: 'retrying', label: 'Refused before it started' },
  ambiguous: { of: 'failed', label: 'Outcome unknown' },
  abandoned: { of: 'dropped', label: 'Abandoned' },
};

function FailureTable({ rows }: { rows: AdminFailure[] }) {
  const { sorted, sortOf } = useSorted(rows, {
    Route: (row) => row.route,
    Count: (row) => row.count,
    Last: (row) => Date.parse(row.last_at),
  });
  return (
    <ListTable
      caption="Failed attempts, most frequent first"
      columns={[
        { name: 'Route', sort: sortOf('Route') },
        { name: 'Outcome' },
        { name: 'Reason' },
        { name: 'Count', align: 'right', sort: sortOf('Count') },
        { name: 'Last', sort: sortOf('Last') },
      ]}
    >
      {sorted.map(({ of, route: name, state, reason, count, last_at, example }) => (
        <Table.Tr key={`${of} ${name} ${state} ${reason}`}>
          <Table.Td miw={220} maw={260}>
            <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
              {name}
            </Text>
            <Text size="xs" c="dimmed">
              {of}
            </Text>
          </Table.Td>
          <Table.Td>
            <Status {...(states[state] ?? { of: 'failed', label: state })} />
          </Table.Td>
          <Table.Td miw={220} maw={340}>
            <Text size="sm" lineClamp={3} style={{ overflowWrap: 'anywhere' }}>
              {reason?.replaceAll('_', ' ') ?? '–'}
            </Text>
            {example !== null && example !== reason && (
              <Text size="xs" c="dimmed" lineClamp={3} style={{ overflowWrap: 'anywhere' }}>
                {example.startsWith(`${reason}: `) ? example.slice(`${reason}: `.length) : example}
              </Text>
            )}
          </Table.Td>
          <Table.Td ta="right" className="figure">
            {count.toLocaleString('en-US')}
          </Table.Td>
          <Table.Td style={{ whiteSpace: 'nowrap' }}>
            <Text size="sm">
              <Time at={last_at} ago />
            </Text>
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}
