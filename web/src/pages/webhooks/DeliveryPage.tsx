import { Code, Group, Spoiler, Stack, Tabs, Text } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import type { DeliveryDetailView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { durationText } from '../../ui/duration.ts';
import { formattedJson } from '../../ui/json.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Card, Page } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { Trail } from '../../ui/Trail.tsx';
import { useWebhooks } from './Webhooks.tsx';

const route = getRouteApi('/signed-in/webhooks/$id');

/** One delivery: what is sent, and how each attempt was answered. */
export function DeliveryPage() {
  const { id } = route.useParams();
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: [account.id, 'delivery', id],
    queryFn: ({ signal }) => api.get<DeliveryDetailView>(`${base}/deliveries/${id}`, { signal }),
    refetchInterval: ({ state }) => (state.data?.next_at ? 2_000 : 15_000),
  });
  const resend = useMutation({
    mutationFn: () => api.post(`${base}/deliveries/${id}/resend`),
    onSuccess: async () => {
      notifications.show({ message: 'It is being sent again.' });
      await queries.invalidateQueries({ queryKey: [account.id, 'delivery', id] });
    },
  });
  return (
    <Page
      title="Webhook delivery"
      about={<Trail list="Webhooks" href="/webhooks" id={id} />}
      actions={
        query.data && (
          <MayButton right="webhooks" loading={resend.isPending} onClick={() => resend.mutate()}>
            Send again
          </MayButton>
        )
      }
    >
      {resend.error && <Failed error={resend.error} />}
      <Loaded query={query} height={400}>
        {(delivery) => (
          <>
            <Facts delivery={delivery} />
            <Card title="Attempts">
              {delivery.attempt_log.length === 0 ? (
                <Text size="sm" c="dimmed">
                  None yet.
                </Text>
              ) : (
                <Stack>
                  {delivery.attempt_log.toReversed().map((each) => (
                    <Attempt key={each.number} attempt={each} />
                  ))}
                </Stack>
              )}
            </Card>
            <Payload body={delivery.body} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Facts({ delivery }: { delivery: DeliveryDetailView }) {
  const { event, url, state, attempts, next_at, created_at, task_id, is_test } = delivery;
  const attempts_max = useWebhooks().data?.attempts_max;
  const all = !is_test && attempts_max !== undefined && attempts <= attempts_max ? attempts_max : undefined;
  return (
    <Card title={event} side={<Status of={state === 'waiting' ? 'pending' : state} />}>
      <Stack gap={4}>
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          To {url}
        </Text>
        <Text size="sm">
          Created <Time at={created_at} />
          {task_id !== null ? ', when ' : is_test ? ', as a test' : event.startsWith('alert.') ? ', for an alert' : ''}
          {task_id !== null && (
            <>
              <LinkTo href={`/tasks/${task_id}`} size="sm" underline="always">
                its task
              </LinkTo>{' '}
              ended
            </>
          )}
          .
        </Text>
        <Text size="sm">
          {attempts}
          {all !== undefined && ` of ${all}`} {(all ?? attempts) === 1 ? 'attempt' : 'attempts'} made
          {next_at === null ? (
            '.'
          ) : (
            <>
              ; the next <Time at={next_at} ago />.
            </>
          )}
        </Text>
      </Stack>
    </Card>
  );
}

/** The signature is of the bytes as sent; people read it with line breaks. */
function Payload({ body }: { body: string }) {
  return (
    <Card title="Payload">
      <Tabs defaultValue="read">
        <Tabs.List mb="sm">
          <Tabs.Tab value="read">Formatted</Tabs.Tab>
          <Tabs.Tab value="sent">As sent</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="read">
          <CodeBox text={formattedJson(body)} label="payload" />
        </Tabs.Panel>
        <Tabs.Panel value="sent">
          <CodeBox text={body} label="payload as sent" />
        </Tabs.Panel>
      </Tabs>
    </Card>
  );
}

type AttemptView = DeliveryDetailView['attempt_log'][number];

function RequestHeaders({ attempt: { number, request_headers } }: { attempt: AttemptView }) {
  const text = Object.entries(request_headers)
    .map(([name, value]) => `${name}: ${value}`)
    .join('\n');
  return (
    <Spoiler maxHeight={0} showLabel={`Request headers of attempt ${number}`} hideLabel="Hide the headers">
      <Code block tabIndex={0} aria-label={`Request headers of attempt ${number}`}>
        {text}
      </Code>
      <Text size="xs" c="dimmed" mt={4}>
        Signatures are not shown. The headers of the answer are not stored.
      </Text>
    </Spoiler>
  );
}

function Attempt({ attempt }: { attempt: AttemptView }) {
  const { number, status, error, started_at, duration_ms, answer } = attempt;
  const good = status !== null && status >= 200 && status < 300;
  return (
    <Stack gap={6}>
      <Group gap="xs">
        <Text size="sm" fw={600}>
          Attempt {number}
        </Text>
        <Status of={good ? 'delivered' : 'failed'} label={status === null ? 'No response' : `Answered ${status}`} />
        <Text size="sm" c="dimmed">
          <Time at={started_at} />, {durationText(duration_ms)}
        </Text>
      </Group>
      {error !== null && <Text size="sm">{error}</Text>}
      {answer !== null && answer !== '' && (
        <Code block mah={160} style={{ overflow: 'auto' }} tabIndex={0} aria-label={`Answer to attempt ${number}`}>
          {formattedJson(answer)}
        </Code>
      )}
      <RequestHeaders attempt={attempt} />
    </Stack>
  );
}
