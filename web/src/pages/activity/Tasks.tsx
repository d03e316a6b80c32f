import { Anchor, Button, Group, Stack, Table, Text } from '@mantine/core';
import { useInfiniteQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { Page, TaskLineView } from '../../../../src/dashboard/views/activity.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { ChoiceFilter, DayFilter, Filters } from '../../ui/Filters.tsx';
import { ListTable, Pages } from '../../ui/ListTable.tsx';
import { Thumbnail } from '../../ui/Media.tsx';
import { Money } from '../../ui/Money.tsx';
import { Empty } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { durationText, Time } from '../../ui/Time.tsx';
import type { ActivitySearch } from './search.ts';
import { momentsOf, useChoices } from './filters.ts';

const statuses = ['queued', 'running', 'succeeded', 'failed'].map((value) => {
  return { value, label: value.slice(0, 1).toUpperCase() + value.slice(1) };
});

type Props = { search: ActivitySearch; set: (change: ActivitySearch) => void };

export function Tasks({ search, set }: Props) {
  const { account, base } = usePlace();
  const { status, model, key, from, to } = search;
  const filter = { status, model, key, ...momentsOf({ from, to }) };
  const query = useInfiniteQuery({
    queryKey: [account.id, 'tasks', filter],
    queryFn: ({ pageParam, signal }) =>
      api.get<Page<TaskLineView>>(`${base}/tasks${queryOf({ ...filter, after: pageParam })}`, { signal }),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page: Page<TaskLineView>) => (page.has_more ? page.data.at(-1)?.id : undefined),
    refetchInterval: ({ state }) => (isMoving(state.data?.pages) ? 2_000 : 15_000),
  });
  const choices = useChoices();
  const isFiltered = [status, model, key, from, to].some((value) => value !== undefined);
  return (
    <Stack>
      <Filters
        isFiltered={isFiltered}
        clear={() => set({ status: undefined, model: undefined, key: undefined, from: undefined, to: undefined })}
      >
        <ChoiceFilter
          label="Status"
          value={status}
          data={statuses}
          onChange={(value) => set({ status: value })}
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
      <Pages query={query} empty={<NoTasks isFiltered={isFiltered} />}>
        {(tasks) => (
          <ListTable
            caption="Generations, newest first"
            columns={[
              { name: 'Result', hidden: true },
              { name: 'Prompt' },
              { name: 'Status' },
              { name: 'Model' },
              { name: 'Key' },
              { name: 'Created' },
              { name: 'Took', align: 'right' },
              { name: 'Cost', align: 'right' },
            ]}
          >
            {tasks.map((task) => (
              <TaskRow key={task.id} task={task} />
            ))}
          </ListTable>
        )}
      </Pages>
    </Stack>
  );
}

function isMoving(pages: Page<TaskLineView>[] | undefined): boolean {
  return pages?.[0]?.data.some(({ completed_at }) => completed_at === null) ?? false;
}

function TaskRow({ task }: { task: TaskLineView }) {
  const { id, prompt, status, model, key, created_at, completed_at, cost, files, error } = task;
  const took_ms = completed_at === null ? undefined : Date.parse(completed_at) - Date.parse(created_at);
  return (
    <Table.Tr>
      <Table.Td w={56}>
        <Thumbnail file={files[0]} size={40} label="" />
      </Table.Td>
      <Table.Td maw={320}>
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
        <Text size="sm" truncate maw={200}>
          {model}
        </Text>
      </Table.Td>
      <Table.Td>
        <Text size="sm" truncate maw={120}>
          {key.name}
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

function NoTasks({ isFiltered }: { isFiltered: boolean }) {
  if (isFiltered) return <Empty title="Nothing fits these filters">Take one of them away.</Empty>;
  return (
    <Empty
      title="No generations yet"
      action={
        <Group>
          <Button component={Link} to="/playground">
            Open the playground
          </Button>
        </Group>
      }
    >
      What you or your programs make appears here within a moment.
    </Empty>
  );
}
