import { Code, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AdminQueue } from '../../../../src/dashboard/views/admin.ts';
import { api } from '../../api.ts';
import { durationText } from '../../ui/duration.ts';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Limits } from './Limits.tsx';
import { Nodes } from './Nodes.tsx';
import { Troubled } from './Troubled.tsx';

type Queue = AdminQueue['queues'][number];

/** The page of the job queue: backlog, nodes and running jobs. */
export function QueuePage() {
  const query = useQuery({
    queryKey: ['admin', 'queue'],
    queryFn: ({ signal }) => api.get<AdminQueue>('/dash/admin/queue', { signal }),
    refetchInterval: 2_000,
  });
  return (
    <Page title="Queue & workers" about="Jobs and workers, as they are now.">
      <Loaded query={query} height={320}>
        {({ queues, nodes, troubled, limits }) => (
          <Stack gap="lg">
            {queues.length === 0 ? (
              <Empty title="The queue is empty">Jobs appear here as soon as a task is created.</Empty>
            ) : (
              <Sums queues={queues} />
            )}
            <Nodes nodes={nodes} />
            <Troubled jobs={troubled} />
            {queues.length > 0 && (
              <Card title="Queues">
                <QueueTable queues={queues} />
              </Card>
            )}
            <Limits limits={limits} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

function Sums({ queues }: { queues: readonly Queue[] }) {
  const sum = (of: (queue: Queue) => number) =>
    queues.reduce((all, queue) => all + of(queue), 0).toLocaleString('en-US');
  const oldest_s = Math.max(...queues.map((queue) => queue.oldest_s ?? 0));
  return (
    <Card>
      <SimpleGrid cols={{ base: 2, sm: 4 }}>
        <Figure name="Waiting" value={sum(({ waiting }) => waiting)} note="due, and not taken yet" />
        <Figure name="Running" value={sum(({ active }) => active)} />
        <Figure
          name="Scheduled"
          value={sum(({ deferred }) => deferred)}
          note="not due yet: polls, retries, scheduled jobs"
        />
        <Figure name="Oldest waiting" value={oldest_s > 0 ? durationText(oldest_s * 1000) : '–'} />
      </SimpleGrid>
    </Card>
  );
}

function QueueTable({ queues }: { queues: readonly Queue[] }) {
  return (
    <ListTable
      caption="Jobs by queue"
      columns={[
        { name: 'Queue' },
        { name: 'Waiting', align: 'right' },
        { name: 'Running', align: 'right' },
        { name: 'Scheduled', align: 'right' },
        { name: 'Oldest waiting', align: 'right' },
      ]}
    >
      {queues.map(({ name, waiting, active, deferred, oldest_s }) => (
        <Table.Tr key={name}>
          <Table.Td>
            <Code>{name}</Code>
          </Table.Td>
          {[waiting, active, deferred].map((count, index) => (
            <Table.Td key={index} ta="right" className="figure">
              {count === 0 ? (
                <Text span inherit c="dimmed">
                  0
                </Text>
              ) : (
                count.toLocaleString('en-US')
              )}
            </Table.Td>
          ))}
          <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
            {oldest_s === null ? '–' : durationText(oldest_s * 1000)}
          </Table.Td>
        </Table.Tr>
      ))}
    </ListTable>
  );
}
