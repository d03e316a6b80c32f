import { Button, Group, Radio, Stack, Table, Text, TextInput } from '@mantine/core';
import { XMarkIcon } from '@heroicons/react/24/outline';
import { useForm } from '@mantine/form';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { InvitedView, PendingInvitationView } from '../../../../src/dashboard/views/settings.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { fieldErrors } from '../../ui/field-error.ts';
import { FormEnd } from '../../ui/FormEnd.tsx';
import { CodeBox, Copy } from '../../ui/Copy.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { MayIcon } from '../../ui/MayButton.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';
import { isLimitable, limitText, ProjectLimitFields } from './ProjectLimit.tsx';
import { role_choices, role_words } from './roles.ts';

/** Links that have not been followed yet. */
export function Invitations({ invitations }: { invitations: PendingInvitationView[] }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const withdraw = useMutation({
    mutationFn: (id: string) => api.delete(`${base}/team/invitations/${id}`),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'team'] }),
  });
  return (
    <Card title="Invited">
      <Stack>
        {withdraw.error && <Failed error={withdraw.error} />}
        <ListTable
          caption="Invitations that have not been accepted"
          columns={[
            { name: 'E-mail address' },
            { name: 'Role' },
            { name: 'Projects' },
            { name: 'By' },
            { name: 'Until' },
            { name: 'Actions', hidden: true },
          ]}
        >
          {invitations.map(({ id, email, role, projects, inviter, expires_at, link }) => (
            <Table.Tr key={id}>
              <Table.Td>{email}</Table.Td>
              <Table.Td>{role_words[role].name}</Table.Td>
              <Table.Td>{limitText(projects)}</Table.Td>
              <Table.Td>{inviter}</Table.Td>
              <Table.Td style={{ whiteSpace: 'nowrap' }}>
                <Time at={expires_at} />
              </Table.Td>
              <Table.Td>
                <Group gap={2} justify="flex-end" wrap="nowrap">
                  {link !== null && <Copy text={link} label={`Copy the link for ${email}`} />}
                  <MayIcon right="members" label={`Withdraw ${email}`} color="red" onClick={() => withdraw.mutate(id)}>
                    <XMarkIcon width={18} aria-hidden />
                  </MayIcon>
                </Group>
              </Table.Td>
            </Table.Tr>
          ))}
        </ListTable>
      </Stack>
    </Card>
  );
}

/** Makes a link for one person, to be handed over. */
export function Invite({ close }: { close: () => void }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const form = useForm({ initialValues: { email: '', role: 'developer' } });
  const [projects, setProjects] = useState<readonly string[] | null>(null);
  const can_limit = isLimitable(form.values.role);
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: (values: { email: string; role: string }) =>
      api.post<InvitedView>(`${base}/team/invitations`, { ...values, projects: can_limit ? projects : null }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'team'] }),
    gcTime: 0, // the answer has the link in it
  });
  if (data) {
    return (
      <Modal opened onClose={close} title="The invitation is ready">
        <Stack>
          <Text size="sm">
            {data.mailed
              ? 'The invitation is on its way by mail. You can also send the link yourself: it'
              : 'Send this link to the person: it'}{' '}
            lets one person in, until <Time at={data.expires_at} />.
          </Text>
          <CodeBox text={data.link} label="link" />
          <Group justify="flex-end">
            <Button onClick={close}>Done</Button>
          </Group>
        </Stack>
      </Modal>
    );
  }
  const problem = fieldErrors(error, { email: 'E-mail address', role: 'Role' });
  return (
    <Modal opened onClose={close} title={`Invite somebody to ${account.name}`}>
      <form onSubmit={form.onSubmit((values) => mutate(values))}>
        <Stack>
          <TextInput
            label="E-mail address"
            type="email"
            autoComplete="off"
            required
            data-autofocus
            {...form.getInputProps('email')}
            error={problem.of('email')}
          />
          <Radio.Group label="Role" {...form.getInputProps('role')} error={problem.of('role')}>
            <Stack gap="xs" mt="xs">
              {role_choices.map(({ value, label }) => (
                <Radio key={value} value={value} label={label} description={role_words[value].may} />
              ))}
            </Stack>
          </Radio.Group>
          {can_limit && <ProjectLimitFields chosen={projects} choose={setProjects} />}
          <FormEnd word="Invite" isPending={isPending} error={problem.other} cancel={close} />
        </Stack>
      </form>
    </Modal>
  );
}
