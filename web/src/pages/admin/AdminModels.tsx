import { Button, Stack, Switch, Table, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { AdminModel, AdminRoute } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { Filters } from '../../ui/Filters.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty, Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { SearchField } from './SearchField.tsx';
import type { RoutesSearch } from './search.ts';

const route = getRouteApi('/signed-in/operating/admin/models');

/** Which upstreams serve which model, and which of them are left out for now. */
export function AdminModels() {
  const { search, state } = route.useSearch();
  const navigate = useNavigate();
  const set = (change: RoutesSearch) =>
    void navigate({ to: '/admin/models', search: { search, state, ...change }, replace: true });
  const query = useQuery({
    queryKey: ['admin', 'models'],
    queryFn: ({ signal }) => api.get<{ data: AdminModel[] }>('/dash/admin/models', { signal }),
    refetchInterval: 10_000,
  });
  return (
    <Page
      title="Models & routes"
      about="Routes are tried in this order. One that keeps failing is left out for a while, then tried again by itself."
    >
      <Filters
        isFiltered={search !== undefined || state !== undefined}
        clear={() => set({ search: undefined, state: undefined })}
      >
        <SearchField
          label="Search"
          placeholder="Part of a model, route or provider"
          value={search}
          onChange={(text) => set({ search: text })}
        />
        <Switch
          label="Only routes that are not used now"
          checked={state === 'open'}
          color="orange"
          mb={8}
          onChange={({ currentTarget }) => set({ state: currentTarget.checked ? 'open' : undefined })}
        />
      </Filters>
      <Loaded query={query} height={420}>
        {({ data }) => <Models models={data} search={search} state={state} />}
      </Loaded>
    </Page>
  );
}

function Models({ models, search, state }: { models: AdminModel[] } & RoutesSearch) {
  if (models.length === 0) {
    return <Empty title="No models are configured">The configuration file names providers, models and routes.</Empty>;
  }
  const rows = models.flatMap((model) => {
    const fitting = model.routes.filter((each) => fits(model, each, search, state));
    return fitting.map((each, index) => ({ model, route: each, is_first: index === 0 }));
  });
  if (rows.length === 0) {
    return state === 'open' && search === undefined ? (
      <Empty title="Every route takes work">No route is left out now.</Empty>
    ) : (
      <Empty title="Nothing fits these filters">Take one of them away.</Empty>
    );
  }
  return (
    <ListTable
      caption="Models and their routes, in the order of the catalogue"
      columns={[
        { name: 'Model' },
        { name: 'Route' },
        { name: 'Provider' },
        { name: 'Model upstream' },
        { name: 'State' },
        { name: 'Actions', hidden: true },
      ]}
    >
      {rows.map(({ model, route: each, is_first }) => (
        <Row key={each.name} model={model} route={each} is_first={is_first} />
      ))}
    </ListTable>
  );
}

function fits(model: AdminModel, each: AdminRoute, search: string | undefined, state: 'open' | undefined): boolean {
  if (state !== undefined && each.state !== state) return false;
  const texts = [model.id, model.name, each.name, each.provider, each.upstream_model];
  return search === undefined || texts.some((text) => text.toLowerCase().includes(search.toLowerCase()));
}

function Row({ model, route: each, is_first }: { model: AdminModel; route: AdminRoute; is_first: boolean }) {
  const short = each.name.startsWith(`${model.id}#`) ? each.name.slice(model.id.length + 1) : each.name;
  return (
    <Table.Tr>
      <Table.Td maw={280}>
        {is_first && (
          <Stack gap={4} align="flex-start">
            <Text size="sm" fw={600} truncate maw="100%" title={model.name} component="div">
              <LinkTo href={`/models/${model.id}`}>{model.id}</LinkTo>
            </Text>
            <Text size="xs" c="dimmed">
              {model.kind}
              {model.hidden && ', hidden'}
            </Text>
            {model.standing !== 'available' && <Status of={model.standing} />}
          </Stack>
        )}
      </Table.Td>
      <Table.Td maw={150}>
        <Text size="sm" truncate title={each.name}>
          {short}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{each.provider}</Text>
      </Table.Td>
      <Table.Td maw={240}>
        <Text size="sm" truncate title={each.upstream_model}>
          {each.upstream_model}
        </Text>
      </Table.Td>
      <Table.Td miw={150}>
        <Stack gap={2} align="flex-start">
          <Status of={each.state === 'open' ? 'paused' : 'used'} />
          {each.cause !== null && (
            <Text size="xs" c="dimmed">
              {each.cause.replaceAll('_', ' ')}
            </Text>
          )}
          {each.retry_at !== null && (
            <Text size="xs" c="dimmed">
              tried again <Time at={each.retry_at} ago />
            </Text>
          )}
        </Stack>
      </Table.Td>
      <Table.Td ta="right">{each.state === 'open' && <Reset name={each.name} />}</Table.Td>
    </Table.Tr>
  );
}

/** Uses a route again at once, whatever it did. */
function Reset({ name }: { name: string }) {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post('/dash/admin/routes/reset', { route: name }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ['admin'] }),
  });
  return (
    <>
      <Button size="xs" variant="default" onClick={() => mutate()} loading={isPending} aria-label={`Use ${name} again`}>
        Use again
      </Button>
      {error && <Failed error={error} />}
    </>
  );
}
