import { Center, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { TaskView } from '../../../../src/dashboard/views/activity.ts';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { Thumbs } from '../../ui/Feedback.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Card } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { MoneyFigures, ResultCard, useTask } from '../../ui/TaskResult.tsx';

/** The result of a run. The run goes on when one leaves the page, and its task stays. */
export function Result({ id, model }: { id: string | undefined; model: ModelView }) {
  if (id === undefined) {
    return (
      <Card title="Result">
        <Center mih={220} style={{ border: '1px dashed var(--medley-line)', borderRadius: 8 }}>
          <Text c="dimmed" ta="center" maw={320} p="md">
            The output of {model.display_name} appears here, with its actual cost.
          </Text>
        </Center>
      </Card>
    );
  }
  return <TaskResult id={id} />;
}

function TaskResult({ id }: { id: string }) {
  const { account } = usePlace();
  const queries = useQueryClient();
  const query = useTask(id);
  const is_final = query.data?.completed_at != null;
  useEffect(() => {
    if (!is_final) return;
    void queries.invalidateQueries({ queryKey: [account.id, 'balance'] });
    void queries.invalidateQueries({ queryKey: [account.id, 'runs'] });
  }, [is_final, queries, account.id]);
  return (
    <Loaded query={query} height={280}>
      {(task) => <ResultCard task={task} footer={<Facts task={task} />} />}
    </Loaded>
  );
}

function Facts({ task }: { task: TaskView }) {
  return (
    <Stack gap="xs">
      <SimpleGrid cols={{ base: 2, xs: 4 }}>
        <MoneyFigures task={task} />
      </SimpleGrid>
      <Group justify="space-between">
        <LinkTo href={`/tasks/${task.id}`} size="sm">
          All details of this task
        </LinkTo>
        {task.completed_at !== null && <Thumbs id={task.id} feedback={task.feedback} />}
      </Group>
    </Stack>
  );
}
