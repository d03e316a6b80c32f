import { Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { AdminModel, AdminRoute } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { Confirm } from '../../ui/Confirm.tsx';

type Props = { model: AdminModel; route: AdminRoute; close: () => void };

/** Asks before the last route of a model is drained: its callers are refused from then on. */
export function DrainLast({ model, route, close }: Props) {
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.post('/dash/admin/routes/drain', { model: model.id, route: route.id, drained: true }),
    onSuccess: async () => {
      await queries.invalidateQueries();
      close();
    },
  });
  const others = model.routes.length - 1;
  return (
    <Confirm
      title={`Drain ${route.name}`}
      word="Drain it"
      color="red.9"
      isPending={isPending}
      error={error}
      confirm={() => mutate()}
      close={close}
    >
      <Text size="sm">
        {others === 0 ? `It is the only route of ${model.id}.` : `All other routes of ${model.id} are drained.`} New
        calls of this model are refused (502) within a second, and lists show it as unavailable, until you end a drain.
        Accepted work is completed.
      </Text>
    </Confirm>
  );
}
