import { Alert, Badge, Box, Group, Stack, Text } from '@mantine/core';
import { ExclamationTriangleIcon } from '@heroicons/react/24/outline';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { EndpointsView, EndpointView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { Card } from '../../ui/Page.tsx';
import { Spark } from '../../ui/Spark.tsx';
import { Empty, Failed, Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { useChoices } from '../activity/filters.ts';
import { DeleteEndpoint, RotateEndpoint } from './EndpointEnds.tsx';
import { ChangeEndpoint, CreateEndpoint } from './EndpointForm.tsx';
import { endpointName, useEndpoints } from './endpoints-query.ts';
import { Replay } from './Replay.tsx';
import { TestEndpoint } from './TestEndpoint.tsx';

type Act = 'change' | 'test' | 'replay' | 'rotate' | 'delete';

type Doing = { act: 'create' } | { act: Act; endpoint: EndpointView };

/** Addresses that get the events of the account. */
export function Endpoints() {
  const query = useEndpoints();
  const [doing, setDoing] = useState<Doing>();
  const close = () => setDoing(undefined);
  return (
    <Loaded query={query} height={280}>
      {(view) => (
        <>
          <List view={view} setDoing={setDoing} />
          <CreateEndpoint opened={doing?.act === 'create'} close={close} view={view} />
          {doing?.act === 'change' && <ChangeEndpoint endpoint={doing.endpoint} view={view} close={close} />}
          {doing?.act === 'test' && <TestEndpoint endpoint={doing.endpoint} view={view} close={close} />}
          {doing?.act === 'replay' && <Replay endpoint={doing.endpoint} close={close} />}
          {doing?.act === 'rotate' && <RotateEndpoint endpoint={doing.endpoint} close={close} />}
          {doing?.act === 'delete' && <DeleteEndpoint endpoint={doing.endpoint} close={close} />}
        </>
      )}
    </Loaded>
  );
}

function List({ view, setDoing }: { view: EndpointsView; setDoing: (doing: Doing) => void }) {
  const { data, endpoints_max } = view;
  const add = (
    <MayButton right="webhooks" onClick={() => setDoing({ act: 'create' })}>
      Add an endpoint
    </MayButton>
  );
  if (data.length === 0) {
    return (
      <Empty title="No endpoints yet" action={add}>
        An endpoint is an address of yours that gets the events you choose: finished tasks, a low balance, invoices. It
        has a secret of its own.
      </Empty>
    );
  }
  return (
    <Stack>
      <Group justify="space-between" gap="xs">
        <Text size="sm" c="dimmed">
          {data.length} of {endpoints_max} endpoints
        </Text>
        {add}
      </Group>
      {data.map((endpoint) => (
        <Endpoint key={endpoint.id} endpoint={endpoint} act={(act) => setDoing({ act, endpoint })} />
      ))}
    </Stack>
  );
}

function Endpoint({ endpoint, act }: { endpoint: EndpointView; act: (act: Act) => void }) {
  const { id, url, description, enabled, failing_since, last_delivered_at, overlap_until } = endpoint;
  const state = !enabled ? 'off' : failing_since === null ? 'active' : 'warning';
  return (
    <Card
      title={
        <span style={{ overflowWrap: 'anywhere' }} title={url}>
          {endpointName(endpoint)}
        </span>
      }
      side={<Status of={state} {...(state === 'warning' && { label: 'Failing' })} />}
    >
      <Stack gap="sm">
        {!enabled && <Disabled endpoint={endpoint} />}
        {description !== '' && (
          <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
            {url}
          </Text>
        )}
        <Subscription endpoint={endpoint} />
        <Health endpoint={endpoint} />
        <Text size="sm" c="dimmed">
          {last_delivered_at === null ? (
            'Nothing has arrived yet.'
          ) : (
            <>
              Last delivered <Time at={last_delivered_at} ago />.
            </>
          )}
          {enabled && failing_since !== null && (
            <>
              {' '}
              Every attempt has failed since <Time at={failing_since} />.
            </>
          )}
          {overlap_until !== null && (
            <>
              {' '}
              The previous secret stays valid until <Time at={overlap_until} />.
            </>
          )}
        </Text>
        <Group gap="xs">
          <LinkTo href={`/webhooks?endpoint=${id}`} size="sm" mr="xs">
            Deliveries
          </LinkTo>
          <Act act="test" onAct={act} word="Send a test" />
          <Act act="replay" onAct={act} word="Replay" />
          <Act act="change" onAct={act} word="Change" />
          <Act act="rotate" onAct={act} word="Rotate the secret" />
          <Act act="delete" onAct={act} word="Delete" />
        </Group>
      </Stack>
    </Card>
  );
}

function Act({ act, onAct, word }: { act: Act; onAct: (act: Act) => void; word: string }) {
  return (
    <MayButton right="webhooks" variant="default" size="xs" onClick={() => onAct(act)}>
      {word}
    </MayButton>
  );
}

const reasons = {
  manual: 'Somebody switched it off. It gets nothing.',
  failing: 'Every delivery failed for days, so it was disabled. Repair the receiver, then enable it.',
  gone: 'Its receiver answered 410, which means that it wants no more, so it was disabled.',
};

/** A notice with the way back: one click. */
function Disabled({ endpoint: { id, disabled_reason, disabled_at } }: { endpoint: EndpointView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, error, isPending } = useMutation({
    mutationFn: () => api.patch(`${base}/webhooks/endpoints/${id}`, { enabled: true }),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'webhook-endpoints'] }),
  });
  const is_own = disabled_reason === 'manual';
  return (
    <Alert
      variant="light"
      color={is_own ? 'gray' : 'red'}
      icon={<ExclamationTriangleIcon aria-hidden />}
      title={is_own ? 'Off' : 'Disabled'}
    >
      <Stack gap="xs" align="flex-start">
        <Text size="sm">
          {reasons[disabled_reason ?? 'manual']}
          {disabled_at !== null && (
            <>
              {' '}
              Since <Time at={disabled_at} />.
            </>
          )}{' '}
          Events that it missed can be sent by Replay.
        </Text>
        <MayButton right="webhooks" size="xs" loading={isPending} onClick={() => mutate()}>
          Enable
        </MayButton>
        {error && <Failed error={error} />}
      </Stack>
    </Alert>
  );
}

/** The events and filters of an endpoint. */
function Subscription({ endpoint: { events, filters } }: { endpoint: EndpointView }) {
  const { models, keys, projects, metadata } = filters;
  const choices = useChoices().projects;
  const nameOf = (project: string) => choices.find(({ value }) => value === project)?.label ?? project;
  const narrowed = [
    ...models.map((model) => `model ${model}`),
    ...keys.map((key) => `key ${key}`),
    ...projects.map((project) => `project ${nameOf(project)}`),
    ...Object.entries(metadata).map(([name, value]) => `${name}=${String(value)}`),
  ];
  return (
    <Group gap={6}>
      {events.map((event) => (
        <Badge key={event} variant="light" tt="none">
          {event === '*' ? 'all events' : event}
        </Badge>
      ))}
      {narrowed.map((text) => (
        <Badge key={text} variant="default" tt="none" maw="100%">
          {text}
        </Badge>
      ))}
    </Group>
  );
}

function Health({ endpoint: { days } }: { endpoint: EndpointView }) {
  const sum = (name: 'delivered' | 'dropped' | 'waiting') => days.reduce((total, day) => total + day[name], 0);
  const [delivered, dropped, waiting] = [sum('delivered'), sum('dropped'), sum('waiting')];
  if (delivered + dropped + waiting === 0) return null;
  const summary = `Last ${days.length} days: ${delivered} delivered, ${dropped} dropped, ${waiting} waiting`;
  const bars = days.map(({ day, ...counts }) => ({
    label: day,
    value: counts.delivered + counts.dropped + counts.waiting,
    text: `${counts.delivered} delivered, ${counts.dropped} dropped, ${counts.waiting} waiting`,
  }));
  return (
    <Box maw={320}>
      <Spark bars={bars} summary={summary} height={36} />
      <Text size="xs" c="dimmed" mt={4} aria-hidden>
        {summary}
      </Text>
    </Box>
  );
}
