import { Group, Stack, Text, UnstyledButton } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { Page, TaskLineView, TaskView } from '../../../../src/dashboard/views/activity.ts';
import { api, queryOf } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { Thumbnail } from '../../ui/Thumbnail.tsx';
import { Money } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { inputOf } from './search.ts';

const shown = 8;

type Props = {
  model: string;
  /** The run that is looked at. */
  run: string | undefined;
  /** Takes the input of a run, and shows what came of it. */
  pickUp: (id: string, input: Record<string, unknown>) => void;
};

/** Earlier runs of this model in the playground. */
export function Runs({ model, run, pickUp }: Props) {
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'runs', model],
    queryFn: ({ signal }) => {
      const filter = { source: 'playground', model, limit: shown };
      return api.get<Page<TaskLineView>>(`${base}/tasks${queryOf(filter)}`, { signal });
    },
    refetchInterval: ({ state }) =>
      state.data?.data.some(({ completed_at }) => completed_at === null) ? 2_000 : false,
  });
  const picking = useMutation({
    mutationFn: (id: string) => api.get<TaskView>(`${base}/tasks/${id}`),
    onSuccess: (task) => pickUp(task.id, inputOf(task) ?? {}),
  });
  return (
    <Card title="Earlier runs">
      {picking.error && <Failed error={picking.error} />}
      <Loaded query={query} height={120}>
        {({ data, has_more }) => (
          <Stack gap={4}>
            {data.length === 0 ? (
              <Text size="sm" c="dimmed">
                Runs stay in this list, with their parameters.
              </Text>
            ) : (
              <Stack component="ul" gap={2} p={0} m={0} style={{ listStyle: 'none' }}>
                {data.map((task) => (
                  <li key={task.id}>
                    <Run task={task} is_shown={task.id === run} pickUp={() => picking.mutate(task.id)} />
                  </li>
                ))}
              </Stack>
            )}
            {has_more && (
              <LinkTo href={`/activity${queryOf({ model })}`} size="sm">
                All runs
              </LinkTo>
            )}
          </Stack>
        )}
      </Loaded>
    </Card>
  );
}

function Run({ task, is_shown, pickUp }: { task: TaskLineView; is_shown: boolean; pickUp: () => void }) {
  const { id, prompt, status, created_at, cost, files } = task;
  return (
    <UnstyledButton
      w="100%"
      p={6}
      onClick={pickUp}
      aria-current={is_shown}
      title="Copies its parameters into the form"
      style={{ borderRadius: 8, ...(is_shown && { background: 'var(--mantine-primary-color-light)' }) }}
    >
      <Group wrap="nowrap" gap="sm">
        <Thumbnail file={files[0]} size={40} label="" />
        <div style={{ flex: 1, minWidth: 0 }}>
          <Text size="sm" truncate>
            {prompt ?? id}
          </Text>
          <Group gap="xs">
            <Status of={status} />
            <Text size="xs" c="dimmed">
              <Time at={created_at} ago />
            </Text>
            <Text size="xs" c="dimmed">
              <Money cost={cost} exact />
            </Text>
          </Group>
        </div>
      </Group>
    </UnstyledButton>
  );
}
