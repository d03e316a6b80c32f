import { Anchor, Badge, Button, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { ChatLineView, Page } from '../../../../src/dashboard/views/activity.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { durationText, Time } from '../../ui/Time.tsx';
import type { ActivitySearch } from './search.ts';
import { momentsOf, useChoices } from './filters.ts';

const outcomes = [
  { value: 'ok', label: 'Answered' },
  { value: 'failed', label: 'Failed' },
];

const columns = [
  { name: 'Time' },
  { name: 'Model' },
  { name: 'Status' },
  { name: 'Input', align: 'right' },
  { name: 'Output', align: 'right' },
  { name: 'First words', align: 'right' },
  { name: 'Took', align: 'right' },
  { name: 'Key' },
  { name: 'Cost', align: 'right' },
] as const;

type Props = { search: ActivitySearch; set: (change: ActivitySearch) => void };

/** Numbers of chat calls; what was said is not kept. */
export function Chats({ search, set }: Props) {
  const { account, base } = usePlace();
  const { outcome, model, key, from, to } = search;
  const filter = { outcome, model, key, ...momentsOf({ from, to }) };
  const query = useInfiniteQuery({
    queryKey: [account.id, 'chats', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<ChatLineView>>(`${base}/chats${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<ChatLineView>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: 10_000,
  });
  const choices = useChoices();
  const isFiltered = [outcome, model, key, from, to].some((value) => value !== undefined);
  return (
    <Stack>
      <Filters
        isFiltered={isFiltered}
        clear={() => set({ outcome: undefined, model: undefined, key: undefined, from: undefined, to: undefined })}
      >
        <ChoiceFilter
          label="Outcome"
          value={outcome}
          data={outcomes}
          onChange={(value) => set({ outcome: value })}
          width={140}
        />
        <ChoiceFilter
          label="Model"
          value={model}
          data={choices.models}
          onChange={(value) => set({ model: value })}
          width={220}
        />
        <ChoiceFilter label="Key" value={key} data={choices.keys} onChange={(value) => set({ key: value })} />
        <DayFilter label="From (UTC)" value={from} onChange={(value) => set({ from: value })} />
        <DayFilter label="To (UTC)" value={to} onChange={(value) => set({ to: value })} />
      </Filters>
      <Pages query={query} empty={<NoCalls isFiltered={isFiltered} />}>
        {(calls) => (
          <ListTable caption="Chat calls, newest first" columns={columns}>
            {calls.map((call) => (
              <CallRow key={call.id} call={call} />
            ))}
          </ListTable>
        )}
      </Pages>
    </Stack>
  );
}

function CallRow({ call }: { call: ChatLineView }) {
  const { id, model, style, stream, status, error_type, finish, key, cost } = call;
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Anchor component={Link} to={`/chats/${id}`} size="sm">
          <Time at={call.created_at} ago />
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{model}</Text>
        <Text size="xs" c="dimmed">
          {style}
          {stream ? ', streamed' : ''}
        </Text>
      </Table.Td>
      <Table.Td>
        {status < 400 ? (
          <Status of="succeeded" label={finish ?? 'answered'} />
        ) : (
          <Status of="failed" label={error_type ?? String(status)} />
        )}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {call.input_tokens.toLocaleString()}
        {call.cached_input_tokens > 0 && (
          <Badge ml={4} size="xs" variant="light" color="teal" tt="none">
            {call.cached_input_tokens.toLocaleString()} cached
          </Badge>
        )}
      </Table.Td>
      <Table.Td ta="right" className="figure">
        {call.output_tokens.toLocaleString()}
      </Table.Td>
      <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
        {call.first_content_ms === null ? '–' : durationText(call.first_content_ms)}
      </Table.Td>
      <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
        {durationText(call.total_ms)}
      </Table.Td>
      <Table.Td>
        <Text size="sm" truncate maw={120}>
          {key.name}
        </Text>
      </Table.Td>
      <Table.Td ta="right">
        <Money cost={cost} exact />
      </Table.Td>
    </Table.Tr>
  );
}

function NoCalls({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="Nothing fits these filters">Take one of them away.</Empty>;
  return (
    <Empty
      title="No chat calls yet"
      action={
        <Button component={Link} to="/playground">
          Open the playground
        </Button>
      }
    >
      Point an OpenAI-style SDK at <code>/v1</code>, or an Anthropic-style one at this address.
    </Empty>
  );
}
