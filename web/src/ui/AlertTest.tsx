import { Group, Stack, Text } from '@mantine/core';
import type { AlertTestView } from '../../../src/dashboard/views/alerts.ts';
import { Status } from './Status.tsx';

/** Results of a test of alerts by each way. */
export function AlertTest({ outcome: { mail, webhook } }: { outcome: AlertTestView }) {
  if (!mail && !webhook)
    return <Text size="sm">There is nobody to send it to: no proved address, and no webhook.</Text>;
  return (
    <Stack gap={4}>
      {mail && (
        <Way
          is_sent={mail.error === null}
          text={`Mail to ${mail.to.join(', ')}${mail.error ? `: ${mail.error}` : ''}`}
        />
      )}
      {webhook && (
        <Way
          is_sent={webhook.delivered}
          text={`Webhook: ${webhook.status === null ? (webhook.error ?? 'no response') : `answered ${webhook.status}`}`}
        />
      )}
    </Stack>
  );
}

function Way({ is_sent, text }: { is_sent: boolean; text: string }) {
  return (
    <Group gap="xs" wrap="nowrap" align="flex-start">
      <Status of={is_sent ? 'delivered' : 'failed'} />
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {text}
      </Text>
    </Group>
  );
}
