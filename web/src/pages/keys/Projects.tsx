import { Group, Stack, Switch, Table, Text, TextInput } from '@mantine/core';
import { ArchiveBoxIcon, PencilSquareIcon } from '@heroicons/react/24/outline';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ProjectView } from '../../../../src/dashboard/views/keys.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Confirm } from '../../ui/Confirm.tsx';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { MayButton, MayIcon } from '../../ui/MayButton.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { useProjects } from './projects.ts';

type Doing = { what: 'create' } | { what: 'rename' | 'archive'; project: ProjectView } | undefined;

/** The projects that keys are in. */
export function Projects() {
  const { account } = usePlace();
  const query = useProjects();
  const [doing, setDoing] = useState<Doing>();
  const [archived, setArchived] = useState(false);
  const close = () => setDoing(undefined);
  return (
    <Card
      title="Projects"
      side={
        !account.is_limited && (
          <MayButton right="keys" size="xs" variant="light" onClick={() => setDoing({ what: 'create' })}>
            Create a project
          </MayButton>
        )
      }
    >
      <Loaded query={query} height={80}>
        {({ data }) => (
          <Stack gap="sm">
            <Text size="sm" c="dimmed">
              A key is in one project. All that it spends belongs to the project it is in at that time. Usage can be
              grouped by project.
            </Text>
            {data.some(({ state }) => state === 'archived') && (
              <Switch
                label="Show archived projects"
                checked={archived}
                onChange={({ currentTarget }) => setArchived(currentTarget.checked)}
              />
            )}
            <ListTable
              caption="Projects, oldest first"
              columns={[
                { name: 'Project' },
                { name: 'Keys' },
                { name: 'Spent this month' },
                { name: 'Actions', hidden: true },
              ]}
            >
              {data
                .filter(({ state }) => archived || state === 'active')
                .map((project) => (
                  <Row key={project.id} project={project} setDoing={setDoing} />
                ))}
            </ListTable>
            <LinkTo href="/usage?group=project">Usage by project</LinkTo>
          </Stack>
        )}
      </Loaded>
      {doing?.what === 'create' && <NameProject close={close} />}
      {doing?.what === 'rename' && <NameProject project={doing.project} close={close} />}
      {doing?.what === 'archive' && <ArchiveProject project={doing.project} close={close} />}
    </Card>
  );
}

function Row({ project, setDoing }: { project: ProjectView; setDoing: (doing: Doing) => void }) {
  const { account } = usePlace();
  const { name, is_default, state, keys, spent } = project;
  return (
    <Table.Tr>
      <Table.Td maw={{ base: 160, sm: 280 }}>
        <Text size="sm" fw={600} truncate title={name}>
          {name}
        </Text>
        {(is_default || state === 'archived') && (
          <Text size="xs" c="dimmed">
            {is_default ? 'of keys in no other project' : 'archived'}
          </Text>
        )}
      </Table.Td>
      <Table.Td>{keys}</Table.Td>
      <Table.Td>
        <Money cost={spent} />
      </Table.Td>
      <Table.Td>
        {!is_default && state === 'active' && !account.is_limited && (
          <Group gap={2} justify="flex-end" wrap="nowrap">
            <MayIcon right="keys" label={`Rename ${name}`} onClick={() => setDoing({ what: 'rename', project })}>
              <PencilSquareIcon width={18} aria-hidden />
            </MayIcon>
            <MayIcon right="keys" label={`Archive ${name}`} onClick={() => setDoing({ what: 'archive', project })}>
              <ArchiveBoxIcon width={18} aria-hidden />
            </MayIcon>
          </Group>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

/** Without a project, makes one. */
function NameProject({ project, close }: { project?: ProjectView; close: () => void }) {
  const { base } = usePlace();
  const [name, setName] = useState(project?.name ?? '');
  const { mutate, error, isPending } = useChange(
    () => (project ? api.patch(`${base}/projects/${project.id}`, { name }) : api.post(`${base}/projects`, { name })),
    close,
  );
  return (
    <Modal opened onClose={close} title={project ? `Rename ${project.name}` : 'Create a project'}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <Stack>
          <TextInput
            label="Name"
            description="Such as a product, a team or a customer."
            required
            maxLength={100}
            autoComplete="off"
            data-autofocus
            value={name}
            onChange={({ currentTarget }) => setName(currentTarget.value)}
          />
          <FormEnd word={project ? 'Save' : 'Create'} isPending={isPending} error={error} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}

function ArchiveProject({ project, close }: { project: ProjectView; close: () => void }) {
  const { base } = usePlace();
  const { mutate, error, isPending } = useChange(() => api.post(`${base}/projects/${project.id}/archive`), close);
  return (
    <Confirm
      title={`Archive ${project.name}`}
      word="Archive"
      isPending={isPending}
      error={error}
      confirm={mutate}
      close={close}
    >
      <Text size="sm">
        No key can be put there any more. What it has spent stays in usage. A project whose keys still work cannot be
        archived: move or delete them first.
      </Text>
    </Confirm>
  );
}

function useChange(change: () => Promise<unknown>, close: () => void) {
  const { account } = usePlace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async () => {
      await Promise.all(
        ['projects', 'keys', 'choices'].map((name) => queries.invalidateQueries({ queryKey: [account.id, name] })),
      );
      close();
    },
  });
}
