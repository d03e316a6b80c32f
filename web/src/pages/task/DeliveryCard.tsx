import { Code, Group, Stack, Text } from '@mantine/core';
import type { TaskView } from '../../../../src/dashboard/views/activity.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Card } from '../../ui/Page.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';

/** The webhook of a task, with each of its attempts; answers are shown as text, never as a page. */
export function DeliveryCard({ delivery }: { delivery: NonNullable<TaskView['delivery']> }) {
  const { account } = usePlace();
  return (
    <Card title="Webhook" side={<Status of={delivery.state === 'waiting' ? 'pending' : delivery.state} />}>
      <Stack gap="xs">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {delivery.event} to {delivery.url}
        </Text>
        {delivery.next_at !== null && (
          <Text size="sm" c="dimmed">
            Next attempt <Time at={delivery.next_at} />
          </Text>
        )}
        {delivery.attempt_log.map((each) => (
          <div key={each.number}>
            <Group gap="xs">
              <Text size="sm" fw={600}>
                Attempt {each.number}
              </Text>
              <Text size="sm">{each.status ?? each.error ?? 'no response'}</Text>
              <Text size="sm" c="dimmed">
                {each.duration_ms} ms, <Time at={each.started_at} />
              </Text>
            </Group>
            {each.answer !== null && each.answer !== '' && (
              <Code block mah={120} style={{ overflow: 'auto' }}>
                {each.answer}
              </Code>
            )}
          </div>
        ))}
        {!account.is_limited && (
          <LinkTo href={`/webhooks/${delivery.id}`} size="sm">
            Show details or send it again
          </LinkTo>
        )}
      </Stack>
    </Card>
  );
}
