import { Stack, Table, Text } from '@mantine/core';
import type { AlertView } from '../../../src/dashboard/views/alerts.ts';
import { ListTable } from './ListTable.tsx';
import { Status } from './Status.tsx';
import { Time } from './Time.tsx';

/** Alerts, the open ones first. */
export function AlertList({ alerts, caption }: { alerts: readonly AlertView[]; caption: string }) {
  return (
    <ListTable
      caption={caption}
      columns={[{ name: 'State' }, { name: 'Alert' }, { name: 'Since' }, { name: 'Until' }, { name: 'Last message' }]}
    >
      {alerts.map((alert) => (
        <Row key={alert.id} alert={alert} />
      ))}
    </ListTable>
  );
}

function Row({ alert: { level, title, message, opened_at, closed_at, notified_at } }: { alert: AlertView }) {
  const state = closed_at !== null ? 'good' : level === 'critical' ? 'bad' : 'warning';
  const label = closed_at !== null ? 'Over' : level === 'critical' ? 'Critical' : 'Open';
  return (
    <Table.Tr>
      <Table.Td>
        <Status of={state} label={label} />
      </Table.Td>
      <Table.Td miw={260}>
        <Stack gap={2}>
          <Text size="sm" fw={600}>
            {title}
          </Text>
          <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
            {message}
          </Text>
        </Stack>
      </Table.Td>
      <When at={opened_at} />
      <When at={closed_at} />
      <When at={notified_at} />
    </Table.Tr>
  );
}

function When({ at }: { at: string | null }) {
  return (
    <Table.Td style={{ whiteSpace: 'nowrap' }}>
      <Text size="sm">{at === null ? '–' : <Time at={at} ago />}</Text>
    </Table.Td>
  );
}
