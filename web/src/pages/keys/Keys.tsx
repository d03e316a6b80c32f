import { Stack, Switch } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState, type ReactNode } from 'react';
import type { KeysView } from '../../../../src/dashboard/views/keys.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChoiceFilter } from '../../ui/Filters.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { ChangeKey, CreateKey } from './KeyForm.tsx';
import { DeleteKey, RotateKey } from './KeyEnds.tsx';
import { KeyTable, type Doing } from './KeyTable.tsx';
import { default_project, projectChoices, useProjects } from './projects.ts';
import { Projects } from './Projects.tsx';
import type { KeysSearch } from './search.ts';

const route = getRouteApi('/signed-in/keys');

/** The page of API keys. */
export function Keys() {
  const { account, base } = usePlace();
  const { project } = route.useSearch();
  const [doing, setDoing] = useState<Doing>();
  const query = useQuery({
    queryKey: [account.id, 'keys'],
    queryFn: ({ signal }) => api.get<KeysView>(`${base}/keys`, { signal }),
    refetchInterval: 15_000,
  });
  const first = projectChoices(useProjects().data)[0]?.value ?? default_project; // not every member sees the default one
  const days_max = query.data?.content_days_max ?? 0;
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
      <Loaded query={query} height={280}>
        {(view) => <KeyList view={view} create={create} setDoing={setDoing} />}
      </Loaded>
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

type ListProps = { view: KeysView; create: ReactNode; setDoing: (doing: Doing) => void };

/** The keys that the address asks for, and how to ask for others. */
function KeyList({ view: { data, resets_at }, create, setDoing }: ListProps) {
  const { deleted = false, project } = route.useSearch();
  const navigate = useNavigate();
  const choices = projectChoices(useProjects().data);
  const search = (change: KeysSearch) =>
    void navigate({ to: '/keys', search: { deleted: deleted || undefined, project, ...change }, replace: true });
  const shown = data.filter(
    (key) => (deleted || key.state !== 'deleted') && (project === undefined || key.project.id === project),
  );
  const has_deleted = data.some(({ state }) => state === 'deleted');
  return (
    <Stack>
      {choices.length > 1 && (
        <ChoiceFilter
          label="Project"
          value={project}
          data={choices}
          onChange={(value) => search({ project: value })}
          width={220}
        />
      )}
      {has_deleted && (
        <Switch
          label="Show deleted keys"
          checked={deleted}
          onChange={({ currentTarget }) => search({ deleted: currentTarget.checked || undefined })}
        />
      )}
      {shown.length > 0 ? (
        <KeyTable keys={shown} setDoing={setDoing} />
      ) : project !== undefined ? (
        <Empty title="No keys in this project" action={create}>
          Create one here, or move a key here: change it.
        </Empty>
      ) : (
        <Empty title={has_deleted ? 'All keys are deleted' : 'Create your first key'} action={create}>
          Programs send the key in the header <code>Authorization: Bearer</code>.
        </Empty>
      )}
      {shown.some(({ limit }) => limit !== null) && (
        <span style={{ fontSize: 'var(--mantine-font-size-sm)', color: 'var(--mantine-color-dimmed)' }}>
          Limits reset <Time at={resets_at} />. Holds for running work count, too.
        </span>
      )}
    </Stack>
  );
}
