import { Button, Group, Radio, Stack, Text, TextInput } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { EndpointView, ReplayView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Modal } from '../../ui/Modal.tsx';
import { Failed } from '../../ui/states.tsx';
import { endpointName } from './endpoints-query.ts';

type Props = { endpoint: EndpointView; close: () => void };

type Span = { from: string; to: string; which: string };

/** Sends the events of a span again, once their number was seen. */
export function Replay({ endpoint, close }: Props) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const [span, setSpan] = useState<Span>(() => ({
    from: localTime(daysAgo(1)),
    to: localTime(new Date(Date.now() + 60_000)),
    which: 'failed',
  }));
  const ask = useMutation({
    mutationFn: (dry_run: boolean) =>
      api.post<ReplayView>(`${base}/webhooks/endpoints/${endpoint.id}/replay`, {
        from: utcTime(span.from),
        to: utcTime(span.to),
        which: span.which,
        dry_run,
      }),
    onSuccess: async ({ events }, dry_run) => {
      if (dry_run) return;
      notifications.show({ message: `${eventsText(events)} queued: they are sent after new ones.` });
      await Promise.all(
        ['deliveries', 'webhook-endpoints'].map((name) => queries.invalidateQueries({ queryKey: [account.id, name] })),
      );
      close();
    },
  });
  const change = (part: Partial<Span>) => {
    setSpan({ ...span, ...part });
    ask.reset(); // the number is of another span
  };
  const count = ask.data;
  return (
    <Modal opened onClose={close} title={`Replay events to ${endpointName(endpoint)}`}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          ask.mutate(count === undefined);
        }}
      >
        <Stack>
          <Text size="sm">
            Events keep their ids and bytes: a receiver that has seen one before can tell. Events from before the
            endpoint was added are not there.
          </Text>
          <SpanFields span={span} change={change} />
          <div role="status">
            {count && (
              <Text size="sm" fw={600}>
                {count.events === 0 ? 'There are none in this span.' : `${eventsText(count.events)} will be sent.`}
                {count.next_from !== null && ' There are more: replay again for the rest.'}
              </Text>
            )}
          </div>
          {ask.error && <Failed error={ask.error} />}
          <Group justify="flex-end">
            <Button variant="default" onClick={close}>
              Cancel
            </Button>
            <Button type="submit" loading={ask.isPending} disabled={count?.events === 0}>
              {count === undefined ? 'Count' : 'Send again'}
            </Button>
          </Group>
        </Stack>
      </form>
    </Modal>
  );
}

/** From when to when, and which of the events. */
function SpanFields({ span, change }: { span: Span; change: (part: Partial<Span>) => void }) {
  return (
    <>
      <Group grow>
        <TextInput
          type="datetime-local"
          label="From"
          required
          value={span.from}
          onChange={({ currentTarget }) => change({ from: currentTarget.value })}
        />
        <TextInput
          type="datetime-local"
          label="To"
          required
          value={span.to}
          onChange={({ currentTarget }) => change({ to: currentTarget.value })}
        />
      </Group>
      <Text size="xs" c="dimmed">
        Times are those of your browser: {Intl.DateTimeFormat().resolvedOptions().timeZone}.
      </Text>
      <Radio.Group label="Which" value={span.which} onChange={(which) => change({ which })}>
        <Stack gap="xs" mt="xs">
          <Radio value="failed" label="Those that did not arrive" description="Dropped, or never sent." />
          <Radio value="all" label="All" description="Also those that arrived." />
        </Stack>
      </Radio.Group>
    </>
  );
}

function eventsText(count: number): string {
  return `${count} ${count === 1 ? 'event' : 'events'}`;
}

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * 86_400_000);
}

/** A time as such fields have it, in the zone of the reader; the end of its minute counts. */
function localTime(at: Date): string {
  const local = new Date(at.getTime() - at.getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 16);
}

function utcTime(local: string): string {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? local : at.toISOString();
}
