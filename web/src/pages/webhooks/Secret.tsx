import { Button, Code, Group, Stack, Text } from '@mantine/core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { SecretView, WebhooksView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';

/** Hidden until somebody asks for it, which is written down; forgotten when they hide it or go away. */
export function Secret({ view }: { view: WebhooksView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [asking, setAsking] = useState(false);
  const ask = useMutation({
    mutationFn: (path: 'secret' | 'secret/rotate') => api.post<SecretView>(`${base}/webhooks/${path}`),
    onSuccess: async () => {
      setAsking(false);
      await queries.invalidateQueries({ queryKey: [account.id, 'webhooks'] });
    },
    gcTime: 0, // the answer has the secret in it
  });
  const { data, error, isPending, mutate, reset } = ask;
  const until = view.overlap_until;
  return (
    <Card title="Secret of webhook_url">
      <Stack gap="sm">
        <Text size="sm">
          Webhooks to the <Code>webhook_url</Code> of a task are signed with it, so that your program can verify the
          sender. Each endpoint has a secret of its own, which is shown when the endpoint is created.
        </Text>
        {data ? <CodeBox text={data.secret} label="secret" /> : <Code block>{'whsec_' + '•'.repeat(32)}</Code>}
        {data?.before && (
          <div>
            <Text size="sm" mb={4}>
              The previous secret:
            </Text>
            <CodeBox text={data.before} label="previous secret" />
          </div>
        )}
        {until !== null && (
          <Text size="sm" c="dimmed" role="status">
            The previous secret stays valid until <Time at={until} />, in <Code>webhook-signature</Code>.
          </Text>
        )}
        {error && !asking && <Failed error={error} />}
        <Group gap="xs">
          <MayButton
            right="webhooks"
            variant="default"
            loading={isPending && !asking}
            onClick={() => (data ? reset() : mutate('secret'))}
          >
            {data ? 'Hide' : 'Reveal'}
          </MayButton>
          <MayButton right="webhooks" variant="default" onClick={() => setAsking(true)}>
            Rotate
          </MayButton>
        </Group>
      </Stack>
      <Modal opened={asking} onClose={() => setAsking(false)} title="Rotate the secret">
        <RotationWords under_way={until !== null} />
        {error && <Failed error={error} />}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={() => setAsking(false)}>
            Cancel
          </Button>
          <Button loading={isPending} onClick={() => mutate('secret/rotate')}>
            Rotate
          </Button>
        </Group>
      </Modal>
    </Card>
  );
}

function RotationWords({ under_way }: { under_way: boolean }) {
  return (
    <Stack>
      <Text size="sm">
        From the next attempt on, webhooks are signed with a new secret. For 24 hours <Code>webhook-signature</Code>{' '}
        also has a signature by the current one; <Code>x-service-signature</Code> has only the new one.
      </Text>
      {under_way && (
        <Text size="sm" fw={600}>
          The last rotation is still in progress: the previous secret stops working now.
        </Text>
      )}
    </Stack>
  );
}
