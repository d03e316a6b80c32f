import { Alert, Grid, Stack, Tabs } from '@mantine/core';
import { CheckCircleIcon, InformationCircleIcon } from '@heroicons/react/24/outline';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { BillingView } from '../../../../src/dashboard/views/billing.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Page } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { AlertCard } from './AlertCard.tsx';
import { BalanceCard } from './BalanceCard.tsx';
import { Details } from './Details.tsx';
import { Invoices } from './Invoices.tsx';
import { Ledger } from './Ledger.tsx';
import { readBillingSearch, type BillingSearch } from './search.ts';
import { TopUpCard } from './TopUpCard.tsx';

const route = getRouteApi('/signed-in/billing');

/** The billing page: the balance, the charges, and ways to top up. */
export function Billing() {
  const { account, base } = usePlace();
  const search = route.useSearch();
  const navigate = useNavigate();
  const set = (change: BillingSearch) =>
    void navigate({ to: '/billing', search: { ...search, ...change }, replace: true });
  const billing = useQuery({
    queryKey: [account.id, 'billing'],
    queryFn: ({ signal }) => api.get<BillingView>(`${base}/billing`, { signal }),
  });
  return (
    <Page title="Billing" about="Balance, movements, invoices and billing details.">
      <Paid paid={search.paid} close={() => set({ paid: undefined })} />
      <Tabs
        value={search.tab ?? 'balance'}
        keepMounted={false}
        onChange={(next) => void navigate({ to: '/billing', search: readBillingSearch({ tab: next }) })}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="balance">Balance</Tabs.Tab>
          <Tabs.Tab value="invoices">Invoices</Tabs.Tab>
          <Tabs.Tab value="details">Billing details</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="balance">
          <Stack gap="lg">
            <Grid>
              <Grid.Col span={{ base: 12, md: 6 }}>
                <BalanceCard />
              </Grid.Col>
              <Grid.Col span={{ base: 12, md: 6 }}>
                <Loaded query={billing} height={150}>
                  {(view) => <TopUpCard view={view} />}
                </Loaded>
              </Grid.Col>
            </Grid>
            <Loaded query={billing} height={110}>
              {(view) => <AlertCard key={view.alert.threshold?.exact ?? 'none'} view={view} />}
            </Loaded>
            <Ledger search={search} set={set} />
          </Stack>
        </Tabs.Panel>
        <Tabs.Panel value="invoices">
          <Invoices />
        </Tabs.Panel>
        <Tabs.Panel value="details">
          <Loaded query={billing} height={420}>
            {(view) => <Details view={view} />}
          </Loaded>
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** For whoever comes back from the payment page. */
function Paid({ paid, close }: { paid: 'yes' | 'no' | undefined; close: () => void }) {
  if (paid === undefined) return null;
  const is_paid = paid === 'yes';
  return (
    <Alert
      role="status"
      color={is_paid ? 'teal' : 'gray'}
      variant="light"
      icon={is_paid ? <CheckCircleIcon aria-hidden /> : <InformationCircleIcon aria-hidden />}
      title={is_paid ? 'Thank you' : 'Nothing was paid'}
      withCloseButton
      closeButtonLabel="Close"
      onClose={close}
    >
      {is_paid
        ? 'The payment is added to the balance once it is confirmed, usually within a minute; some payment methods take days.'
        : 'The payment was cancelled, and nothing was charged.'}
    </Alert>
  );
}
