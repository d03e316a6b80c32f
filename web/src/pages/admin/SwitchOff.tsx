import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { AdminModel } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';

/** Customers notice: it is asked once more. */
export function SwitchOff({ model: { id }, close }: { model: AdminModel; close: () => void }) {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post('/dash/admin/models/switch', { model: id, on: false }),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: ['admin'] });
      close();
    },
  });
  return (
    <Modal opened onClose={close} title={`Switch off ${id}`}>
      <Stack>
        <Text size="sm">
          New calls are refused (502) within a second, and lists show the model as unavailable. Accepted work is
          completed. The model stays off after restarts and reloads, until you switch it on.
        </Text>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button color="red.9" onClick={() => mutate()} loading={isPending} data-autofocus>
            Switch off
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
