import { ActionIcon, Button, Group, Stack, Text } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { BookmarkIcon, TrashIcon } from '@heroicons/react/24/outline';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useRouter, useRouterState } from '@tanstack/react-router';
import { useState } from 'react';
import type { SavedViews as Saved } from '../../../../src/dashboard/views/activity.ts';
import { api } from '../../api.ts';
import { below } from '../../below.ts';
import { usePlace } from '../../session.tsx';
import { atFirstClick } from '../../ui/first-click.ts';
import { Modal } from '../../ui/Modal.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { NameForm } from '../../ui/NameForm.tsx';

/** The lists that this person saved in this account: to open, to save what is shown as one more, and to remove. */
export function SavedViews() {
  const [opened, { open, close }] = useDisclosure();
  return (
    <>
      <Button variant="default" size="xs" leftSection={<BookmarkIcon width={16} aria-hidden />} onClick={open}>
        Saved lists
      </Button>
      <Modal opened={opened} onClose={close} title="Saved lists">
        <Views close={close} />
      </Modal>
    </>
  );
}

function Views({ close }: { close: () => void }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const router = useRouter();
  const queryKey = [account.id, 'views'];
  const query = useQuery({ queryKey, queryFn: ({ signal }) => api.get<Saved>(`${base}/views`, { signal }) });
  const remove = useMutation({
    mutationFn: (name: string) => api.post(`${base}/views/remove`, { name }),
    onSuccess: () => queries.invalidateQueries({ queryKey }),
  });
  const show = (search: string) => {
    close();
    router.history.push(below(`/activity${search && `?${search}`}`));
  };
  return (
    <Stack>
      {account.role !== 'operator' && <SaveForm saved={() => void queries.invalidateQueries({ queryKey })} />}
      {remove.error && <Failed error={remove.error} />}
      <Loaded query={query} height={52}>
        {({ data }) =>
          data.length === 0 ? (
            <Text size="sm" c="dimmed">
              No list is saved yet. A saved list keeps its filters and its order, for you alone.
            </Text>
          ) : (
            <Stack gap={4} component="ul" p={0} m={0} style={{ listStyle: 'none' }}>
              {data.map(({ name, search }) => (
                <Group key={name} component="li" justify="space-between" wrap="nowrap" gap="xs">
                  <Button variant="subtle" justify="flex-start" flex={1} miw={0} onClick={() => show(search)}>
                    {name}
                  </Button>
                  <ActionIcon
                    variant="subtle"
                    color="gray"
                    size="lg"
                    aria-label={`Remove ${name}`}
                    onClick={atFirstClick(() => remove.mutate(name))}
                  >
                    <TrashIcon width={18} aria-hidden />
                  </ActionIcon>
                </Group>
              ))}
            </Stack>
          )
        }
      </Loaded>
    </Stack>
  );
}

function SaveForm({ saved }: { saved: () => void }) {
  const { base } = usePlace();
  const [saves, setSaves] = useState(0);
  const search = useRouterState({ select: ({ location }) => location.searchStr.replace(/^\?/, '') });
  const { mutate, error, isPending } = useMutation({
    mutationFn: (name: string) => api.post(`${base}/views`, { name, search }),
    onSuccess: () => {
      setSaves((count) => count + 1); // the next one begins without a name
      saved();
    },
  });
  const form = { label: 'Save this list as', length_max: 60, act: 'Save', is_pending: isPending, error };
  return <NameForm key={saves} {...form} submit={mutate} />;
}
