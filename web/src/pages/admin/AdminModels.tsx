import { Group, Stack, Switch, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminModel, AdminRoute } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { Filters } from '../../ui/Filters.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty, Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { DrainLast } from './DrainLast.tsx';
import { RouteActions } from './RouteActions.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import type { RoutesSearch } from './search.ts';
import { SwitchOff } from './SwitchOff.tsx';
import { TestCall } from './TestCall.tsx';
import { useChange, type Change } from './useChange.ts';

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
      about="Routes are tried in this order. A route that keeps failing is paused for a while, then tried again automatically. Changes made here apply to every node within a second and survive restarts; everything else is in the configuration."
    >
      <Filters
        isFiltered={search !== undefined || state !== undefined}
        clear={() => set({ search: undefined, state: undefined })}
      >
        <SearchField
          label="Search"
          placeholder="Model, route or provider"
          value={search}
          onChange={(text) => set({ search: text })}
        />
        <Switch
          label="Only routes that are not in use"
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

/** The open dialog. */
type Opened = { dialog: 'test' | 'drain'; model: AdminModel; route: AdminRoute } | { dialog: 'off'; model: AdminModel };

function Models({ models, search, state }: { models: AdminModel[] } & RoutesSearch) {
  const [opened, setOpened] = useState<Opened>();
  const change = useChange();
  if (models.length === 0) {
    return <Empty title="No models are configured">The configuration file names providers, models and routes.</Empty>;
  }
  const rows = models.flatMap((model) => {
    const fitting = model.routes.filter((each) => fits(model, each, search, state));
    return fitting.map((each, index) => ({ model, route: each, is_first: index === 0 }));
  });
  if (rows.length === 0) {
    return state === 'open' && search === undefined ? (
      <Empty title="Every route is in use">No route is paused or drained.</Empty>
    ) : (
      <Empty title="Nothing matches these filters">Remove one of them.</Empty>
    );
  }
  const close = () => setOpened(undefined);
  return (
    <>
      {change.error && <Failed error={change.error} />}
      <ListTable
        caption="Models and their routes, in the order of the catalogue"
        columns={[
          { name: 'Model' },
          { name: 'Route' },
          { name: 'Provider' },
          { name: 'State' },
          { name: 'Running', align: 'right' },
          { name: 'Actions', hidden: true },
        ]}
      >
        {rows.map(({ model, route: each, is_first }) => (
          <Row key={each.name} model={model} route={each} is_first={is_first} change={change} open={setOpened} />
        ))}
      </ListTable>
      {opened?.dialog === 'test' && <TestCall model={opened.model} route={opened.route} close={close} />}
      {opened?.dialog === 'drain' && <DrainLast model={opened.model} route={opened.route} close={close} />}
      {opened?.dialog === 'off' && <SwitchOff model={opened.model} close={close} />}
    </>
  );
}

function fits(model: AdminModel, each: AdminRoute, search: string | undefined, state: 'open' | undefined): boolean {
  if (state !== undefined && each.state !== state && !each.is_drained && !model.is_off) return false;
  const texts = [model.id, model.name, each.name, each.provider, each.upstream_model];
  return search === undefined || texts.some((text) => text.toLowerCase().includes(search.toLowerCase()));
}

type RowProps = {
  model: AdminModel;
  route: AdminRoute;
  is_first: boolean;
  change: Change;
  open: (opened: Opened) => void;
};

function Row({ model, route: each, is_first, change, open }: RowProps) {
  const state = model.is_off ? 'off' : each.is_drained ? 'drained' : each.state === 'open' ? 'paused' : 'used';
  return (
    <Table.Tr>
      <Table.Td maw={280}>{is_first && <ModelCell model={model} change={change} open={open} />}</Table.Td>
      <Table.Td maw={150}>
        <Text size="sm" truncate title={each.name}>
          {each.id}
        </Text>
      </Table.Td>
      <Table.Td maw={220}>
        <Text size="sm">{each.provider}</Text>
        <Text size="xs" c="dimmed" truncate title={each.upstream_model}>
          {each.upstream_model}
        </Text>
      </Table.Td>
      <Table.Td miw={130}>
        <Stack gap={2} align="flex-start">
          <Status of={state} />
          {each.accounts_paused !== null && (
            <Text size="xs" c="dimmed">
              for {each.accounts_paused === 1 ? '1 account' : `${each.accounts_paused} accounts`}
            </Text>
          )}
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
      <Table.Td ta="right" className="figure">
        {each.running === 0 ? '–' : each.running.toLocaleString('en-US')}
      </Table.Td>
      <Table.Td>
        <RouteActions
          model={model}
          route={each}
          change={change}
          test={() => open({ dialog: 'test', model, route: each })}
          drainLast={() => open({ dialog: 'drain', model, route: each })}
        />
      </Table.Td>
    </Table.Tr>
  );
}

function ModelCell({ model, change, open }: Pick<RowProps, 'model' | 'change' | 'open'>) {
  const flip = () =>
    model.is_off ? change.make('models/switch', { model: model.id, on: true }) : open({ dialog: 'off', model });
  return (
    <Stack gap={4} align="flex-start">
      <Text size="sm" fw={600} truncate maw="100%" title={model.name} component="div">
        <LinkTo href={`/models/${model.id}`}>{model.id}</LinkTo>
      </Text>
      <Text size="xs" c="dimmed">
        {model.kind}
        {model.hidden && ', hidden'}
        {model.is_reordered && ', in a custom order'}
      </Text>
      <Group gap="xs">
        <Switch
          size="sm"
          color="orange"
          label={model.is_off ? 'Off' : 'On'}
          aria-label={`${model.id} takes new work`}
          checked={!model.is_off}
          disabled={change.isPending}
          onChange={flip}
        />
        {!model.is_off && model.standing !== 'available' && <Status of={model.standing} />}
      </Group>
      {!model.is_off && model.routes.every(({ is_drained }) => is_drained) && (
        <Text size="xs" c="var(--mantine-color-error)">
          Every route is drained: new calls are refused (502).
        </Text>
      )}
    </Stack>
  );
}
