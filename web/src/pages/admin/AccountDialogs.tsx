import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import type { AdminAccount } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';

type Props = { account: AdminAccount; close: () => void };

/** Blocked accounts begin nothing new; what runs goes on. */
export function BlockAccount({ account: { id, name, status }, close }: Props) {
  const queries = useQueryClient();
  // As it is when the question is asked: the account's new state comes before the dialog has gone.
  const [blocked] = useState(status === 'blocked');
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post(`/dash/admin/accounts/${id}/status`, { status: blocked ? 'active' : 'blocked' }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['admin'] });
      close();
    },
  });
  return (
    <Modal
      opened
      onClose={close}
      title={`${blocked ? 'Unblock' : 'Block'} ${name}`}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          {blocked
            ? 'Its keys work again within a second.'
            : 'Calls with its keys are refused within a second. Running work continues and is charged. Its people can still sign in and read.'}
        </Text>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button color={blocked ? 'orange' : 'red.9'} onClick={() => mutate()} loading={isPending} data-autofocus>
            {blocked ? 'Unblock' : 'Block'}
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Accounts that never had money or work leave nothing behind but what the audit log says of them. */
export function DeleteAccount({ account: { id, name }, close }: Props) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.delete(`/dash/admin/accounts/${id}`),
    onSuccess: async () => {
      await navigate({ to: '/admin/accounts' });
      await queries.invalidateQueries({ queryKey: ['admin'] });
    },
  });
  return (
    <Modal opened onClose={close} title={`Delete ${name}`} centered closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack>
        <Text size="sm">
          Its keys and memberships go with it. An account that has ever had money or work cannot be deleted: block it
          instead.
        </Text>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button color="red.9" onClick={() => mutate()} loading={isPending} data-autofocus>
            Delete
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}

/** Link for an owner who has no password yet, or has lost it. */
export function HandOver({ account: { id, name }, close }: Props) {
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<{ link: string; expires_in: string }>(`/dash/admin/accounts/${id}/login-link`),
    gcTime: 0, // whoever has the link is the owner
  });
  return (
    <Modal
      opened
      onClose={close}
      title={`Sign-in link for ${name}`}
      closeOnEscape={!data && !isPending}
      closeOnClickOutside={!data && !isPending}
      centered
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          The link signs one person in as the owner of this account, who can then choose a password. Send it only to
          them. The audit log records it.
        </Text>
        {data && (
          <div role="status">
            <CodeBox text={data.link} label="link" />
            <Text size="sm" c="dimmed" mt="xs">
              It works once, within {data.expires_in}. It is shown only once.
            </Text>
          </div>
        )}
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            {data ? 'Done' : 'Cancel'}
          </Button>
          {!data && (
            <Button color="orange" onClick={() => mutate()} loading={isPending} data-autofocus>
              Create a link
            </Button>
          )}
        </Group>
      </Stack>
    </Modal>
  );
}
