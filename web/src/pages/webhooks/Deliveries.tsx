import { Anchor, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Page } from '../../../../src/dashboard/views/activity.ts';
import type { DeliveryLineView } from '../../../../src/dashboard/views/webhooks.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';

const states = [
  { value: 'waiting', label: 'Pending' },
  { value: 'retrying', label: 'Retrying' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'dropped', label: 'Dropped' },
];

type Props = { state: string | undefined; set: (state: string | undefined) => void; attempts_max: number | undefined };

export function Deliveries({ state, set, attempts_max }: Props) {
  const { account, base } = usePlace();
  const query = useInfiniteQuery({
    queryKey: [account.id, 'deliveries', { state }],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<DeliveryLineView>>(`${base}/deliveries${queryOf({ state, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<DeliveryLineView>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 10_000,
  });
  return (
    <Stack>
      <Filters isFiltered={state !== undefined} clear={() => set(undefined)}>
        <ChoiceFilter label="Status" value={state} data={states} onChange={set} />
      </Filters>
      <Pages query={query} empty={<NoDeliveries isFiltered={state !== undefined} />}>
        {(deliveries) => (
          <ListTable
            caption="Webhook deliveries, newest first"
            columns={[
              { name: 'Created' },
              { name: 'Event' },
              { name: 'Address', main: true },
              { name: 'Status' },
              { name: 'Attempts', align: 'right' },
              { name: 'Last response' },
              { name: 'Task' },
            ]}
          >
            {deliveries.map((delivery) => (
              <Row key={delivery.id} delivery={delivery} attempts_max={attempts_max} />
            ))}
          </ListTable>
        )}
      </Pages>
    </Stack>
  );
}

/** Tells whether a delivery was sent by hand, as a test: once. */
export function isTest({ task_id, event }: Pick<DeliveryLineView, 'task_id' | 'event'>): boolean {
  return task_id === null && (event.startsWith('task.') || event === 'alert.test');
}

function Row({ delivery, attempts_max }: { delivery: DeliveryLineView; attempts_max: number | undefined }) {
  const { id, event, url, state, attempts, next_at, created_at, task_id, last_status, last_error } = delivery;
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Anchor component={Link} to={`/webhooks/${id}`} size="sm">
          <Time at={created_at} ago />
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{event}</Text>
      </Table.Td>
      <Table.Td maw={280}>
        <Text size="sm" lineClamp={2} title={url} style={{ overflowWrap: 'anywhere' }}>
          {url}
        </Text>
      </Table.Td>
      <Table.Td>
        <Status of={state === 'waiting' ? 'pending' : state} />
        {state === 'retrying' && next_at !== null && (
          <Text size="xs" c="dimmed" style={{ whiteSpace: 'nowrap' }}>
            next <Time at={next_at} ago />
          </Text>
        )}
      </Table.Td>
      <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
        {attempts}
        {!isTest(delivery) && attempts_max !== undefined && attempts <= attempts_max && `/${attempts_max}`}
      </Table.Td>
      <Table.Td maw={180}>
        <Text size="sm" truncate title={last_error ?? undefined}>
          {last_status ?? last_error ?? '–'}
        </Text>
      </Table.Td>
      <Table.Td>
        {task_id === null ? (
          <Text size="sm" c="dimmed">
            {isTest(delivery) ? 'test' : 'alert'}
          </Text>
        ) : (
          <LinkTo href={`/tasks/${task_id}`} size="sm">
            Task
          </LinkTo>
        )}
      </Table.Td>
    </Table.Tr>
  );
}

function NoDeliveries({ isFiltered }: { isFiltered: boolean }) {
  const { me } = usePlace();
  if (isFiltered) return <Empty title="Nothing matches this filter">Clear it to see all deliveries.</Empty>;
  const curl = `curl -sS '${me.base_url}/v1/generate' \\
  -H "Authorization: Bearer $MEDLEY_API_KEY" -H 'Content-Type: application/json' \\
  -d '{"model":"sandbox/image","input":{"prompt":"A red bicycle"},
       "webhook_url":"https://example.com/hook"}'`;
  return (
    <Empty title="No deliveries yet" action={<ButtonTo href="/webhooks?tab=setup">Send a test</ButtonTo>}>
      <Stack>
        <Text inherit>
          Pass <code>webhook_url</code> when you create a task. To test on your own machine, use a tunnel, or run{' '}
          <code>medley webhook listen</code>.
        </Text>
        <div style={{ textAlign: 'left' }}>
          <CodeBox text={curl} label="command" />
        </div>
      </Stack>
    </Empty>
  );
}
