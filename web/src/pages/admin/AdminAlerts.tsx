import { Button, Stack, Text } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { AdminAlerts, AlertTestView } from '../../../../src/dashboard/views/alerts.ts';
import { api } from '../../api.ts';
import { AlertList } from '../../ui/AlertList.tsx';
import { AlertTest } from '../../ui/AlertTest.tsx';
import { Card, Page } from '../../ui/Page.tsx';
import { Empty, Failed, Loaded } from '../../ui/states.tsx';

/** The alerts of the service, and where they go. */
export function AdminAlertsPage() {
  const query = useQuery({
    queryKey: ['admin', 'alerts'],
    queryFn: ({ signal }) => api.get<AdminAlerts>('/dash/admin/alerts', { signal }),
    refetchInterval: 30_000,
  });
  return (
    <Page title="Alerts" about="What is wrong with the service now, and what was lately.">
      <Loaded query={query} height={320}>
        {(view) => (
          <Stack gap="lg">
            {view.alerts.length === 0 ? (
              <Empty title="Nothing is wrong">
                Providers, disks, backups, queues and books are looked at every minute.
              </Empty>
            ) : (
              <Card>
                <AlertList alerts={view.alerts} caption="Alerts of the service" />
              </Card>
            )}
            <Ways view={view} />
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

function Ways({ view: { recipients, mails, host, quiet_hours: quiet, per_hour_max } }: { view: AdminAlerts }) {
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<AlertTestView>('/dash/admin/alerts/test'),
  });
  const to = recipients.length === 0 ? 'nobody: no operator has proved an address' : recipients.join(', ');
  return (
    <Card
      title="Where they go"
      side={
        <Button size="xs" variant="light" loading={isPending} onClick={() => mutate()}>
          Send a test
        </Button>
      }
    >
      <Stack gap="xs">
        <Text size="sm" style={{ overflowWrap: 'anywhere' }}>
          {mails ? `Mail to ${to}.` : 'No mail: medley.yaml has no mail server.'}
        </Text>
        <Text size="sm">{host === null ? 'No webhook.' : `A signed webhook to ${host}.`}</Text>
        <Text size="sm">
          {quiet ? `Only critical ones from ${quiet.from} to ${quiet.to} (${quiet.time_zone}). ` : ''}
          {`At most ${per_hour_max} an hour by each way. The section alerts of medley.yaml changes all of it.`}
        </Text>
        <div role="status">{data && !isPending && <AlertTest outcome={data} />}</div>
        {error && <Failed error={error} />}
      </Stack>
    </Card>
  );
}
