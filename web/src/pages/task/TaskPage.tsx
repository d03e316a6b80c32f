import { Anchor, Badge, Divider, Grid, Group, SimpleGrid, Stack, Tabs, Text, Timeline } from '@mantine/core';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Moment, TaskView } from '../../../../src/dashboard/views/activity.ts';
import { usePlace } from '../../session.tsx';
import { ChargeCard } from '../../ui/ChargeCard.tsx';
import { CodeBox } from '../../ui/Copy.tsx';
import { durationText } from '../../ui/duration.ts';
import { FeedbackCard } from '../../ui/Feedback.tsx';
import { formattedJson } from '../../ui/json.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { MoneyFigures, ResultCard, useTask } from '../../ui/TaskResult.tsx';
import { Time } from '../../ui/Time.tsx';
import { Trail } from '../../ui/Trail.tsx';
import { Labels } from '../activity/Labels.tsx';
import { DeliveryCard } from './DeliveryCard.tsx';
import { momentTitle } from './moments.ts';

const route = getRouteApi('/signed-in/tasks/$id');

/** One task: what came out, what it cost, and everything that happened to it in one line of time. */
export function TaskPage() {
  const { id } = route.useParams();
  const query = useTask(id);
  return (
    <Page title="Task" about={<Trail list="Activity" href="/activity" id={id} />}>
      <Loaded query={query} height={420}>
        {(task) => <Whole task={task} />}
      </Loaded>
    </Page>
  );
}

function Whole({ task }: { task: TaskView }) {
  return (
    <Grid gap="lg">
      <Grid.Col span={{ base: 12, md: 7 }}>
        <Stack gap="lg">
          <ResultCard task={task} />
          <Texts task={task} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Stack gap="lg">
          <Facts task={task} />
          <ChargeCard charge={task.charge} />
          <FeedbackCard id={task.id} feedback={task.feedback} />
          <Card title="Timeline">
            <TaskTimeline moments={task.timeline} />
          </Card>
          {task.delivery && <DeliveryCard delivery={task.delivery} />}
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

function Facts({ task }: { task: TaskView }) {
  return (
    <Card title="Money and time">
      <SimpleGrid cols={3}>
        <MoneyFigures task={task} />
        <Figure
          name="Created"
          value={
            <Text fz="sm">
              <Time at={task.created_at} />
            </Text>
          }
        />
        <Figure
          name="Key"
          value={
            <Text fz="sm" truncate>
              {task.key.name}
            </Text>
          }
        />
      </SimpleGrid>
      <Divider my="sm" />
      <Group gap="xs">
        <Badge variant="light" tt="none">
          {task.kind}
        </Badge>
        <Anchor component={Link} to={`/models/${task.model}`} size="sm">
          {task.model}
        </Anchor>
        <LinkTo href={`/playground?task=${task.id}`} size="sm" ml="auto">
          Run again
        </LinkTo>
      </Group>
      <Group gap="xs" mt="sm">
        <Labels of={task} error={task.error?.type} />
      </Group>
    </Card>
  );
}

const tones = { plain: 'gray', good: 'teal', bad: 'red', waiting: 'blue' };

function TaskTimeline({ moments }: { moments: Moment[] }) {
  const first_ms = Date.parse(moments[0]?.at ?? '');
  return (
    <Timeline active={moments.length} bulletSize={14} lineWidth={2} className="story">
      {moments.map(({ at, kind, title, detail, tone }, index) => (
        <Timeline.Item
          key={`${at} ${kind} ${index}`}
          color={tones[tone]}
          title={
            <Text size="sm" fw={600}>
              {momentTitle({ title })}
            </Text>
          }
        >
          {detail !== undefined && <Text size="sm">{detail}</Text>}
          <Text size="xs" c="dimmed">
            {index === 0 ? <Time at={at} /> : `+${durationText(Date.parse(at) - first_ms)}`}
          </Text>
        </Timeline.Item>
      ))}
    </Timeline>
  );
}

function Texts({ task }: { task: TaskView }) {
  const { me } = usePlace();
  const curl = `curl -sS '${me.base_url}/v1/tasks/${task.id}' -H "Authorization: Bearer $MEDLEY_API_KEY"`;
  return (
    <Card>
      <Tabs defaultValue="input">
        <Tabs.List mb="sm">
          <Tabs.Tab value="input">Input</Tabs.Tab>
          <Tabs.Tab value="body">Task (JSON)</Tabs.Tab>
          <Tabs.Tab value="curl">curl</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="input">
          <CodeBox text={formattedJson(task.input)} label="input" />
        </Tabs.Panel>
        <Tabs.Panel value="body">
          <CodeBox text={formattedJson(task.body)} label="task" />
        </Tabs.Panel>
        <Tabs.Panel value="curl">
          <CodeBox text={curl} label="command" />
        </Tabs.Panel>
      </Tabs>
    </Card>
  );
}
