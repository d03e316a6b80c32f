import { Tabs } from '@mantine/core';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useSession } from '../../session.tsx';
import { Page } from '../../ui/Page.tsx';
import { Empty } from '../../ui/states.tsx';
import { Alerts } from './Alerts.tsx';
import { Appearance } from './Appearance.tsx';
import { AuditLog } from './AuditLog.tsx';
import { Profile } from './Profile.tsx';
import { settings_tabs, type SettingsTab } from './search.ts';
import { Security } from './Security.tsx';
import { Team } from './Team.tsx';

const route = getRouteApi('/signed-in/settings');

/** Settings of the person, and the people of the account. */
export function Settings() {
  const { account: chosen_account } = useSession();
  // Without the second factor that it asks for, nothing of it is shown.
  const account = chosen_account?.needs_second_factor ? undefined : chosen_account;
  const has_team = account !== undefined && !account.is_limited;
  const may_audit = account?.rights.includes('members') === true;
  const tabs = settings_tabs.filter((name) => {
    if (name === 'audit') return may_audit;
    return has_team || (name !== 'team' && name !== 'alerts');
  });
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
        <TabList tabs={tabs} />
        <Tabs.Panel value="profile">
          <Profile />
        </Tabs.Panel>
        <Tabs.Panel value="security">
          <Security />
        </Tabs.Panel>
        {has_team && (
          <Tabs.Panel value="team">
            <Team key={account.id} />
          </Tabs.Panel>
        )}
        {has_team && (
          <Tabs.Panel value="alerts">
            <Alerts key={account.id} />
          </Tabs.Panel>
        )}
        {account && (
          <Tabs.Panel value="audit">
            {may_audit ? (
              <AuditLog />
            ) : (
              <Empty title="The audit log is for owners">Ask an owner of {account.name} what is in it.</Empty>
            )}
          </Tabs.Panel>
        )}
        <Tabs.Panel value="appearance">
          <Appearance />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

const tab_names: { readonly [tab in SettingsTab]: string } = {
  profile: 'Profile',
  security: 'Security',
  team: 'Team',
  alerts: 'Alerts',
  audit: 'Audit log',
  appearance: 'Appearance',
};

function TabList({ tabs }: { tabs: readonly SettingsTab[] }) {
  return (
    <Tabs.List mb="md">
      {tabs.map((tab) => (
        <Tabs.Tab key={tab} px={{ base: 'xs', sm: 'md' }} value={tab}>
          {tab_names[tab]}
        </Tabs.Tab>
      ))}
    </Tabs.List>
  );
}
