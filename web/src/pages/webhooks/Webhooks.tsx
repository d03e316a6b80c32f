import { Tabs } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import type { WebhooksView } from '../../../../src/dashboard/views/webhooks.ts';
import { api } from '../../api.ts';
import { usePlace } from '../../session.tsx';
import { Page } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { Deliveries } from './Deliveries.tsx';
import { Endpoints } from './Endpoints.tsx';
import { Setup } from './Setup.tsx';

const route = getRouteApi('/signed-in/webhooks');

/** The page of webhooks. */
export function Webhooks() {
  const { tab, ...search } = route.useSearch();
  const navigate = useNavigate();
  const query = useWebhooks();
  return (
    <Page
      title="Webhooks"
      about="Your programs hear of what happens: of a task at its webhook_url, of all events at registered endpoints."
    >
      <Tabs
        value={tab ?? 'deliveries'}
        keepMounted={false}
        onChange={(next) =>
          void navigate({ to: '/webhooks', search: next === 'setup' || next === 'endpoints' ? { tab: next } : {} })
        }
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="deliveries">Deliveries</Tabs.Tab>
          <Tabs.Tab value="endpoints">Endpoints</Tabs.Tab>
          <Tabs.Tab value="setup">Secret and test</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="deliveries">
          <Deliveries
            search={search}
            attempts_max={query.data?.attempts_max}
            set={(change) => void navigate({ to: '/webhooks', search: { ...search, ...change }, replace: true })}
            clear={() => void navigate({ to: '/webhooks', search: {}, replace: true })}
          />
        </Tabs.Panel>
        <Tabs.Panel value="endpoints">
          <Endpoints />
        </Tabs.Panel>
        <Tabs.Panel value="setup">
          <Loaded query={query} height={320}>
            {(view) => <Setup view={view} />}
          </Loaded>
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

export function useWebhooks() {
  const { account, base } = usePlace();
  return useQuery({
    queryKey: [account.id, 'webhooks'],
    queryFn: ({ signal }) => api.get<WebhooksView>(`${base}/webhooks`, { signal }),
  });
}
