import { Alert, Button, Group, Stack, Text, Textarea } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type {
  AdminModel,
  AdminRoute,
  AdminTestCall,
  AdminTestCallPlan,
} from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { CodeBox } from '../../ui/Copy.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { isMedia } from '../../ui/kinds.ts';
import { Failed, Loaded } from '../../ui/states.tsx';
import { TestResult } from './TestResult.tsx';

type Props = { model: AdminModel; route: AdminRoute; close: () => void };

/** The dialog of a test call: the request to a route, and on demand one real call of it. */
export function TestCall({ model, route, close }: Props) {
  const [input, setInput] = useState<string>();
  const [planned, setPlanned] = useState<string>();
  const request = { model: model.id, route: route.id };
  const plan = useQuery({
    queryKey: ['admin', 'test', request, planned],
    queryFn: ({ signal }) =>
      api.post<AdminTestCallPlan>('/dash/admin/routes/test', { ...request, input: planned }, { signal }),
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
    placeholderData: (before) => before,
  });
  const call = useMutation({
    mutationFn: () => api.post<AdminTestCall>('/dash/admin/routes/test', { ...request, input, real: true }),
  });
  return (
    <Modal opened onClose={close} title={`Test ${route.name}`} size="lg">
      <Loaded query={plan} height={300}>
        {(view) => (
          <Stack>
            {view.input !== null && (
              <Textarea
                label={isMedia(model.kind) ? 'Input, as JSON' : 'Message'}
                autosize
                minRows={2}
                maxRows={8}
                value={input ?? view.input}
                onChange={({ currentTarget }) => setInput(currentTarget.value)}
                onBlur={() => setPlanned(input)}
              />
            )}
            {plan.error && <Failed error={plan.error} />}
            <div>
              <Text size="sm" fw={500} mb={4}>
                Request to {route.provider} for its model {route.upstream_model}
              </Text>
              <CodeBox text={view.sent} label="request" height={180} />
            </div>
            {call.data === undefined && <CostOfCall plan={view} provider={route.provider} />}
            {call.error && <Failed error={call.error} />}
            {call.data && <TestResult key={call.data.id} begun={call.data} />}
            <Group justify="flex-end">
              <Button variant="default" onClick={close}>
                Close
              </Button>
              <Button
                color="orange"
                onClick={() => call.mutate()}
                loading={call.isPending}
                disabled={plan.isFetching || plan.isError}
              >
                {call.data === undefined ? 'Make the call' : 'Make another call'}
              </Button>
            </Group>
          </Stack>
        )}
      </Loaded>
    </Modal>
  );
}

/** Nobody should be surprised by a bill. */
function CostOfCall({ plan, provider }: { plan: AdminTestCallPlan; provider: string }) {
  const { upstream_estimate, estimated_cost, currency } = plan;
  return (
    <Alert color="orange" variant="light" title="Nothing has been sent yet" role="note">
      <Text size="sm">
        The call is real: <b>{provider} charges you for it</b>,{' '}
        {upstream_estimate === null
          ? 'the amount is unknown.'
          : `about ${upstream_estimate} ${currency} by the cost rows of this route.`}{' '}
        No account pays{estimated_cost === null ? '' : `; a customer would have ${estimated_cost} ${currency} held`}.
        The audit log records it.
      </Text>
    </Alert>
  );
}
