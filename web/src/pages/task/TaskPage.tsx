import {
  Anchor,
  Badge,
  Breadcrumbs,
  Button,
  Divider,
  Grid,
  Group,
  SimpleGrid,
  Stack,
  Tabs,
  Text,
  Timeline,
} from '@mantine/core';
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import type { Moment, TaskView } from '../../../../src/dashboard/views/activity.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { CodeBox, Id } from '../../ui/Copy.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { fileText, Viewer } from '../../ui/Media.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { durationText, Time, useNow } from '../../ui/Time.tsx';
import { DeliveryCard } from './DeliveryCard.tsx';

const route = getRouteApi('/signed-in/tasks/$id');

/** One task: what came out, what it cost, and everything that happened to it in one line of time. */
export function TaskPage() {
  const { id } = route.useParams();
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'task', id],
    queryFn: ({ signal }) => api.get<TaskView>(`${base}/tasks/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => {
      const task = state.data;
      if (!task || task.completed_at === null) return 1_500;
      return task.delivery && ['waiting', 'retrying'].includes(task.delivery.state) ? 5_000 : false;
    },
  });
  return (
    <Page
      title="Task"
      about={
        <Breadcrumbs mt={4}>
          <Anchor component={Link} to="/activity" size="sm">
            Activity
          </Anchor>
          <Id id={id} />
        </Breadcrumbs>
      }
    >
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
          <Results task={task} />
          <Texts task={task} />
        </Stack>
      </Grid.Col>
      <Grid.Col span={{ base: 12, md: 5 }}>
        <Stack gap="lg">
          <Facts task={task} />
          <Card title="What happened">
            <Story story={task.story} />
          </Card>
          {task.delivery && <DeliveryCard delivery={task.delivery} />}
        </Stack>
      </Grid.Col>
    </Grid>
  );
}

function Results({ task }: { task: TaskView }) {
  const { files, status, error } = task;
  return (
    <Card title={files.length > 1 ? `${files.length} results` : 'Result'} aside={<Status of={status} />}>
      <div aria-live="polite">
        {task.completed_at === null && <Waiting task={task} />}
        {error && (
          <Stack gap={4}>
            <Text fw={600}>{error.message}</Text>
            <Text size="sm" c="dimmed">
              {advice[error.type] ?? 'It costs nothing.'}
            </Text>
          </Stack>
        )}
        <Stack>
          {files.map((file, index) => (
            <div key={file.url ?? index}>
              <Viewer file={file} label={`Result ${index + 1} of ${task.model}`} />
              <Group justify="space-between" mt="xs">
                <Text size="sm" c="dimmed">
                  {fileText(file)}
                </Text>
                {file.url !== undefined && (
                  <Button
                    component="a"
                    href={file.url}
                    download
                    size="xs"
                    variant="light"
                    leftSection={<ArrowDownTrayIcon width={16} aria-hidden />}
                  >
                    Download
                  </Button>
                )}
              </Group>
            </div>
          ))}
        </Stack>
      </div>
    </Card>
  );
}

const advice: Record<string, string> = {
  upstream_error: 'The model provider failed. It costs nothing; try again, or another model.',
  timeout: 'It took too long and was stopped. It costs nothing.',
  content_policy_violation: 'The provider refuses this content. It costs nothing; change the prompt.',
  invalid_request: 'The provider did not accept the input. It costs nothing; change it.',
  canceled: 'It was canceled, and costs nothing.',
  internal_error: 'The fault was ours. It costs nothing.',
};

function Waiting({ task }: { task: TaskView }) {
  const { base, account, may } = usePlace();
  const queries = useQueryClient();
  const now_ms = useNow(1_000);
  const cancel = useMutation({
    mutationFn: () => api.post(`${base}/tasks/${task.id}/cancel`),
    onSettled: () => queries.invalidateQueries({ queryKey: [account.id, 'task', task.id] }),
  });
  return (
    <Stack align="flex-start">
      <Text>
        {task.status === 'queued' ? 'Waiting for a route' : 'Running'} for{' '}
        {durationText(now_ms - Date.parse(task.created_at))}.
      </Text>
      {cancel.error && <Failed error={cancel.error} />}
      {may('run') && (
        <Button variant="light" color="red" size="xs" onClick={() => cancel.mutate()} loading={cancel.isPending}>
          Cancel
        </Button>
      )}
    </Stack>
  );
}

function Facts({ task }: { task: TaskView }) {
  const { cost, estimated_cost, released, started_at, completed_at, created_at } = task;
  const took = completed_at === null ? undefined : Date.parse(completed_at) - Date.parse(created_at);
  const run =
    completed_at === null || started_at === null ? undefined : Date.parse(completed_at) - Date.parse(started_at);
  return (
    <Card title="Money and time">
      <SimpleGrid cols={3}>
        <Figure name="Held" value={<Money cost={estimated_cost} exact />} />
        <Figure name="Cost" value={<Money cost={cost} exact />} />
        <Figure name="Released" value={released ? <Money cost={released} exact /> : '–'} />
        <Figure
          name="Took"
          value={took === undefined ? '–' : durationText(took)}
          {...(run !== undefined && { note: `${durationText(run)} of it running` })}
        />
        <Figure
          name="Created"
          value={
            <Text fz="sm">
              <Time at={created_at} />
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
    </Card>
  );
}

const tones = { plain: 'gray', good: 'teal', bad: 'red', waiting: 'blue' };

function Story({ story }: { story: Moment[] }) {
  const first_ms = Date.parse(story[0]?.at ?? '');
  return (
    <Timeline active={story.length} bulletSize={14} lineWidth={2}>
      {story.map(({ at, kind, title, detail, tone }, index) => (
        <Timeline.Item
          key={`${at} ${kind} ${index}`}
          color={tones[tone]}
          title={
            <Text size="sm" fw={600}>
              {title}
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
  const curl = `curl -sS '${me.base_url}/v1/tasks/${task.id}' -H "Authorization: Bearer $KEY"`;
  return (
    <Card>
      <Tabs defaultValue="input">
        <Tabs.List mb="sm">
          <Tabs.Tab value="input">Input</Tabs.Tab>
          <Tabs.Tab value="body">Task as the API answers it</Tabs.Tab>
          <Tabs.Tab value="curl">curl</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="input">
          <CodeBox text={pretty(task.input)} label="input" />
        </Tabs.Panel>
        <Tabs.Panel value="body">
          <CodeBox text={pretty(task.body)} label="task" />
        </Tabs.Panel>
        <Tabs.Panel value="curl">
          <CodeBox text={curl} label="command" />
        </Tabs.Panel>
      </Tabs>
    </Card>
  );
}

function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), undefined, 2);
  } catch {
    return text;
  }
}
