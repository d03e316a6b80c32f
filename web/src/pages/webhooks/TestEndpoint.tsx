import { Button, Group, Select, Stack } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { EndpointsView, EndpointView, TestSentView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';
import { endpointName } from './endpoints-query.ts';
import { Outcome } from './SendTest.tsx';

type Props = { endpoint: EndpointView; view: EndpointsView; close: () => void };

/** Sends an example of an event, and shows the answer of the receiver. */
export function TestEndpoint({ endpoint, view: { events }, close }: Props) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [type, setType] = useState(events[0]?.type ?? '');
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<TestSentView>(`${base}/webhooks/endpoints/${endpoint.id}/test`, { event: type }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'deliveries'] }),
  });
  return (
    <Modal opened onClose={close} title={`Send a test to ${endpointName(endpoint)}`} size="lg">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <Stack>
          <Select
            label="Event"
            description={events.find((each) => each.type === type)?.meaning}
            data={events.map((each) => each.type)}
            allowDeselect={false}
            value={type}
            onChange={(chosen) => setType(chosen ?? type)}
            data-autofocus
          />
          <div role="status">{data && !isPending && <Outcome sent={data} />}</div>
          {error && <Failed error={error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Close
            </Button>
            <Button type="submit" loading={isPending}>
              Send
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}
