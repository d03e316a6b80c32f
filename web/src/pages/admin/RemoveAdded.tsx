import { Button, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { AddedModelView, AddedProviderView } from '../../../../src/dashboard/views/admin-providers.ts';
import { api } from '../../api.ts';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';

type Props = { provider: AddedProviderView; model?: AddedModelView; close: () => void };

/** Callers notice: it is asked once more. */
export function RemoveAdded({ provider, model, close }: Props) {
  const queries = useQueryClient();
  const path = `/dash/admin/providers/${provider.name}`;
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => (model ? api.post(`${path}/models/remove`, { model: model.id }) : api.post(`${path}/remove`)),
    onSuccess: async () => {
      await queries.invalidateQueries();
      close();
    },
  });
  const count = provider.models.length;
  const what = model ? 'the model' : count === 1 ? 'its model' : `its ${count} models`;
  return (
    <Modal
      opened
      onClose={close}
      title={`Remove ${model?.id ?? provider.name}`}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      <Stack>
        <Text size="sm">
          {count === 0 && !model ? 'The stored key is deleted.' : `Callers of ${what} get 404 within a second.`}
          {!model &&
            count > 0 &&
            ' The stored key is deleted. Runs that the provider has begun are not fetched any more: wait for them, or switch the provider’s models off first.'}
        </Text>
        {error && <Failed error={error} />}
        <Group justify="flex-end">
          <Button variant="default" onClick={close}>
            Cancel
          </Button>
          <Button color="red.9" onClick={() => mutate()} loading={isPending} data-autofocus>
            Remove
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
