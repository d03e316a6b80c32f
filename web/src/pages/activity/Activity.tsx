import { Tabs } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { Page } from '../../ui/Page.tsx';
import { Chats } from './Chats.tsx';
import type { ActivitySearch } from './search.ts';
import { Tasks } from './Tasks.tsx';

const route = getRouteApi('/signed-in/activity');

/** The page of tasks and chat calls, newest first. */
export function Activity() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const tab = search.tab ?? 'tasks';
  const set = (change: ActivitySearch) =>
    void navigate({ to: '/activity', search: { ...search, ...change }, replace: true });
  return (
    <Page title="Activity" about="Generations and chat calls of this account.">
      <Tabs
        value={tab}
        onChange={(next) => void navigate({ to: '/activity', search: next === 'chats' ? { tab: 'chats' } : {} })}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="tasks">Generations</Tabs.Tab>
          <Tabs.Tab value="chats">Chat</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="tasks">{tab === 'tasks' && <Tasks search={search} set={set} />}</Tabs.Panel>
        <Tabs.Panel value="chats">{tab === 'chats' && <Chats search={search} set={set} />}</Tabs.Panel>
      </Tabs>
    </Page>
  );
}
