import { Code, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { EndpointView, NewEndpointView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Confirm } from '../../ui/Confirm.tsx';
import { isSecretComing, shown_once } from '../../ui/shown-once.ts';
import { NewSecret } from './EndpointForm.tsx';
import { endpointName } from './endpoints-query.ts';

type Props = { endpoint: EndpointView; close: () => void };

/** A new secret, shown once. */
export function RotateEndpoint({ endpoint, close }: Props) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<NewEndpointView>(`${base}/webhooks/endpoints/${endpoint.id}/rotate`),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'webhook-endpoints'] }),
    ...shown_once,
  });
  if (data) return <NewSecret opened created={data} close={close} />;
  return (
    <Confirm
      title={`Rotate the secret of ${endpointName(endpoint)}`}
      word="Rotate"
      isPending={isPending}
      error={error}
      confirm={mutate}
      close={() => !isSecretComing(queries) && close()}
    >
      <Text size="sm">
        From the next attempt on, this endpoint is signed with a new secret. For 24 hours <Code>webhook-signature</Code>{' '}
        also has a signature by the current one.
      </Text>
      {endpoint.overlap_until !== null && (
        <Text size="sm" fw={600}>
          The last rotation is still in progress: the previous secret stops working now.
        </Text>
      )}
    </Confirm>
  );
}

/** Asks before an endpoint is deleted: its deliveries stay in the list; what waits is not sent. */
export function DeleteEndpoint({ endpoint, close }: Props) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.delete(`${base}/webhooks/endpoints/${endpoint.id}`),
    onSuccess: async () => {
      await queries.invalidateQueries({ queryKey: [account.id, 'webhook-endpoints'] });
      close();
    },
  });
  return (
    <Confirm
      title={`Delete ${endpointName(endpoint)}`}
      word="Delete"
      color="red.9"
      isPending={isPending}
      error={error}
      confirm={mutate}
      close={close}
    >
      <Text size="sm">
        It gets nothing from now on, and what waits for it is not sent. This cannot be undone. To pause it, switch it
        off instead. Its deliveries stay in the list.
      </Text>
    </Confirm>
  );
}
