import { Button, Center, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import type { TaskView } from '../../../../src/dashboard/views/activity.ts';
import type { ModelView } from '../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../session.tsx';
import { Thumbs } from '../../ui/Feedback.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Card } from '../../ui/Page.tsx';
import { renewBalance } from '../../ui/balance.ts';
import { Loaded } from '../../ui/states.tsx';
import { MoneyFigures, ResultCard, useTask } from '../../ui/TaskResult.tsx';

type Props = {
  id: string | undefined;
  model: ModelView;
  /** Among others: what is different there. */
  among?: Among;
};

type Among = {
  /** Tasks of the other models. */
  rivals: readonly string[];
  use: () => void;
};

/** The result of a run. The run goes on when one leaves the page, and its task stays. */
export function Result({ id, model, among }: Props) {
  const title = among ? model.display_name : 'Result';
  if (id !== undefined) return <TaskResult id={id} title={title} among={among} />;
  return (
    <Card title={title}>
      <Center mih={220} style={{ border: '1px dashed var(--medley-line)', borderRadius: 8 }}>
        <Text c="dimmed" ta="center" maw={320} p="md">
          The output of {model.display_name} appears here, with its actual cost.
        </Text>
      </Center>
    </Card>
  );
}

type TaskProps = { id: string; title: string; among: Among | undefined };

function TaskResult({ id, title, among }: TaskProps) {
  const { account } = usePlace();
  const queries = useQueryClient();
  const query = useTask(id);
  const is_final = query.data?.completed_at != null;
  useEffect(() => {
    if (!is_final) return;
    renewBalance(queries, account.id);
    void queries.invalidateQueries({ queryKey: [account.id, 'runs'] });
  }, [is_final, queries, account.id]);
  return (
    <Loaded query={query} height={280}>
      {(task) => <ResultCard task={task} {...(among && { title })} footer={<Facts task={task} among={among} />} />}
    </Loaded>
  );
}

function Facts({ task, among }: { task: TaskView; among: Among | undefined }) {
  return (
    <Stack gap="xs">
      <SimpleGrid cols={among ? 2 : { base: 2, xs: 4 }}>
        <MoneyFigures task={task} />
      </SimpleGrid>
      <Group justify="space-between">
        <LinkTo href={`/tasks/${task.id}`} size="sm">
          All details of this task
        </LinkTo>
        {task.completed_at !== null && <Thumbs id={task.id} feedback={task.feedback} rivals={among?.rivals ?? []} />}
      </Group>
      {among && task.completed_at !== null && (
        <Button variant="default" size="xs" onClick={among.use}>
          Use this one
        </Button>
      )}
    </Stack>
  );
}
