import { Button, Center, Group, Loader, SimpleGrid, Stack, Text } from '@mantine/core';
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { TaskView } from '../../../../src/dashboard/views/activity.ts';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { fileText, Viewer } from '../../ui/Media.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card, Figure } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { durationText, useNow } from '../../ui/Time.tsx';

/** What became of the run: it goes on when one leaves the page, and its task stays. */
export function Result({ id, model }: { id: string | undefined; model: ModelView }) {
  if (id === undefined) {
    return (
      <Card title="Result">
        <Center mih={220} style={{ border: '1px dashed var(--medley-line)', borderRadius: 8 }}>
          <Text c="dimmed" ta="center" maw={320} p="md">
            What {model.display_name} makes appears here, with what it really cost.
          </Text>
        </Center>
      </Card>
    );
  }
  return <TaskResult id={id} />;
}

function TaskResult({ id }: { id: string }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: [account.id, 'task', id],
    queryFn: ({ signal }) => api.get<TaskView>(`${base}/tasks/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => (state.data && state.data.completed_at !== null ? false : 700),
  });
  const is_final = query.data?.completed_at != null;
  useEffect(() => {
    if (is_final) void queries.invalidateQueries({ queryKey: [account.id, 'balance'] });
  }, [is_final, queries, account.id]);
  return (
    <Card title="Result" {...(query.data && { aside: <Status of={query.data.status} /> })}>
      <div aria-live="polite">
        <Loaded query={query} height={280}>
          {(task) => <Shown task={task} />}
        </Loaded>
      </div>
    </Card>
  );
}

function Shown({ task }: { task: TaskView }) {
  const { files, error, model, completed_at } = task;
  return (
    <Stack>
      {completed_at === null && <Running task={task} />}
      {error && (
        <div>
          <Text fw={600}>{error.message}</Text>
          <Text size="sm" c="dimmed">
            It costs nothing.
          </Text>
        </div>
      )}
      <SimpleGrid cols={files.length > 1 ? 2 : 1}>
        {files.map((file, index) => (
          <div key={file.url ?? index}>
            <Viewer file={file} label={`Result ${index + 1} of ${model}`} />
            <Group justify="space-between" mt={4} gap={4}>
              <Text size="xs" c="dimmed">
                {fileText(file)}
              </Text>
              {file.url !== undefined && (
                <Button
                  component="a"
                  href={file.url}
                  download
                  size="compact-xs"
                  variant="subtle"
                  leftSection={<ArrowDownTrayIcon width={14} aria-hidden />}
                >
                  Download
                </Button>
              )}
            </Group>
          </div>
        ))}
      </SimpleGrid>
      <Facts task={task} />
    </Stack>
  );
}

function Running({ task }: { task: TaskView }) {
  const { base, account, may } = usePlace();
  const queries = useQueryClient();
  const now_ms = useNow(500);
  const cancel = useMutation({
    mutationFn: () => api.post(`${base}/tasks/${task.id}/cancel`),
    onSettled: () => queries.invalidateQueries({ queryKey: [account.id, 'task', task.id] }),
  });
  const latest = task.story.at(-1);
  const elapsed_ms = Math.max(0, now_ms - Date.parse(task.created_at));
  return (
    <Stack align="flex-start">
      <Group gap="sm">
        <Loader size="sm" aria-hidden />
        <Text>{task.status === 'queued' ? 'Waiting for a route' : 'Running'}</Text>
        <Text c="dimmed" className="figure" aria-live="off">
          {durationText(elapsed_ms)}
        </Text>
      </Group>
      {latest && (
        <Text size="sm" c="dimmed">
          {latest.title}
          {latest.detail !== undefined && `: ${latest.detail}`}
        </Text>
      )}
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
  const { id, cost, estimated_cost, released, completed_at, created_at } = task;
  const took_ms = completed_at === null ? undefined : Date.parse(completed_at) - Date.parse(created_at);
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 2, xs: 4 }}>
        <Figure name="Held" value={<Money cost={estimated_cost} exact />} />
        <Figure name="Cost" value={completed_at === null ? '–' : <Money cost={cost} exact />} />
        <Figure name="Released" value={released ? <Money cost={released} exact /> : '–'} />
        <Figure name="Took" value={took_ms === undefined ? '–' : durationText(took_ms)} />
      </SimpleGrid>
      <LinkTo href={`/tasks/${id}`} size="sm">
        The whole story of this task
      </LinkTo>
    </Stack>
  );
}
