import { Code, Group, Stack, Text, TextInput } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { TestSentView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { durationText } from '../../ui/duration.ts';
import { fieldErrors } from '../../ui/field-error.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';

/** A signed payload of a task without output, sent once, here and now. */
export function SendTest() {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [url, setUrl] = useState('');
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<TestSentView>(`${base}/webhooks/test`, { url }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'deliveries'] }),
  });
  const errors = fieldErrors(error, { url: 'Address' });
  return (
    <Card title="Send a test">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          mutate();
        }}
      >
        <Stack gap="sm">
          <Group align="flex-end" gap="xs">
            <TextInput
              label="Address"
              description="Receives one signed payload of a finished task without output."
              placeholder="https://example.com/hook"
              type="url"
              style={{ flex: 1, minWidth: 220 }}
              value={url}
              error={errors.of('url')}
              onChange={({ currentTarget }) => setUrl(currentTarget.value)}
            />
            <MayButton right="webhooks" loading={isPending} onClick={() => mutate()}>
              Send
            </MayButton>
          </Group>
          <div role="status">{data && !isPending && <Outcome sent={data} />}</div>
          {errors.other && <Failed error={errors.other} />}
        </Stack>
      </form>
    </Card>
  );
}

/** The answer of a receiver to a test. */
export function Outcome({ sent }: { sent: TestSentView }) {
  const { id, delivered, status, error, duration_ms, answer, headers } = sent;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return (
    <Stack gap="xs">
      <Group gap="xs">
        <Status of={delivered ? 'delivered' : 'failed'} />
        <Text size="sm">
          {status === null ? (error ?? 'No response.') : `Answered ${status}`} after {durationText(duration_ms)}
        </Text>
        <LinkTo href={`/webhooks/${id}`} size="sm">
          Payload
        </LinkTo>
      </Group>
      {lines.length > 0 && (
        <Code block mah={160} style={{ overflow: 'auto' }} tabIndex={0} aria-label="Headers of the answer">
          {lines.join('\n')}
        </Code>
      )}
      {answer !== null && answer !== '' && (
        <Code block mah={160} style={{ overflow: 'auto' }} tabIndex={0}>
          {answer}
        </Code>
      )}
    </Stack>
  );
}
