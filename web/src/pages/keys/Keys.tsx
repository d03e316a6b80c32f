import { Stack, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import type { KeysView, KeyView } from '../../../../src/dashboard/views/keys.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { askedFor } from '../../shell/found.ts';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { Pages } from '../../ui/ListTable.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Page } from '../../ui/Page.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import { Empty } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { ChangeKey, CreateKey } from './KeyForm.tsx';
import { DeleteKey, RotateKey } from './KeyEnds.tsx';
import { KeyTable, type Doing } from './KeyTable.tsx';
import { default_project, projectChoices, useProjects } from './projects.ts';
import { Projects } from './Projects.tsx';
import { states, type KeysSearch } from './search.ts';

const route = getRouteApi('/signed-in/keys');

/** The page of API keys. */
export function Keys() {
  const { project } = route.useSearch();
  const [doing, setDoing] = useState<Doing>();
  const query = useKeys();
  const first = projectChoices(useProjects().data)[0]?.value ?? default_project; // not every member sees the default one
  const days_max = query.data?.pages[0]?.content_days_max ?? 0;
  const create = (
    <MayButton right="keys" onClick={() => setDoing({ what: 'create' })}>
      Create a key
    </MayButton>
  );
  return (
    <Page
      title="API keys"
      about="Programs call the API with these keys. A key is shown only once, when it is created."
      actions={create}
    >
      <Stack>
        <KeyFilters />
        <Pages
          query={query}
          more="Show more"
          empty={<Nothing create={create} has_any={query.data?.pages[0]?.has_any === true} />}
        >
          {(keys) => <KeyList keys={keys} resets_at={query.data?.pages[0]?.resets_at} setDoing={setDoing} />}
        </Pages>
      </Stack>
      <Projects />
      <CreateKey
        key={project ?? first}
        opened={doing?.what === 'create'}
        project={project ?? first}
        close={() => setDoing(undefined)}
        days_max={days_max}
      />
      {doing?.what === 'change' && (
        <ChangeKey apiKey={doing.key} close={() => setDoing(undefined)} days_max={days_max} />
      )}
      {doing?.what === 'rotate' && <RotateKey apiKey={doing.key} close={() => setDoing(undefined)} />}
      {doing?.what === 'delete' && <DeleteKey apiKey={doing.key} close={() => setDoing(undefined)} />}
    </Page>
  );
}

/** Reads the keys that the address asks for, in pages. */
function useKeys() {
  const { account, base } = usePlace();
  const { search, state, project } = route.useSearch();
  const filter = { search, project, state: state === 'all' ? undefined : (state ?? 'present') };
  return useInfiniteQuery({
    queryKey: [account.id, 'keys', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<KeysView>(`${base}/keys${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: KeysView) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 15_000,
  });
}

const no_filter: KeysSearch = { search: undefined, state: undefined, project: undefined };

const state_choices = [
  { value: 'present', label: 'Not deleted' },
  { value: 'active', label: 'Active' },
  { value: 'ended', label: 'Expired or deleted' },
  { value: 'all', label: 'All' },
];

function KeyFilters() {
  const { search, state, project } = route.useSearch();
  const navigate = useNavigate();
  const choices = projectChoices(useProjects().data);
  const set = (change: KeysSearch) =>
    void navigate({ to: '/keys', search: { search, state, project, ...change }, replace: true });
  return (
    <Filters isFiltered={isFiltered({ search, state, project })} clear={() => set(no_filter)}>
      <SearchField
        label="Search"
        placeholder="Name, id, or end of a key"
        value={search}
        onChange={(text) => set({ search: text === undefined ? undefined : askedFor(text) })}
      />
      <ChoiceFilter
        label="Status"
        value={state ?? 'present'}
        data={state_choices}
        onChange={(value) => set({ state: states.find((each) => each === value) })}
        required
      />
      {(choices.length > 1 || project !== undefined) && (
        <ChoiceFilter
          label="Project"
          value={project}
          data={choices}
          onChange={(value) => set({ project: value })}
          width={220}
        />
      )}
    </Filters>
  );
}

function isFiltered({ search, state, project }: KeysSearch): boolean {
  return search !== undefined || state !== undefined || project !== undefined;
}

function Nothing({ create, has_any }: { create: ReactNode; has_any: boolean }) {
  const { search, state, project } = route.useSearch();
  if (search !== undefined || (state !== undefined && state !== 'all')) {
    return (
      <Empty title="No key matches">
        Search for a part of its name, for its id, or for the last four characters of the key. Deleted keys are shown
        with the status All.
      </Empty>
    );
  }
  if (project !== undefined) {
    return (
      <Empty title="No keys in this project" action={create}>
        Create one here, or move a key here: change it.
      </Empty>
    );
  }
  return (
    <Empty title={has_any ? 'All keys are deleted' : 'Create your first key'} action={create}>
      Programs send the key in the header <code>Authorization: Bearer</code>.
    </Empty>
  );
}

type ListProps = { keys: KeyView[]; resets_at: string | undefined; setDoing: (doing: Doing) => void };

function KeyList({ keys, resets_at, setDoing }: ListProps) {
  return (
    <Stack>
      <KeyTable keys={keys} setDoing={setDoing} />
      {resets_at !== undefined && keys.some(({ limit }) => limit !== null) && (
        <Text size="sm" c="dimmed">
          Limits reset <Time at={resets_at} />. Holds for running work count, too.
        </Text>
      )}
    </Stack>
  );
}
