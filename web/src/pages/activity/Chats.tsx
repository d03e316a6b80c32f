import { Anchor, Badge, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { ChatLineView } from '../../../../src/dashboard/views/activity.ts';
import { Money } from '../../ui/Money.tsx';
import { Status } from '../../ui/Status.tsx';
import { durationText, Time } from '../../ui/Time.tsx';
import { ActivityList, type ListProps } from './ActivityList.tsx';

const outcomes = [
  { value: 'ok', label: 'Answered' },
  { value: 'failed', label: 'Failed' },
];

const columns = [
  { name: 'Time' },
  { name: 'Model, key' },
  { name: 'Status' },
  { name: 'Input', align: 'right' },
  { name: 'Output', align: 'right' },
  { name: 'First token', align: 'right' },
  { name: 'Took', align: 'right' },
  { name: 'Cost', align: 'right' },
] as const;

/** Numbers of chat calls; what was said is not kept. */
export function Chats(props: ListProps) {
  return (
    <ActivityList<ChatLineView>
      {...props}
      path="chats"
      ending={{ name: 'outcome', label: 'Outcome', data: outcomes }}
      caption="Chat calls, newest first"
      columns={columns}
      row={(call) => <CallRow key={call.id} call={call} />}
      refreshAfterMs={() => 10_000}
      none={{
        title: 'No chat calls yet',
        text: (
          <>
            Point an OpenAI-style SDK at <code>/v1</code>, or an Anthropic-style one at this address.
          </>
        ),
      }}
    />
  );
}

function CallRow({ call }: { call: ChatLineView }) {
  const { id, model, style, stream, status, error_type, finish, key, cost } = call;
  const ok = status < 400;
  return (
    <Table.Tr>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Anchor component={Link} to={`/chats/${id}`} size="sm">
          <Time at={call.created_at} ago />
        </Anchor>
      </Table.Td>
      <Table.Td>
        <Text size="sm">{model}</Text>
        <Text size="xs" c="dimmed" truncate maw={240}>
          {style}
          {stream ? ', streamed' : ''}, key {key.name}
        </Text>
      </Table.Td>
      <Table.Td>
        {ok ? <Status of="succeeded" label="Answered" /> : <Status of="failed" />}
        <Text size="xs" c="dimmed">
          {(ok ? finish : error_type) ?? status}
        </Text>
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
      <Table.Td ta="right">
        <Money cost={cost} exact />
      </Table.Td>
    </Table.Tr>
  );
}
