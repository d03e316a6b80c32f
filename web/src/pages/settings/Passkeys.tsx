import { Button, Group, Stack, Table, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { PasskeysView, PasskeyView } from '../../../../src/dashboard/views/settings.ts';
import { api } from '../../api.ts';
import { Confirm } from '../../ui/Confirm.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { NameForm } from '../../ui/NameForm.tsx';
import { Card } from '../../ui/Page.tsx';
import { addPasskey, browser_has_passkeys } from '../../ui/passkeys.ts';
import { Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { browserText } from './browser-text.ts';

type Doing = { act: 'add' } | { act: 'rename' | 'remove'; passkey: PasskeyView } | undefined;

/** The passkeys by which this person signs in. Nothing where the operator wants none and there are none. */
export function Passkeys() {
  const [doing, setDoing] = useState<Doing>();
  const query = useQuery({
    queryKey: ['passkeys'],
    queryFn: ({ signal }) => api.get<PasskeysView>('/dash/passkeys', { signal }),
  });
  if (query.data && !query.data.is_on && query.data.data.length === 0) return null;
  const close = () => setDoing(undefined);
  return (
    <Card title="Passkeys">
      <Loaded query={query} height={120}>
        {({ data, is_on, obstacle }) => {
          const reason = is_on ? (obstacle ?? (browser_has_passkeys ? undefined : no_browser)) : switched_off;
          return (
            <Stack>
              {data.length > 0 ? (
                <List passkeys={data} act={setDoing} />
              ) : (
                <Text size="sm" maw={640}>
                  You have none yet. With a passkey you sign in by the fingerprint, face or PIN of a device of yours: no
                  password, no code, and nothing that could be typed into a wrong page.
                </Text>
              )}
              {reason === undefined ? (
                <Group>
                  <Button variant={data.length === 0 ? 'filled' : 'default'} onClick={() => setDoing({ act: 'add' })}>
                    Add a passkey
                  </Button>
                </Group>
              ) : (
                <Text size="sm" c="dimmed">
                  {reason}
                </Text>
              )}
            </Stack>
          );
        }}
      </Loaded>
      {doing?.act === 'add' && <Add close={close} />}
      {doing?.act === 'rename' && <Rename passkey={doing.passkey} close={close} />}
      {doing?.act === 'remove' && <Remove passkey={doing.passkey} close={close} />}
    </Card>
  );
}

const switched_off = 'The operator of this service has switched passkeys off: these sign nobody in.';
const no_browser = 'This browser knows no passkeys. Open this page in another one to add one.';

function List({ passkeys, act }: { passkeys: PasskeyView[]; act: (doing: Doing) => void }) {
  return (
    <ListTable
      caption="Passkeys"
      columns={[
        { name: 'Name', main: true },
        { name: 'Added' },
        { name: 'Last used' },
        { name: 'Action', hidden: true },
      ]}
    >
      {passkeys.map((passkey) => (
        <Row key={passkey.id} passkey={passkey} act={act} />
      ))}
    </ListTable>
  );
}

function Row({ passkey, act }: { passkey: PasskeyView; act: (doing: Doing) => void }) {
  const { name, created_at, used_at, is_synced, other_host } = passkey;
  return (
    <Table.Tr>
      <Table.Td>
        <Text size="sm">{name}</Text>
        <Text size="xs" c="dimmed">
          {other_host === null
            ? is_synced
              ? 'Synchronised between your devices'
              : 'On one device'
            : `Made for ${other_host}: it does not sign you in here. Remove it.`}
        </Text>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={created_at} ago />
        </Text>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">{used_at === null ? 'Never' : <Time at={used_at} ago />}</Text>
      </Table.Td>
      <Table.Td ta="right">
        <Group gap="xs" justify="flex-end" wrap="nowrap">
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => act({ act: 'rename', passkey })}
            aria-label={`Rename ${name}`}
          >
            Rename
          </Button>
          <Button
            size="compact-sm"
            variant="default"
            onClick={() => act({ act: 'remove', passkey })}
            aria-label={`Remove ${name}`}
          >
            Remove
          </Button>
        </Group>
      </Table.Td>
    </Table.Tr>
  );
}

/** Sends a change of the passkeys, then shows them anew. */
function useChange<T>(change: (value: T) => Promise<unknown>, done: () => void) {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['passkeys'] });
      await queries.invalidateQueries({ queryKey: ['sessions'] });
      await queries.invalidateQueries({ queryKey: ['me'] });
      done();
    },
  });
}

const name_length_max = 60;

function Add({ close }: { close: () => void }) {
  const { mutate, error, isPending } = useChange(addPasskey, () => {
    close();
    notifications.show({ message: 'Your passkey is added. It signs you in from now on.' });
  });
  return (
    <Modal opened onClose={close} title="Add a passkey">
      <Stack>
        <Text size="sm">
          Give it a name by which you know the device again. Your browser then asks where to keep it.
        </Text>
        <NameForm
          label="Name"
          length_max={name_length_max}
          act="Continue"
          name={browserText(navigator.userAgent)}
          is_pending={isPending}
          error={error}
          submit={mutate}
        />
      </Stack>
    </Modal>
  );
}

type ChangeProps = { passkey: PasskeyView; close: () => void };

const pathOf = ({ id }: PasskeyView) => `/dash/passkeys/${encodeURIComponent(id)}`;

function Rename({ passkey, close }: ChangeProps) {
  const { mutate, error, isPending } = useChange((name: string) => api.patch(pathOf(passkey), { name }), close);
  return (
    <Modal opened onClose={close} title="Rename the passkey">
      <NameForm
        label="Name"
        length_max={name_length_max}
        act="Save"
        name={passkey.name}
        is_pending={isPending}
        error={error}
        submit={mutate}
      />
    </Modal>
  );
}

function Remove({ passkey, close }: ChangeProps) {
  const { mutate, error, isPending } = useChange(() => api.delete(pathOf(passkey)), close);
  return (
    <Confirm
      title={`Remove ${passkey.name}?`}
      word="Remove"
      color="red"
      isPending={isPending}
      error={error}
      confirm={() => mutate(undefined)}
      close={close}
    >
      <Text size="sm">
        It signs you in no longer, and you are signed out everywhere else. Delete it on the device, too: this service
        cannot.
      </Text>
    </Confirm>
  );
}
