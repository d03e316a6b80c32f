import { Anchor, Table, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { Page, TaskLineView } from '../../../../src/dashboard/views/activity.ts';
import { Thumbnail } from '../../ui/Media.tsx';
import { Money } from '../../ui/Money.tsx';
import { Status } from '../../ui/Status.tsx';
import { durationText, Time } from '../../ui/Time.tsx';
import { ActivityList, type ListProps } from './ActivityList.tsx';

const statuses = ['queued', 'running', 'succeeded', 'failed'].map((value) => {
  return { value, label: value.slice(0, 1).toUpperCase() + value.slice(1) };
});

const columns = [
  { name: 'Result', hidden: true },
  { name: 'Prompt' },
  { name: 'Status' },
  { name: 'Model, key' },
  { name: 'Created' },
  { name: 'Took', align: 'right' },
  { name: 'Cost', align: 'right' },
] as const;

/** Generations, whatever became of them. */
export function Tasks(props: ListProps) {
  return (
    <ActivityList<TaskLineView>
      {...props}
      path="tasks"
      ending={{ name: 'status', label: 'Status', data: statuses }}
      caption="Generations, newest first"
      columns={columns}
      row={(task) => <TaskRow key={task.id} task={task} />}
      refreshAfterMs={(pages) => (isMoving(pages) ? 2_000 : 15_000)}
      none={{
        title: 'No generations yet',
        text: 'Generations by you or your programs appear here.',
      }}
    />
  );
}

function isMoving(pages: readonly Page<TaskLineView>[]): boolean {
  return pages[0]?.data.some(({ completed_at }) => completed_at === null) ?? false;
}

function TaskRow({ task }: { task: TaskLineView }) {
  const { id, prompt, status, model, key, created_at, completed_at, cost, files, error } = task;
  const took_ms = completed_at === null ? undefined : Date.parse(completed_at) - Date.parse(created_at);
  return (
    <Table.Tr>
      <Table.Td w={56}>
        <Thumbnail file={files[0]} size={40} label="" />
      </Table.Td>
      <Table.Td maw={{ base: 150, sm: 235 }}>
        <Anchor component={Link} to={`/tasks/${id}`} size="sm" truncate display="block">
          {prompt ?? id}
        </Anchor>
        {error && (
          <Text size="xs" c="dimmed" truncate>
            {error.message}
          </Text>
        )}
      </Table.Td>
      <Table.Td>
        <Status of={status} />
      </Table.Td>
      <Table.Td>
        <Text size="sm" truncate maw={210}>
          {model}
        </Text>
        <Text size="xs" c="dimmed" truncate maw={210}>
          key {key.name}
        </Text>
      </Table.Td>
      <Table.Td style={{ whiteSpace: 'nowrap' }}>
        <Text size="sm">
          <Time at={created_at} ago />
        </Text>
      </Table.Td>
      <Table.Td ta="right" className="figure" style={{ whiteSpace: 'nowrap' }}>
        {took_ms === undefined ? '–' : durationText(took_ms)}
      </Table.Td>
      <Table.Td ta="right">
        <Money cost={cost} exact />
      </Table.Td>
    </Table.Tr>
  );
}
