import { Button, Center, Group, Loader, SimpleGrid, Stack, Text } from '@mantine/core';
import type { TaskView } from '../../../../../src/dashboard/views/activity.ts';
import type { ModelView } from '../../../../../src/dashboard/views/models.ts';
import { usePlace } from '../../../session.tsx';
import { Money } from '../../../ui/Money.tsx';
import { Card } from '../../../ui/Page.tsx';
import { Failed } from '../../../ui/states.tsx';
import { sumOf } from '../../../ui/sum.ts';
import { useCancel, useTasks } from '../../../ui/TaskResult.tsx';
import { Result } from '../Result.tsx';
import type { Place } from './useRuns.ts';

type Props = {
  models: readonly ModelView[];
  placeOf: (model: ModelView) => Place;
  /** Goes on with this model alone, and with its run. */
  use: (model: ModelView, run: string) => void;
};

/** The results of several models beside each other; below each other where there is no room. */
export function BesideResults({ models, placeOf, use }: Props) {
  const ids = models.flatMap((model) => {
    const place = placeOf(model);
    return place.is === 'task' ? [place.id] : [];
  });
  return (
    <Stack gap="sm">
      {ids.length > 0 && <Together ids={ids} />}
      <SimpleGrid cols={{ base: 1, lg: 2, xl: models.length === 3 ? 3 : 2 }}>
        {models.map((model) => (
          <section key={model.id} aria-label={model.display_name} style={{ minWidth: 0 }}>
            <AtPlace model={model} place={placeOf(model)} ids={ids} use={(run) => use(model, run)} />
          </section>
        ))}
      </SimpleGrid>
    </Stack>
  );
}

type PlaceProps = { model: ModelView; place: Place; ids: readonly string[]; use: (run: string) => void };

function AtPlace({ model, place, ids, use }: PlaceProps) {
  if (place.is === 'starting') {
    return (
      <Card title={model.display_name}>
        <Center mih={220}>
          <Loader size="sm" role="status" aria-label="Starting" />
        </Center>
      </Card>
    );
  }
  if (place.is === 'refused') {
    return (
      <Card title={model.display_name}>
        <Stack gap="xs">
          <Failed error={place.error} />
          <Text size="sm" c="dimmed">
            It did not start, and costs nothing.
          </Text>
        </Stack>
      </Card>
    );
  }
  const id = place.is === 'task' ? place.id : undefined;
  const rivals = ids.filter((one) => one !== id);
  return <Result id={id} model={model} among={{ rivals, use: () => id !== undefined && use(id) }} />;
}

/** The progress of all of them, and their cost together. */
function Together({ ids }: { ids: readonly string[] }) {
  const { may } = usePlace();
  const tasks = useTasks(ids);
  const cancel = useCancel();
  const running = tasks.filter(({ completed_at }) => completed_at === null);
  return (
    <Stack gap="xs">
      <Group justify="space-between" mih={30}>
        <Group role="status" gap="md">
          <Text size="sm">
            {tasks.length - running.length} of {ids.length} finished
          </Text>
          {running.length === 0 && <Cost tasks={tasks} />}
        </Group>
        {running.length > 1 && may('run') && (
          <Button
            variant="light"
            color="red"
            size="xs"
            loading={cancel.isPending}
            onClick={() => cancel.mutate(running.map(({ id }) => id))}
          >
            Cancel all
          </Button>
        )}
      </Group>
      {cancel.error && <Failed error={cancel.error} />}
    </Stack>
  );
}

function Cost({ tasks }: { tasks: readonly TaskView[] }) {
  const [first] = tasks;
  if (!first) return null;
  const cost = sumOf(
    tasks.map((task) => task.cost),
    first.cost.currency,
  );
  return (
    <Text size="sm">
      Cost of all: <Money cost={cost} exact />
    </Text>
  );
}
