import { Box, Container, Group, Stack, Text, Title } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { ModelStatusView, StatusView } from '../../../../src/dashboard/views/status.ts';
import { api, Failure } from '../../api.ts';
import { below } from '../../below.ts';
import { short_day_form } from '../../ui/dates.ts';
import { durationText } from '../../ui/duration.ts';
import { kindText } from '../../ui/kinds.ts';
import { ButtonTo, LinkTo } from '../../ui/LinkTo.tsx';
import { ModelStatus } from '../../ui/ModelStatus.tsx';
import { Card, Page } from '../../ui/Page.tsx';
import { Empty, Loaded } from '../../ui/states.tsx';
import { Time } from '../../ui/Time.tsx';

const refresh_every_ms = 60_000;

/** The status of each model: for people who have signed in, and for anybody if the operator says so. */
export function Status() {
  const query = useQuery({
    queryKey: ['status'],
    queryFn: ({ signal }) => api.get<StatusView>('/status.json', { signal }),
    refetchInterval: refresh_every_ms,
    retry: (failures, error) => failures < 2 && !isForUsers(error),
  });
  return (
    <Container size="md" py="xl" component="main">
      <Group gap={10} mb="lg">
        <img src={below('/icon.svg')} width={32} height={32} alt="" />
        <LinkTo href="/" fw={700} size="lg" c="inherit">
          Medley
        </LinkTo>
      </Group>
      <Page title="Status" about={query.data && <Sentence of={query.data} />}>
        {isForUsers(query.error) ? (
          <Empty title="For users of this service" action={<ButtonTo href="/sign-in?next=/status">Sign in</ButtonTo>}>
            Sign in to see how its models serve.
          </Empty>
        ) : (
          <Loaded query={query} height={480}>
            {(view) => <Models view={view} />}
          </Loaded>
        )}
      </Page>
    </Container>
  );
}

function isForUsers(error: Error | null): boolean {
  return error instanceof Failure && error.status === 401;
}

/** The whole in one sentence. */
function Sentence({ of: { at, models } }: { of: StatusView }) {
  const ill = models.filter(({ status }) => status !== 'available');
  const text =
    ill.length === 0
      ? 'All models are available.'
      : ill.length === 1
        ? `${ill.length} of ${models.length} models is degraded or unavailable.`
        : `${ill.length} of ${models.length} models are degraded or unavailable.`;
  return (
    <>
      {text} As of <Time at={at} />.
    </>
  );
}

function Models({ view: { models } }: { view: StatusView }) {
  if (models.length === 0) return <Empty title="No models">This service offers no models yet.</Empty>;
  const kinds = [...new Set(models.map(({ kind }) => kind))];
  return (
    <Stack gap="lg">
      {kinds.map((kind) => (
        <Card key={kind} title={kindText(kind)}>
          <Stack gap="lg">{models.map((model) => model.kind === kind && <Model key={model.id} of={model} />)}</Stack>
        </Card>
      ))}
    </Stack>
  );
}

function Model({ of: model }: { of: ModelStatusView }) {
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={6}>
        <Title order={3} size="h5" style={{ overflowWrap: 'anywhere' }}>
          {model.id}
        </Title>
        <ModelStatus of={model.status} />
      </Group>
      <Days days={model.days} />
      <Group justify="space-between" gap="xs" mt={4}>
        <Text size="sm" c="dimmed">
          {lastDayText(model)}
        </Text>
        <Text size="sm" c="dimmed">
          {model.days.length} days
        </Text>
      </Group>
    </div>
  );
}

function lastDayText({ served, first_p50_ms, total_p50_ms }: ModelStatusView): string {
  if (served === null) return 'No calls in the last 24 hours';
  const times = [
    ...(first_p50_ms === null ? [] : [`first token after ${durationText(first_p50_ms)}`]),
    ...(total_p50_ms === null ? [] : [`done after ${durationText(total_p50_ms)}`]),
  ];
  return ['Last 24 hours: ' + shareText(served), ...times].join(' · ');
}

/** Rounded down: 100 % is said only of what never failed. */
function shareText(served: number): string {
  return `${(Math.floor(served * 10_000) / 100).toLocaleString('en')} % succeeded`;
}

type Day = ModelStatusView['days'][number];

/** A bar for each day: full where nothing failed, and the lower the more did. */
function Days({ days }: { days: readonly Day[] }) {
  return (
    <Box
      role="img"
      aria-label={summaryOf(days)}
      style={{ display: 'flex', alignItems: 'flex-end', gap: 1, height: 32 }}
    >
      {days.map((day) => (
        <Box
          key={day.day}
          title={`${dayText(day)}: ${servedText(day)}`}
          style={{ flex: 1, height: '100%', ...look(day) }}
        />
      ))}
    </Box>
  );
}

/** Days below the first look bad, days below the second poor. */
const [bad_below, poor_below] = [0.9, 0.99];

function look({ served }: Day) {
  if (served === null) return { background: 'var(--medley-line)', maxHeight: '100%', borderRadius: 2 };
  const color = served < bad_below ? 'red' : served < poor_below ? 'yellow' : 'teal';
  const height = served < bad_below ? 45 : served < poor_below ? 70 : 100;
  return { background: `var(--mantine-color-${color}-6)`, maxHeight: `${height}%`, borderRadius: 2 };
}

function summaryOf(days: readonly Day[]): string {
  const called = days.filter((day): day is Day & { served: number } => day.served !== null);
  const [worst] = called.toSorted((one, other) => one.served - other.served);
  if (!worst) return `No calls in ${days.length} days`;
  if (worst.served === 1) return `No call failed in ${days.length} days`;
  return `The worst of ${days.length} days was ${dayText(worst)}: ${servedText(worst)}`;
}

function dayText({ day }: Day): string {
  return short_day_form.format(new Date(`${day}T00:00:00Z`));
}

function servedText({ served }: Day): string {
  return served === null ? 'no calls' : shareText(served);
}
