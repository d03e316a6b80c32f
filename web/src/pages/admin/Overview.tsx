import { SimpleGrid, Stack, Table, Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import type { AdminFailure, AdminFailures, AdminOverview, Light } from '../../../../src/dashboard/views/admin.ts';
import type { Cost } from '../../../../src/dashboard/views/common.ts';
import { api } from '../../api.ts';
import { durationText } from '../../ui/duration.ts';
import { LinkTo } from '../../ui/LinkTo.tsx';
import { ListTable } from '../../ui/ListTable.tsx';
import { Card, Figure, Page } from '../../ui/Page.tsx';
import { Loaded } from '../../ui/states.tsx';
import { Status } from '../../ui/Status.tsx';
import { Time } from '../../ui/Time.tsx';
import { MarginBars, monthText } from './MarginBars.tsx';

/** The state of the service at a glance. */
export function Overview() {
  const query = useQuery({
    queryKey: ['admin', 'overview'],
    queryFn: ({ signal }) => api.get<AdminOverview>('/dash/admin/overview', { signal }),
    refetchInterval: 10_000,
  });
  return (
    <Page title="Overview" about="The state of this service, over all accounts.">
      <Loaded query={query} height={520}>
        {(view) => (
          <Stack gap="lg">
            <SimpleGrid
              cols={{ base: 1, xs: 2, md: 4, xl: 7 }}
              component="ul"
              p={0}
              m={0}
              style={{ listStyle: 'none' }}
            >
              {view.lights.map((light) => (
                <LightCard key={light.name} light={light} />
              ))}
            </SimpleGrid>
            <Figures view={view} />
            <TopFailures />
            <Card title="Margins of this month" side={<LinkTo href="/admin/prices">Prices & margins</LinkTo>}>
              {view.margins.every(({ revenue, upstream_cost }) => isZero(revenue) && isZero(upstream_cost)) ? (
                <Text c="dimmed">No charges this month yet.</Text>
              ) : (
                <MarginBars
                  rows={view.margins}
                  by="model"
                  month={monthText(new Date().toISOString().slice(0, 7))}
                  label={({ name }) => name ?? 'unknown'}
                />
              )}
            </Card>
          </Stack>
        )}
      </Loaded>
    </Page>
  );
}

function isZero({ exact }: Cost): boolean {
  return /^-?[0.]+$/.test(exact);
}

/** Returns the page about a light, by the name that the service has for it. */
function pageOf(light: string): string | undefined {
  switch (light) {
    case 'Queue':
    case 'Workers':
      return '/admin/queue';
    case 'Routes':
      return '/admin/models?state=open';
    case 'Generations':
      return '/admin/failures';
    default:
      return undefined;
  }
}

function LightCard({ light: { name, state, detail } }: { light: Light }) {
  const page = pageOf(name);
  return (
    <li>
      <Card p="sm" h="100%">
        <Stack gap={6} align="flex-start">
          <Text fw={600}>
            {page === undefined ? (
              name
            ) : (
              <LinkTo href={page} inherit>
                {name}
              </LinkTo>
            )}
          </Text>
          <Status of={state} />
          <Text size="sm" c="dimmed">
            {detail.slice(0, 1).toUpperCase() + detail.slice(1)}
          </Text>
        </Stack>
      </Card>
    </li>
  );
}

function Figures({ view: { tasks, chats, jobs } }: { view: AdminOverview }) {
  const count = (value: number) => value.toLocaleString('en-US');
  const time = (value: number | null) => (value === null ? '–' : durationText(value));
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      <Card title="Generations">
        <SimpleGrid cols={{ base: 2, xs: 3 }}>
          <Figure name="Queued" value={count(tasks.queued)} />
          <Figure name="Running" value={count(tasks.running)} />
          <Figure
            name="Oldest waiting"
            value={tasks.oldest_queued_s === null ? '–' : durationText(tasks.oldest_queued_s * 1000)}
          />
          <Figure name="Succeeded" value={count(tasks.succeeded_24h)} note="in 24 hours" />
          <Figure name="Failed" value={count(tasks.failed_24h)} note="in 24 hours" />
          <Figure name="Waiting jobs" value={count(jobs)} note="in all queues" />
        </SimpleGrid>
      </Card>
      <Card title="Chat">
        <SimpleGrid cols={2}>
          <Figure name="Calls" value={count(chats.calls_24h)} note="in 24 hours" />
          <Figure name="Failed" value={count(chats.failed_24h)} note="in 24 hours" />
          <Figure name="First token" value={time(chats.first_words_p50_ms)} note="median time" />
          <Figure name="Slow first token" value={time(chats.first_words_p95_ms)} note="p95" />
        </SimpleGrid>
      </Card>
    </SimpleGrid>
  );
}

const shown_max = 5;

function TopFailures() {
  const query = useQuery({
    queryKey: ['admin', 'failures', undefined],
    queryFn: ({ signal }) => api.get<AdminFailures>('/dash/admin/failures', { signal }),
    refetchInterval: 30_000,
  });
  return (
    <Card title="Routes that fail most" side={<LinkTo href="/admin/failures">All failures</LinkTo>}>
      <Loaded query={query} height={120}>
        {({ data }) => {
          const routes = topRoutes(data);
          if (routes.length === 0) return <Text c="dimmed">No route has failed in the last 7 days.</Text>;
          return (
            <ListTable
              caption="Routes that failed most in the last 7 days"
              columns={[{ name: 'Route' }, { name: 'Failed attempts', align: 'right' }, { name: 'Last' }]}
            >
              {routes.map(({ route, count, last_at }) => (
                <Table.Tr key={route}>
                  <Table.Td>
                    <LinkTo href={`/admin/failures?route=${encodeURIComponent(route)}`} size="sm">
                      {route}
                    </LinkTo>
                  </Table.Td>
                  <Table.Td ta="right" className="figure">
                    {count.toLocaleString('en-US')}
                  </Table.Td>
                  <Table.Td style={{ whiteSpace: 'nowrap' }}>
                    <Time at={last_at} ago />
                  </Table.Td>
                </Table.Tr>
              ))}
            </ListTable>
          );
        }}
      </Loaded>
    </Card>
  );
}

type Failing = Pick<AdminFailure, 'route' | 'count' | 'last_at'>;

function topRoutes(groups: readonly AdminFailure[]): Failing[] {
  const routes = new Map<string, Failing>();
  for (const { route, count, last_at } of groups) {
    const before = routes.get(route);
    const last = before !== undefined && before.last_at > last_at ? before.last_at : last_at;
    routes.set(route, { route, count: count + (before?.count ?? 0), last_at: last });
  }
  return [...routes.values()].toSorted((a, b) => b.count - a.count).slice(0, shown_max);
}
