import { Alert, Group, SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { ChatView } from '../../../../src/dashboard/views/activity.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChargeCard } from '../../ui/ChargeCard.tsx';
import { durationText } from '../../ui/duration.ts';
import { FeedbackCard } from '../../ui/Feedback.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { CallStatus, Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { Trail } from '../../ui/Trail.tsx';
import { Labels } from '../activity/Labels.tsx';
import { CallContent } from './CallContent.tsx';

const route = getRouteApi('/signed-in/chats/$id');

/** One chat call in numbers, and what was said, where its key stores that. */
export function ChatPage() {
  const { id } = route.useParams();
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'chat', id],
    queryFn: ({ signal }) => api.get<ChatView>(`${base}/chats/${encodeURIComponent(id)}`, { signal }),
  });
  return (
    <Page title="Chat call" about={<Trail list="Activity" href="/activity?tab=chats" id={id} />}>
      <Loaded query={query} height={320}>
        {(call) => (
          <Stack gap="lg">
            <Whole call={call} />
            <ChargeCard charge={call.charge} />
            <CallContent call={call} />
            <FeedbackCard id={call.id} feedback={call.feedback} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

function Whole({ call }: { call: ChatView }) {
  const ok = call.status < 400;
  const reason = ok ? call.finish : call.error_type;
  return (
    <Stack gap="lg">
      <Card title={call.model} side={<CallStatus status={call.status} />}>
        <SimpleGrid cols={{ base: 2, sm: 4 }}>
          <Figure
            name="Cost"
            value={<Money cost={call.cost} exact />}
            {...(call.counted_here && { note: 'counted here: the provider reported no usage' })}
          />
          {call.search_units !== null && <Figure name="Search units" value={call.search_units.toLocaleString('en')} />}
          <Figure
            name="Input tokens"
            value={call.input_tokens.toLocaleString('en')}
            note={`${call.cached_input_tokens.toLocaleString('en')} cached`}
          />
          <Figure
            name="Output tokens"
            value={call.output_tokens.toLocaleString('en')}
            note={`${call.reasoning_tokens.toLocaleString('en')} of them reasoning`}
          />
          <Figure
            name="First token"
            value={call.first_content_ms === null ? '–' : durationText(call.first_content_ms)}
            note={`${durationText(call.total_ms)} in total`}
          />
        </SimpleGrid>
        <Group gap="lg" mt="md">
          <Text size="sm" c="dimmed">
            <Time at={call.created_at} />, {call.style}
            {call.stream ? ', streamed' : ''}, key {call.key.name}, answered {call.status}
            {reason !== null && `: ${reason}`}
          </Text>
          <Group gap="xs">
            <Labels of={call} error={call.error_type} />
          </Group>
        </Group>
        <Problem call={call} />
      </Card>
      <Routes attempts={call.attempts} />
    </Stack>
  );
}

function Routes({ attempts }: Pick<ChatView, 'attempts'>) {
  return (
    <Card title="Routes">
      <ListTable
        caption="Routes that were tried"
        columns={[{ name: 'Route' }, { name: 'Outcome' }, { name: 'Took', align: 'right' }]}
      >
        {attempts.map((attempt, index) => (
          <Table.Tr key={index}>
            <Table.Td>
              {attempt.route ?? `Route ${index + 1}`}
              {attempt.model !== undefined && (
                <Text size="xs" c="dimmed">
                  {attempt.model}
                </Text>
              )}
            </Table.Td>
            <Table.Td>
              {attempt.outcome === 'answered' ? <Status of="succeeded" label="Answered" /> : <Status of="failed" />}
              <ChosenBy why={attempt.why} />
              {attempt.upstream_id !== undefined && (
                <Text size="xs" c="dimmed">
                  The upstream’s id: <span className="figure">{attempt.upstream_id}</span>
                </Text>
              )}
              {attempt.reason !== undefined && (
                <Text size="xs" c="dimmed">
                  {attempt.reason}
                </Text>
              )}
            </Table.Td>
            <Table.Td ta="right" className="figure">
              {attempt.duration_ms === undefined ? '–' : durationText(attempt.duration_ms)}
            </Table.Td>
          </Table.Tr>
        ))}
      </ListTable>
    </Card>
  );
}

/** The message of the error that its caller got. */
function Problem({ call: { status, error_message } }: { call: ChatView }) {
  if (status === 499) {
    return (
      <Text size="sm" mt="sm">
        Its caller closed the connection before the answer was complete.
      </Text>
    );
  }
  if (error_message === null) return null;
  return (
    <Alert mt="sm" color="red" title="The error that its caller got">
      <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
        {error_message}
      </Text>
    </Alert>
  );
}

/** The reason why a route was asked, where it is not the order of the operator. */
function ChosenBy({ why = 'default' }: { why: string | undefined }) {
  if (why === 'default') return null;
  return (
    <Text size="xs" c="dimmed">
      Chosen by {why}
    </Text>
  );
}
