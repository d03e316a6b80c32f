import { Anchor, Button, Group, Select, Stack, Switch, Table, Text } from '@mantine/core';
import { XMarkIcon } from '@heroicons/react/24/outline';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { MemberChangedView, MemberView, TeamView } from '../../../../src/dashboard/views/settings.ts';
import { api } from '../../api.ts';
import { below } from '../../below.ts';
import { usePlace } from '../../session.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { MayButton, MayIcon } from '../../ui/MayButton.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { NameForm } from '../../ui/NameForm.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { Invitations, Invite } from './Invitations.tsx';
import { KeysOutside } from './KeysOutside.tsx';
import { isLimitable, LimitMember, limitText } from './ProjectLimit.tsx';
import { role_choices, role_words } from './roles.ts';

/** Members of the account. */
export function Team() {
  const { account, base, may } = usePlace();
  const [inviting, setInviting] = useState(false);
  const [leaving, setLeaving] = useState<MemberView>();
  const [limiting, setLimiting] = useState<MemberView>();
  const query = useQuery({
    queryKey: [account.id, 'team'],
    queryFn: ({ signal }) => api.get<TeamView>(`${base}/team`, { signal }),
  });
  return (
    <Stack>
      {may('members') && <AccountName key={account.id} />}
      <Card
        title={`People of ${account.name}`}
        side={
          <MayButton right="members" size="xs" onClick={() => setInviting(true)}>
            Invite somebody
          </MayButton>
        }
      >
        <Loaded query={query} height={160}>
          {({ members }) => (
            <ListTable
              caption={`People of ${account.name}`}
              columns={[
                { name: 'Name' },
                { name: 'Role' },
                { name: 'Projects' },
                { name: 'Second factor' },
                { name: 'Since' },
                { name: 'Action', hidden: true },
              ]}
            >
              {members.map((member) => (
                <Row
                  key={member.user_id}
                  member={member}
                  limit={() => setLimiting(member)}
                  remove={() => setLeaving(member)}
                />
              ))}
            </ListTable>
          )}
        </Loaded>
        <Text size="sm" c="dimmed" mt="sm">
          <Anchor href={below('/guide/roles')} size="sm" underline="always">
            What each role may do
          </Anchor>
        </Text>
      </Card>
      {query.data && <RequiredFactor is_required={query.data.second_factor_required} />}
      {query.data?.invitations && query.data.invitations.length > 0 && (
        <Invitations invitations={query.data.invitations} />
      )}
      {limiting && <LimitMember member={limiting} close={() => setLimiting(undefined)} />}
      {inviting && <Invite close={() => setInviting(false)} />}
      {leaving && <Remove member={leaving} close={() => setLeaving(undefined)} />}
    </Stack>
  );
}

/** The name of the account, for owners. */
function AccountName() {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (name: string) => api.put(`${base}/name`, { name }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['me'] });
      notifications.show({ message: 'The account has its new name.' });
    },
  });
  return (
    <Card title="Account">
      <NameForm
        label="Name of the account"
        length_max={200}
        act="Rename"
        name={account.name}
        is_pending={isPending}
        error={error}
        submit={mutate}
      />
    </Card>
  );
}

type RowProps = { member: MemberView; limit: () => void; remove: () => void };

function Row({ member, limit, remove }: RowProps) {
  const { me, may } = usePlace();
  const { user_id, name, email, role, projects, two_factor, created_at } = member;
  return (
    <Table.Tr>
      <Table.Td maw={{ base: 170, sm: 260 }}>
        <Text size="sm" fw={600} truncate title={name}>
          {name}
          {user_id === me.user.id && ' (you)'}
        </Text>
        <Text size="xs" c="dimmed" truncate>
          {email ?? 'no e-mail address yet'}
        </Text>
      </Table.Td>
      <Table.Td miw={190}>
        <RoleOf member={member} />
      </Table.Td>
      <Table.Td miw={130} maw={240}>
        {may('members') && isLimitable(role) ? (
          <Button
            size="xs"
            variant="default"
            maw="100%"
            aria-label={`Projects of ${name}: ${limitText(projects)}`}
            onClick={limit}
          >
            <Text span inherit truncate>
              {limitText(projects)}
            </Text>
          </Button>
        ) : (
          <Text size="sm">{limitText(projects)}</Text>
        )}
      </Table.Td>
      <Table.Td>
        <Status of={two_factor ? 'active' : 'off'} label={two_factor ? 'On' : 'Off'} />
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={created_at} ago />
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        <MayIcon right="members" label={`Remove ${name}`} color="red" onClick={remove}>
          <XMarkIcon width={18} aria-hidden />
        </MayIcon>
      </Table.Td>
    </Table.Tr>
  );
}

/** The switch of owners. */
function RequiredFactor({ is_required }: { is_required: boolean }) {
  const { account, base, may } = usePlace();
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: (required: boolean) => api.put(`${base}/team/second-factor`, { required }),
    onSettled: () => queries.invalidateQueries({ queryKey: [account.id, 'team'] }),
  });
  return (
    <Card title="Second factor">
      <Stack>
        <Switch
          label="Members must use a second factor"
          description="Whoever has none sees nothing of this account until they turn one on. API keys are not concerned."
          checked={is_required}
          disabled={!may('members') || isPending}
          onChange={({ currentTarget }) => mutate(currentTarget.checked)}
        />
        {error && <Failed error={error} />}
      </Stack>
    </Card>
  );
}

/** A choice for owners, a word for everybody else. */
function RoleOf({ member: { user_id, name, role } }: { member: MemberView }) {
  const { account, base, may } = usePlace();
  const queries = useQueryClient();
  const change = useMutation({
    mutationFn: (chosen: string) => api.patch(`${base}/team/${user_id}`, { role: chosen }),
    onSettled: async () => {
      await queries.invalidateQueries({ queryKey: [account.id, 'team'] });
      await queries.invalidateQueries({ queryKey: ['me'] }); // one's own, perhaps
    },
  });
  const { may: what, name: word } = role_words[role];
  if (!may('members')) {
    return (
      <>
        <Text size="sm">{word}</Text>
        <Text size="xs" c="dimmed">
          {what}
        </Text>
      </>
    );
  }
  return (
    <Select
      size="xs"
      aria-label={`Role of ${name}`}
      value={role}
      data={role_choices}
      allowDeselect={false}
      disabled={change.isPending}
      description={what}
      inputWrapperOrder={['input', 'description', 'error']}
      error={change.error?.message}
      onChange={(chosen) => {
        if (chosen !== null && chosen !== role) change.mutate(chosen);
      }}
    />
  );
}

function Remove({ member, close }: { member: MemberView; close: () => void }) {
  const { account, base, me } = usePlace();
  const queries = useQueryClient();
  const is_me = member.user_id === me.user.id;
  const { mutate, error, isPending, data } = useMutation({
    mutationFn: () => api.delete<MemberChangedView>(`${base}/team/${member.user_id}`),
    onSuccess: async ({ keys_outside }) => {
      if (is_me || keys_outside.length === 0) close();
      await queries.invalidateQueries({ queryKey: [account.id, 'team'] });
      await queries.invalidateQueries({ queryKey: ['me'] });
    },
  });
  if (data && data.keys_outside.length > 0)
    return (
      <Modal opened onClose={close} title={`Remove ${member.name}`}>
        <KeysOutside name={member.name} keys={data.keys_outside} close={close} />
      </Modal>
    );
  return (
    <Modal opened onClose={close} title={is_me ? `Leave ${account.name}` : `Remove ${member.name}`}>
      <Stack>
        <Text size="sm">
          {is_me ? 'You see' : 'They see'} nothing of {account.name} any more, at once. The keys that{' '}
          {is_me ? 'you have' : 'they have'} made go on working: rotate those that somebody may have copied.
        </Text>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button color="red.9" loading={isPending} onClick={() => mutate()}>
            {is_me ? 'Leave' : 'Remove'}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
