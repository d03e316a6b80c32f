import { Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { AlertsView, AlertTestView } from '../../../../src/dashboard/views/alerts.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { AlertList } from '../../ui/AlertList.tsx';
import { AlertTest } from '../../ui/AlertTest.tsx';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { MayButton } from '../../ui/MayButton.tsx';
import { moneyText } from '../../ui/Money.tsx';
import { Card } from '../../ui/Page.tsx';
import { Failed, Loaded } from '../../ui/states.tsx';
import { AlertForm } from './AlertForm.tsx';

/** The alerts of the account, and how its people hear of them. */
export function Alerts() {
  const { account, base } = usePlace();
  const query = useQuery({
    queryKey: [account.id, 'alerts'],
    queryFn: ({ signal }) => api.get<AlertsView>(`${base}/alerts`, { signal }),
  });
  return (
    <Loaded query={query} height={420}>
      {(view) => (
        <Stack>
          <Card title="Alerts">
            {view.alerts.length === 0 ? (
              <Text c="dimmed">Nothing is wrong, and nothing was lately.</Text>
            ) : (
              <AlertList alerts={view.alerts} caption="Alerts of this account" />
            )}
          </Card>
          <Balance view={view} />
          <AlertForm key={account.id} view={view} />
          <Test view={view} />
        </Stack>
      )}
    </Loaded>
  );
}

function Balance({ view: { threshold } }: { view: AlertsView }) {
  return (
    <Card title="Low balance" side={<LinkTo href="/billing">Change</LinkTo>}>
      <Text size="sm">
        {threshold === null
          ? 'No alert. Set an amount on the page Billing.'
          : `When less than ${moneyText(threshold)} is available; critical when nothing is.`}
      </Text>
    </Card>
  );
}

function Test({ view: { recipients, mails } }: { view: AlertsView }) {
  const { account, base } = usePlace();
  const queries = useQueryClient();
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: () => api.post<AlertTestView>(`${base}/alerts/test`),
    onSuccess: () => queries.invalidateQueries({ queryKey: [account.id, 'deliveries'] }),
  });
  const to = recipients.length === 0 ? 'nobody: none of these members has proved an address' : recipients.join(', ');
  return (
    <Card
      title="Test"
      side={
        <MayButton right="webhooks" size="xs" variant="light" loading={isPending} onClick={() => mutate()}>
          Send a test
        </MayButton>
      }
    >
      <Stack gap="sm">
        <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {mails ? `Mails go to ${to}.` : 'This service sends no mail: alerts go to the webhook alone.'}
        </Text>
        <div role="status">{data && !isPending && <AlertTest outcome={data} />}</div>
        {error && <Failed error={error} />}
      </Stack>
    </Card>
  );
}
