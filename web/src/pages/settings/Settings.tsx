import { Tabs } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useSession } from '../../session.tsx';
import { Page } from '../../ui/Page.tsx';
import { Alerts } from './Alerts.tsx';
import { Appearance } from './Appearance.tsx';
import { Profile } from './Profile.tsx';
import { settings_tabs } from './search.ts';
import { Security } from './Security.tsx';
import { Team } from './Team.tsx';

const route = getRouteApi('/signed-in/settings');

/** One's own things, and the people of the account. */
export function Settings() {
  const { account } = useSession();
  const { tab = 'profile' } = route.useSearch();
  const navigate = useNavigate();
  return (
    <Page title="Settings">
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) => {
          const chosen = settings_tabs.find((name) => name === next);
          void navigate({
            to: '/settings',
            search: chosen === 'profile' || chosen === undefined ? {} : { tab: chosen },
          });
        }}
      >
        <Tabs.List mb="md">
          <Tabs.Tab px={{ base: 'xs', sm: 'md' }} value="profile">
            Profile
          </Tabs.Tab>
          <Tabs.Tab px={{ base: 'xs', sm: 'md' }} value="security">
            Security
          </Tabs.Tab>
          {account && (
            <Tabs.Tab px={{ base: 'xs', sm: 'md' }} value="team">
              Team
            </Tabs.Tab>
          )}
          {account && (
            <Tabs.Tab px={{ base: 'xs', sm: 'md' }} value="alerts">
              Alerts
            </Tabs.Tab>
          )}
          <Tabs.Tab px={{ base: 'xs', sm: 'md' }} value="appearance">
            Appearance
          </Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="profile">
          <Profile />
        </Tabs.Panel>
        <Tabs.Panel value="security">
          <Security />
        </Tabs.Panel>
        {account && (
          <Tabs.Panel value="team">
            <Team />
          </Tabs.Panel>
        )}
        {account && (
          <Tabs.Panel value="alerts">
            <Alerts />
          </Tabs.Panel>
        )}
        <Tabs.Panel value="appearance">
          <Appearance />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}
