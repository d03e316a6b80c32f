import { Anchor, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Page } from '../../../../src/dashboard/views/activity.ts';
import type { DeliveryLineView, EndpointView } from '../../../../src/dashboard/views/webhooks.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { ChoiceFilter, Filters } from '../../ui/Filters.tsx';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { SearchField } from '../../ui/SearchField.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { endpointName, useEndpoints } from './endpoints-query.ts';
import type { WebhooksSearch } from './search.ts';

const states = [
  { value: 'waiting', label: 'Pending' },
  { value: 'retrying', label: 'Retrying' },
  { value: 'delivered', label: 'Delivered' },
  { value: 'dropped', label: 'Dropped' },
];

type Search = Omit<WebhooksSearch, 'tab'>;

type Props = {
  search: Search;
  set: (change: Search) => void;
  clear: () => void;
  attempts_max: number | undefined;
};

/** A whole id of a task is looked up; anything else is a part of an address. */
function queryFor({ q, ...others }: Search) {
  return q !== undefined && /^task_[0-9a-z]{26}$/.test(q) ? { ...others, task: q } : { ...others, q };
}

export function Deliveries({ search, set, clear, attempts_max }: Props) {
  const { account, base } = usePlace();
  const filters = queryFor(search);
  const query = useInfiniteQuery({
    queryKey: [account.id, 'deliveries', filters],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<DeliveryLineView>>(`${base}/deliveries${queryOf({ ...filters, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<DeliveryLineView>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 10_000,
  });
  const { data: endpoints } = useEndpoints();
  const is_filtered = Object.values(search).some((value) => value !== undefined);
  return (
    <Stack>
      <Filters isFiltered={is_filtered} clear={clear}>
        <SearchField
          label="Task or address"
          placeholder="task_… or a part of the address"
          value={search.q}
          onChange={(q) => set({ q })}
        />
        <ChoiceFilter label="Status" value={search.state} data={states} onChange={(state) => set({ state })} />
        <ChoiceFilter
          label="Event"
          value={search.event}
          data={(endpoints?.events ?? []).map(({ type }) => ({ value: type, label: type }))}
          onChange={(event) => set({ event })}
        />
        {(search.endpoint !== undefined || (endpoints?.data.length ?? 0) > 0) && (
          <ChoiceFilter
            label="Endpoint"
            value={search.endpoint}
            data={choicesOf(endpoints?.data ?? [], search.endpoint)}
            onChange={(endpoint) => set({ endpoint })}
            width={240}
          />
        )}
      </Filters>
      <Pages query={query} empty={<NoDeliveries isFiltered={is_filtered} />}>
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

/** The endpoints by name; one that is gone by its id. */
function choicesOf(endpoints: readonly EndpointView[], chosen: string | undefined) {
  const choices = endpoints.map((endpoint) => ({ value: endpoint.id, label: endpointName(endpoint) }));
  if (chosen === undefined || choices.some(({ value }) => value === chosen)) return choices;
  return [...choices, { value: chosen, label: `${chosen} (deleted)` }];
}

function Row({ delivery, attempts_max }: { delivery: DeliveryLineView; attempts_max: number | undefined }) {
  const { id, event, url, state, attempts, next_at, created_at, task_id, is_test, last_status, last_error } = delivery;
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
        {!is_test && attempts_max !== undefined && attempts <= attempts_max && `/${attempts_max}`}
      </Table.Td>
      <Table.Td maw={180}>
        <Text size="sm" truncate title={last_error ?? undefined}>
          {last_status ?? last_error ?? '–'}
        </Text>
      </Table.Td>
      <Table.Td>
        {task_id === null ? (
          <Text size="sm" c="dimmed">
            {is_test ? 'test' : event.startsWith('alert.') ? 'alert' : '–'}
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
          Pass <code>webhook_url</code> when you create a task. To test on your own machine, use a tunnel, or start the
          service with <code>MEDLEY_ALLOW_PRIVATE=1</code> and run <code>medley webhook listen --port 9000</code>.
        </Text>
        <div style={{ textAlign: 'left' }}>
          <CodeBox text={curl} label="command" />
        </div>
      </Stack>
    </Empty>
  );
}
