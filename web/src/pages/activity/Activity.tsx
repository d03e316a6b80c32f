import { Tabs } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useState } from 'react';
import { Page } from '../../ui/Page.tsx';
import { ActivityList } from './ActivityList.tsx';
import { useChosenColumns } from './chosen-columns.ts';
import { ListActions } from './ListActions.tsx';
import { RefusedToday } from './RefusedToday.tsx';
import type { ActivitySearch, ActivityTab } from './search.ts';
import { useLive } from './useLive.ts';

const route = getRouteApi('/signed-in/activity');

const tabs: readonly ActivityTab[] = ['all', 'tasks', 'chats'];
const tab_names: Readonly<Record<ActivityTab, string>> = { all: 'All', tasks: 'Generations', chats: 'Chat' };

/** The page of tasks and chat calls: in one list, or each kind in its own. */
export function Activity() {
  const search = route.useSearch();
  const navigate = useNavigate();
  const tab = search.tab ?? 'all';
  const [is_live, setIsLive] = useState(true);
  const columns = useChosenColumns(tab);
  const by_cost = search.sort === 'cost';
  useLive(is_live && !by_cost); // to compare everything anew at each call would be too much
  const set = (change: ActivitySearch) =>
    void navigate({ to: '/activity', search: { ...search, ...change }, replace: true });
  const show = (next: string | null) => {
    const { status: _, outcome: __, sort: ___, ...others } = search;
    const tab_search = next === 'chats' || next === 'tasks' ? next : undefined;
    void navigate({ to: '/activity', search: { ...others, tab: tab_search } });
  };
  return (
    <Page title="Activity" about="Generations and chat calls of this account.">
      <RefusedToday />
      <Tabs value={tab} onChange={show}>
        <Tabs.List mb="md">
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name}>
              {tab_names[name]}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {tabs.map((name) => (
          <Tabs.Panel key={name} value={name}>
            {tab === name && (
              <ActivityList
                tab={name}
                search={search}
                set={set}
                chosen={columns.chosen}
                is_live={is_live && !by_cost}
                actions={
                  <ListActions tab={name} search={search} {...columns} is_live={is_live} setIsLive={setIsLive} />
                }
              />
            )}
          </Tabs.Panel>
        ))}
      </Tabs>
    </Page>
  );
}
