import { Box, Group, Stack, Text } from '@mantine/core';
import type { AlertView } from '../../../src/dashboard/views/alerts.ts';
import { Status } from './Status.tsx';
import { Time } from './Time.tsx';

/** Alerts, the open ones first. */
export function AlertList({ alerts, caption }: { alerts: readonly AlertView[]; caption: string }) {
  return (
    <Stack component="ul" aria-label={caption} gap="md" m={0} p={0} style={{ listStyle: 'none' }}>
      {alerts.map((alert) => (
        <Row key={alert.id} alert={alert} />
      ))}
    </Stack>
  );
}

function Row({ alert: { level, title, message, opened_at, closed_at, notified_at } }: { alert: AlertView }) {
  const state = closed_at !== null ? 'good' : level === 'critical' ? 'bad' : 'warning';
  const label = closed_at !== null ? 'Closed' : level === 'critical' ? 'Critical' : 'Open';
  return (
    <Box component="li">
      <Group gap="xs">
        <Status of={state} label={label} />
        <Text size="sm" fw={600} style={{ overflowWrap: 'anywhere' }}>
          {title}
        </Text>
      </Group>
      <Text size="sm" mt={4} maw={760} style={{ overflowWrap: 'anywhere' }}>
        {message}
      </Text>
      <Text size="sm" c="dimmed" mt={2}>
        Opened <Time at={opened_at} ago />
        {closed_at !== null && (
          <>
            , closed <Time at={closed_at} ago />
          </>
        )}
        {notified_at === null ? '. No message yet.' : ', last message '}
        {notified_at !== null && <Time at={notified_at} ago />}
      </Text>
    </Box>
  );
}
