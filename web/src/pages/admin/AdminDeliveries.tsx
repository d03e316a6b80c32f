import { Anchor, Button, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { Page as ListPage } from '../../../../src/dashboard/views/activity.ts';
import type { AdminDelivery } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { atFirstClick } from '../../ui/first-click.ts';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty, Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { AccountFilter } from './AccountFilter.tsx';
import type { DeliveriesSearch } from './search.ts';
import { useChange, type Change } from './useChange.ts';

const route = getRouteApi('/signed-in/operating/admin/deliveries');

const states = ['waiting', 'retrying', 'delivered', 'dropped'] as const;
const state_labels = { waiting: 'Waiting', retrying: 'Retrying', delivered: 'Delivered', dropped: 'Dropped' };

/** Webhooks of all accounts. */
export function AdminDeliveries() {
  const { state: filter, account } = route.useSearch();
  const state = states.find((each) => each === filter);
  const navigate = useNavigate();
  const set = (change: DeliveriesSearch) =>
    void navigate({ to: '/admin/deliveries', search: (now) => ({ ...now, ...change }), replace: true });
  const query = useInfiniteQuery({
    queryKey: ['admin', 'deliveries', state, account],
    queryFn: ({ pageParam, signal }) =>
      api.get<ListPage<AdminDelivery>>(`/dash/admin/deliveries${queryOf({ state, account, after: pageParam })}`, {
        signal,
      }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: ListPage<AdminDelivery>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 15_000,
  });
  const isFiltered = state !== undefined || account !== undefined;
  return (
    <Page title="Deliveries" about="Webhooks of all accounts, newest first.">
      <Filters isFiltered={isFiltered} clear={() => set({ state: undefined, account: undefined })}>
        <ChoiceFilter
          label="State"
          value={state}
          data={states.map((value) => ({ value, label: state_labels[value] }))}
          onChange={(value) => set({ state: value })}
        />
        <AccountFilter value={account} onChange={(id) => set({ account: id })} />
      </Filters>
      <Pages
        query={query}
        empty={
          isFiltered ? (
            <Empty title="Nothing matches these filters">Remove one of them.</Empty>
          ) : (
            <Empty title="No deliveries yet">Tasks with a webhook_url appear here when they end.</Empty>
          )
        }
      >
        {(rows) => <DeliveryTable rows={rows} />}
      </Pages>
    </Page>
  );
}

function DeliveryTable({ rows }: { rows: AdminDelivery[] }) {
  const change = useChange();
  return (
    <>
      {change.error && <Failed error={change.error} />}
      <ListTable
        caption="Deliveries, newest first"
        columns={[
          { name: 'Created' },
          { name: 'Account' },
          { name: 'Address', main: true },
          { name: 'State' },
          { name: 'Attempts', align: 'right' },
          { name: 'Last response' },
          { name: 'Actions', hidden: true },
        ]}
      >
        {rows.map((row) => (
          <DeliveryRow key={row.id} row={row} change={change} />
        ))}
      </ListTable>
    </>
  );
}

function DeliveryRow({ row, change }: { row: AdminDelivery; change: Change }) {
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={row.created_at} ago />
        </Text>
      </Table.Td>
      <Table.Td maw={160}>
        <Anchor
          component={Link}
          to={`/admin/accounts/${row.account_id}`}
          size="sm"
          truncate
          display="block"
          title={row.account_id}
        >
          {row.account_name}
        </Anchor>
      </Table.Td>
      <Table.Td miw={150} maw={200}>
        <Text size="sm" lineClamp={2} title={row.url} style={{ overflowWrap: 'anywhere' }}>
          {row.url}
        </Text>
        <Text size="xs" c="dimmed">
          {row.event}
        </Text>
      </Table.Td>
      <Table.Td>
        <Stack gap={2} align="flex-start">
          <Status of={row.state === 'waiting' ? 'pending' : row.state} />
          {row.next_at !== null && (
            <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
              next <Time at={row.next_at} ago />
            </Text>
          )}
        </Stack>
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {row.attempts}
      </Table.Td>
      <Table.Td miw={110} maw={160}>
        <Text size="sm" lineClamp={2} title={row.last_error ?? ''}>
          {row.last_status ?? row.last_error ?? '–'}
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        {row.attempts > 0 && (
          <Button
            size="xs"
            variant="default"
            onClick={atFirstClick(() => change.make(`deliveries/${row.id}/resend`, {}))}
            aria-label={`Send again: ${row.id}`}
          >
            Send again
          </Button>
        )}
      </Table.Td>
    </Table.Tr>
  );
}
