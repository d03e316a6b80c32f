import { Anchor, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import type { AdminCall, AdminCalls, AdminModel } from '../../../../src/dashboard/views/admin.ts';
import { api, queryOf } from '../../api.ts';
import { Breakable } from '../../ui/Breakable.tsx';
import { durationText } from '../../ui/duration.ts';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Page } from '../../ui/Page.tsx';
import { hoursOf, periodNamed, periods } from '../../ui/periods.ts';
import { Empty, Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { AddFilter } from '../activity/AddFilter.tsx';
import { ChosenLabels } from '../activity/ChosenLabels.tsx';
import { chosenLabels, labelQuery, labelsOf, withoutLabels, type LabelName } from '../activity/filters.ts';
import { AccountFilter } from './AccountFilter.tsx';
import { call_kinds, call_statuses, type CallsSearch } from './search.ts';
import { useLook } from './useLook.ts';

const route = getRouteApi('/signed-in/operating/admin/calls');

const no_filter: CallsSearch = {
  of: undefined,
  account: undefined,
  model: undefined,
  route: undefined,
  status: undefined,
};

/** Filters that are asked of all accounts together; the others have indexes in each account alone. */
const of_all_accounts: readonly LabelName[] = ['error', 'http_status'];

/** Returns the filters by labels that the list has. */
function labelsIn({ of, account }: CallsSearch): readonly LabelName[] {
  const names = labelsOf(of ?? 'all');
  return account === undefined ? names.filter((name) => of_all_accounts.includes(name)) : names;
}

/** Chat calls and tasks of all accounts. */
export function Calls() {
  const search = route.useSearch();
  const { of, account, model, route: chosen_route, status, period = '24h' } = search;
  const labels = labelQuery(search, labelsIn(search));
  const filter = { of, account, model, route: chosen_route, status, ...labels };
  const navigate = useNavigate();
  const set = (change: CallsSearch) =>
    void navigate({ to: '/admin/calls', search: { ...search, ...change }, replace: true });
  const query = useInfiniteQuery({
    queryKey: ['admin', 'calls', period, filter],
    queryFn: ({ pageParam, signal }) => {
      const from = new Date(Date.now() - hoursOf(period) * 3_600_000).toISOString();
      const query_text = queryOf({ ...filter, from, after: pageParam?.id, after_time: pageParam?.created_at });
      return api.get<AdminCalls>(`/dash/admin/calls${query_text}`, { signal });
    },
    initialPageParam: undefined as AdminCall | undefined,
    getNextPageParam: (page: AdminCalls) => (page.has_more ? page.data.at(-1) : undefined),
    refetchInterval: 10_000,
  });
  const isFiltered = Object.values(filter).some((value) => value !== undefined);
  return (
    <Page
      title="Calls"
      about="Chat calls and tasks of all accounts, newest first: those of the last 24 hours, unless you choose another period. A chat call appears when it has ended. The audit log of an account records that you open one of its calls."
    >
      <CallFilters search={search} set={set} isFiltered={isFiltered} />
      <Pages
        query={query}
        empty={
          isFiltered ? (
            <Empty title="Nothing matches these filters">Remove one of them, or choose a longer period.</Empty>
          ) : (
            <Empty title="No calls in this period">Choose a longer period.</Empty>
          )
        }
      >
        {(rows) => <CallTable rows={rows} />}
      </Pages>
    </Page>
  );
}

type FilterProps = { search: CallsSearch; set: (change: CallsSearch) => void; isFiltered: boolean };

function CallFilters({ search, set, isFiltered }: FilterProps) {
  const { of, account, model, route: chosen_route, status, period = '24h' } = search;
  const { models, routes } = useModels();
  return (
    <Filters isFiltered={isFiltered} clear={() => set({ ...no_filter, ...withoutLabels(search) })}>
      <ChoiceFilter
        label="Period"
        value={period}
        data={periods}
        onChange={(value) => set({ period: value === '24h' ? undefined : periodNamed(value) })}
        required
      />
      <AccountFilter value={account} onChange={(id) => set({ account: id })} />
      <ChoiceFilter
        label="Kind"
        value={of}
        data={call_kinds}
        onChange={(value) => set({ of: call_kinds.find((kind) => kind.value === value)?.value })}
        width={140}
      />
      <ChoiceFilter
        label="Status"
        value={status}
        data={call_statuses}
        onChange={(value) => set({ status: call_statuses.find((each) => each.value === value)?.value })}
        width={140}
      />
      <ChoiceFilter
        label="Model"
        value={model}
        data={withChosen(models, model)}
        onChange={(value) => set({ model: value })}
        width={220}
      />
      <ChoiceFilter
        label="Route"
        value={chosen_route}
        data={withChosen(routes, chosen_route)}
        onChange={(value) => set({ route: value })}
        width={260}
      />
      <AddFilter
        names={labelsIn(search)}
        set={set}
        note={account === undefined && 'To filter by tag, end user or metadata, choose an account first.'}
      />
      <ChosenLabels labels={chosenLabels(search, labelsIn(search))} set={set} />
    </Filters>
  );
}

/** Models of the service, and their routes, to choose from. */
function useModels(): { models: string[]; routes: string[] } {
  const { data } = useQuery({
    queryKey: ['admin', 'models'],
    queryFn: ({ signal }) => api.get<{ data: AdminModel[] }>('/dash/admin/models', { signal }),
    staleTime: 60_000,
  });
  const models = data?.data ?? [];
  const routes = models.flatMap((model) => model.routes.map(({ name }) => name));
  return { models: models.map(({ id }) => id), routes: [...new Set(routes)].toSorted() };
}

/** Returns values to choose from, with the chosen one: the address may have one that is configured no more. */
function withChosen(values: readonly string[], chosen: string | undefined) {
  const all = chosen === undefined || values.includes(chosen) ? values : [...values, chosen];
  return all.map((value) => ({ value, label: value }));
}

function CallTable({ rows }: { rows: AdminCall[] }) {
  const look = useLook();
  return (
    <Stack gap="xs">
      {look.error && <Failed error={look.error} />}
      <ListTable
        caption="Calls of all accounts, newest first"
        columns={[
          { name: 'Created', main: true },
          { name: 'Account' },
          { name: 'Model, route' },
          { name: 'Status' },
          { name: 'Tokens', align: 'right' },
          { name: 'First token', align: 'right' },
          { name: 'Took', align: 'right' },
          { name: 'Cost', align: 'right' },
        ]}
      >
        {rows.map((row) => (
          <CallRow key={row.id} row={row} look={look} />
        ))}
      </ListTable>
    </Stack>
  );
}

function CallRow({ row, look }: { row: AdminCall; look: ReturnType<typeof useLook> }) {
  const { id, account_id, account_name, usage } = row;
  const to = row.kind === 'chat' ? `/chats/${id}` : `/tasks/${id}`;
  const open = () => look.open({ account_id, to });
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Anchor component="button" type="button" size="sm" onClick={open} disabled={look.isPending} title={id}>
          <Time at={row.created_at} ago />
        </Anchor>
        <Text size="xs" c="dimmed">
          {row.modality ?? row.kind}
        </Text>
      </Table.Td>
      <Table.Td maw={{ base: 130, xl: 160 }}>
        <Anchor component={Link} to={`/admin/accounts/${account_id}`} size="sm" truncate display="block">
          {account_name}
        </Anchor>
      </Table.Td>
      <Table.Td maw={240}>
        <Text size="sm" style={{ overflowWrap: 'break-word' }}>
          <Breakable text={row.model} />
        </Text>
        <Text size="xs" c="dimmed" style={{ overflowWrap: 'break-word' }}>
          {row.route === null ? 'no route' : <Breakable text={row.route} />}
        </Text>
      </Table.Td>
      <Table.Td>
        <State row={row} />
      </Table.Td>
      <FigureCell>{usage && `${grouped(usage.input_tokens)} → ${grouped(usage.output_tokens)}`}</FigureCell>
      <FigureCell>{row.first_content_ms !== null && durationText(row.first_content_ms)}</FigureCell>
      <FigureCell>{row.total_ms !== null && durationText(row.total_ms)}</FigureCell>
      <Table.Td ta="right">
        <Money cost={row.cost} exact="column" />
      </Table.Td>
    </Table.Tr>
  );
}

function grouped(count: number): string {
  return count.toLocaleString('en-US');
}

function FigureCell({ children }: { children: string | false | null }) {
  return (
    <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
      {children || '–'}
    </Table.Td>
  );
}

function State({ row: { status, http_status, error_type } }: { row: AdminCall }) {
  return (
    <>
      <Status of={status} />
      {status === 'failed' && (
        <Text size="xs" c="dimmed">
          {error_type ? <Breakable text={error_type} /> : http_status === 499 ? 'caller left' : http_status}
        </Text>
      )}
    </>
  );
}
