import { Button, Group, Loader, SimpleGrid, Stack, Text } from '@mantine/core';
import { ArrowDownTrayIcon } from '@heroicons/react/24/outline';
import { queryOptions, useMutation, useQueries, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { FileView, TaskView } from '../../../src/dashboard/views/activity.ts';
import { api } from '../api.ts';
import { usePlace } from '../session.tsx';
import { durationText } from './duration.ts';
import { fileText, Viewer } from './Media.tsx';
import { Money } from './Money.tsx';
import { Card, Figure } from './Page.tsx';
import { Failed } from './states.tsx';
import { Status } from './Status.tsx';
import { useNow } from './Time.tsx';

/** A task, asked for again for as long as something may change of it. */
export function useTask(id: string | undefined) {
  const { account, base } = usePlace();
  return useQuery(taskQuery(account.id, base, id));
}

/** The same for several at once. */
export function useTasks(ids: readonly string[]): TaskView[] {
  const { account, base } = usePlace();
  const queries = useQueries({ queries: ids.map((id) => taskQuery(account.id, base, id)) });
  return queries.flatMap(({ data }) => data ?? []);
}

function taskQuery(account_id: string, base: string, id: string | undefined) {
  return queryOptions({
    queryKey: [account_id, 'task', id],
    queryFn: ({ signal }) => api.get<TaskView>(`${base}/tasks/${encodeURIComponent(id ?? '')}`, { signal }),
    enabled: id !== undefined,
    refetchInterval: ({ state }) => {
      const task = state.data;
      if (!task) return false; // it is on its way, or there is none
      if (task.completed_at === null) return 700;
      return task.delivery && ['waiting', 'retrying'].includes(task.delivery.state) ? 5_000 : false;
    },
  });
}

/** Cancels tasks; those that have ended meanwhile stay as they are. */
export function useCancel() {
  const { base, account } = usePlace();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (ids: readonly string[]) => Promise.all(ids.map((id) => api.post(`${base}/tasks/${id}/cancel`))),
    onSettled: (_data, _error, ids) => {
      for (const id of ids) void queries.invalidateQueries({ queryKey: [account.id, 'task', id] });
    },
  });
}

/** The card of a run, from waiting for a route to its files or its error. */
export function ResultCard({ task, title, footer }: { task: TaskView; title?: string; footer?: ReactNode }) {
  const { files, status, error, model, completed_at } = task;
  return (
    <Card title={title ?? (files.length > 1 ? `${files.length} results` : 'Result')} side={<Status of={status} />}>
      <Stack>
        <Stack aria-live="polite">
          {completed_at === null && <Running task={task} />}
          {error && (
            <Stack gap={4}>
              <Text fw={600}>{error.message}</Text>
              <Text size="sm" c="dimmed">
                {advice[error.type] ?? 'It costs nothing.'}
              </Text>
            </Stack>
          )}
          <SimpleGrid cols={{ base: 1, sm: files.length > 1 ? 2 : 1 }}>
            {files.map((file, index) => (
              <ResultFile key={file.url ?? index} file={file} label={`Result ${index + 1} of ${model}`} />
            ))}
          </SimpleGrid>
        </Stack>
        {footer}
      </Stack>
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

function ResultFile({ file, label }: { file: FileView; label: string }) {
  return (
    <div>
      <Viewer file={file} label={label} />
      <Group justify="space-between" mt={4} gap={4} wrap="nowrap">
        <Text size="xs" c="dimmed" truncate>
          {fileText(file)}
        </Text>
        {file.url !== undefined && (
          <Button
            component="a"
            href={file.url}
            download
            size="compact-xs"
            variant="subtle"
            style={{ flexShrink: 0 }}
            leftSection={<ArrowDownTrayIcon width={14} aria-hidden />}
          >
            Download
          </Button>
        )}
      </Group>
    </div>
  );
}

function Running({ task }: { task: TaskView }) {
  const { may } = usePlace();
  const now_ms = useNow(500);
  const cancel = useCancel();
  const latest = task.timeline.at(-1);
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
        <Button
          variant="light"
          color="red"
          size="xs"
          onClick={() => cancel.mutate([task.id])}
          loading={cancel.isPending}
        >
          Cancel
        </Button>
      )}
    </Stack>
  );
}

/** The hold, the cost, the release and the duration of a task: cells of a grid. */
export function MoneyFigures({ task }: { task: TaskView }) {
  const { cost, estimated_cost, released, started_at, completed_at, created_at } = task;
  const ended_ms = completed_at === null ? undefined : Date.parse(completed_at);
  const run_ms = ended_ms === undefined || started_at === null ? undefined : ended_ms - Date.parse(started_at);
  return (
    <>
      <Figure name="Held" value={<Money cost={estimated_cost} exact />} />
      <Figure name="Cost" value={ended_ms === undefined ? '–' : <Money cost={cost} exact />} />
      <Figure name="Released" value={released ? <Money cost={released} exact /> : '–'} />
      <Figure
        name="Took"
        value={ended_ms === undefined ? '–' : durationText(ended_ms - Date.parse(created_at))}
        {...(run_ms !== undefined && { note: `${durationText(run_ms)} of it running` })}
      />
    </>
  );
}
