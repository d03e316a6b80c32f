import {
  ActionIcon,
  AppShell,
  Badge,
  Box,
  Burger,
  Group,
  Menu,
  NavLink,
  ScrollArea,
  Text,
  Tooltip,
  UnstyledButton,
  useMantineColorScheme,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import {
  AcademicCapIcon,
  BookOpenIcon,
  ComputerDesktopIcon,
  MoonIcon,
  SunIcon,
  UserCircleIcon,
} from '@heroicons/react/24/outline';
import { useQueryClient } from '@tanstack/react-query';
import { Link, Outlet, useNavigate, useRouterState } from '@tanstack/react-router';
import { lazy, Suspense, useEffect } from 'react';
import { below } from '../below.ts';
import { api } from '../api.ts';
import { addressOf, forgetView, usePlace, useSession } from '../session.tsx';
import { useBalance } from '../ui/balance.ts';
import { Money, moneyText } from '../ui/Money.tsx';
import { Page } from '../ui/Page.tsx';
import { roleName } from '../ui/roles.ts';
import { Empty } from '../ui/states.tsx';
import { LookedAt } from './LookedAt.tsx';
import { isAboutAll, operating, pagesFor, type Item } from './pages.ts';
import { NeedsSecondFactor } from './NeedsSecondFactor.tsx';
import { Search } from './Search.tsx';
import { WithoutAccount } from './WithoutAccount.tsx';

/** Loaded for people with several accounts: most have one. */
const AccountSelect = lazy(() =>
  import('./AccountSelect.tsx').then(({ AccountSelect: component }) => ({ default: component })),
);

/** The frame of every page: navigation, the account, the person. */
export function AppFrame() {
  const { me, account } = useSession();
  const [open, { toggle, close }] = useDisclosure();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const needsNoAccount = useNeedsNoAccount();
  useEffect(close, [path, close]);
  useEffect(showWhereOneIs, [path]);
  return (
    <AppShell
      header={{ height: 60 }}
      navbar={{ width: 232, breakpoint: 'sm', collapsed: { mobile: !open } }}
      padding={{ base: 'md', md: 'xl' }}
    >
      <a href="#main" className="skip-link">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="xs" wrap="nowrap">
            <Burger
              opened={open}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-label={open ? 'Close the menu' : 'Open the menu'}
            />
            <Brand />
            <Box visibleFrom="sm">{account && <AccountSwitch />}</Box>
          </Group>
          <Tools />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar aria-label="Pages" className="menu" {...(open && { 'data-open': true })}>
        <ScrollArea type="hover" scrollbarSize={6} p="sm">
          <PhoneTools />
          <Items items={pagesFor(account)} path={path} />
          <NavLink
            component="a"
            href={below('/guide')}
            label="Guide"
            leftSection={<AcademicCapIcon width={19} aria-hidden />}
          />
          <NavLink
            component="a"
            href={below('/guide/reference')}
            label="API reference"
            leftSection={<BookOpenIcon width={19} aria-hidden />}
          />
          {me.user.is_operator && (
            <Box mt="md">
              <Text size="xs" fw={600} c="dimmed" px="sm" pb={4}>
                Operator
              </Text>
              <Items items={operating} path={path} color="orange" />
            </Box>
          )}
        </ScrollArea>
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1} style={{ outline: 'none' }} onFocus={close}>
        <Box maw={1240} mx="auto">
          <LookedAt />
          <Shown needsNoAccount={needsNoAccount} path={path} />
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}

/** The page, or what has to be done before it opens. */
function Shown({ needsNoAccount, path }: { needsNoAccount: boolean; path: string }) {
  const { me, account } = useSession();
  const is_operating = useIsShown(/^\/signed-in\/operating(\/|$)/);
  const chooses_account = useIsShown(/^\/signed-in\/device$/);
  if (is_operating && me.operator_needs_second_factor)
    return <NeedsSecondFactor who="This service asks its operators" />;
  // What one person typed, or was shown once, does not stay in the page for the next who signs in, nor in one account for another.
  const person = me.user.id;
  if (needsNoAccount) return <Outlet key={person} />;
  if (!account) return <WithoutAccount />;
  if (account.needs_second_factor) return <NeedsSecondFactor who={`${account.name} asks its members`} />;
  if (account.has_no_project) return <NoProject name={account.name} />;
  if (account.is_limited && isAboutAll(path)) return <AboutAll name={account.name} />;
  return <Outlet key={chooses_account ? person : `${person} ${account.id}`} />;
}

/** For members who are limited to projects, and have none. */
function NoProject({ name }: { name: string }) {
  return (
    <Page title={name}>
      <Empty title="You have no project here">
        An owner has limited you to projects of {name}, and there is none left for you. Ask an owner to give you one.
      </Empty>
    </Page>
  );
}

/** For members who are limited to projects, in place of a page that is about the whole account. */
function AboutAll({ name }: { name: string }) {
  return (
    <Page title={name}>
      <Empty title="This page is about the whole account">
        You see only some projects of {name}. Ask an owner of the account.
      </Empty>
    </Page>
  );
}

/** At the top of the menu, where a phone has no room for them in the header. */
function PhoneTools() {
  const { account } = useSession();
  return (
    <Group hiddenFrom="sm" justify="space-between" wrap="nowrap" mb="xs">
      {account ? <AccountSwitch /> : <span />}
      <ThemeSwitch />
    </Group>
  );
}

/** The right side of the header. */
function Tools() {
  const { account } = useSession();
  return (
    <Group gap="xs" wrap="nowrap">
      <Search />
      {account && !account.needs_second_factor && !account.is_limited && <BalancePill />}
      <Box visibleFrom="sm">
        <ThemeSwitch />
      </Box>
      <PersonMenu />
    </Group>
  );
}

function Brand() {
  return (
    <Link to="/" className="touch" style={{ textDecoration: 'none', color: 'inherit' }} aria-label="Medley, home">
      <Group gap={8} wrap="nowrap">
        <img src={below('/icon.svg')} width={28} height={28} alt="" />
        <Text fw={700} size="lg" visibleFrom="xs">
          Medley
        </Text>
      </Group>
    </Link>
  );
}

/** Tells whether the page needs no account: operators' pages and one's own settings. */
function useNeedsNoAccount(): boolean {
  return useIsShown(/^\/signed-in\/(operating|settings)(\/|$)/);
}

/** Tells whether a page with such an id is shown; the address may be ahead of it. */
function useIsShown(route: RegExp): boolean {
  return useRouterState({ select: ({ matches }) => matches.some(({ routeId }) => route.test(routeId)) });
}

/** On a low screen the menu is longer than its place. After scrollIntoView, Tab would go on from there. */
function showWhereOneIs(): void {
  const item = document.querySelector('nav [aria-current=page]');
  const place = item?.closest('.mantine-ScrollArea-viewport');
  if (!item || !place) return;
  const [of_item, of_place] = [item.getBoundingClientRect(), place.getBoundingClientRect()];
  place.scrollTop += Math.max(0, of_item.bottom - of_place.bottom) + Math.min(0, of_item.top - of_place.top);
}

function Items({ items, path, color }: { items: readonly Item[]; path: string; color?: string }) {
  return items.map(({ to, label, icon: Icon }) => {
    const active = to === '/' || to === '/admin' ? path === to : path === to || path.startsWith(`${to}/`);
    return (
      <NavLink
        key={to}
        component={Link}
        to={to}
        activeOptions={{ exact: to === '/' || to === '/admin' }}
        label={label}
        active={active}
        {...(color && { color })}
        {...(active && { 'aria-current': 'page' as const })}
        leftSection={<Icon width={19} aria-hidden />}
        style={{ borderRadius: 8 }}
      />
    );
  });
}

function AccountSwitch() {
  const { me, account } = usePlace();
  const name = (
    <Text size="sm" c="dimmed" truncate maw={180}>
      {account.name}
    </Text>
  );
  if (me.accounts.length < 2) return name;
  return (
    <Suspense fallback={name}>
      <AccountSelect />
    </Suspense>
  );
}

/** Always in sight: what can be spent. It leads to where the money went. */
function BalancePill() {
  const { data } = useBalance({ refetchInterval: 15_000 });
  if (!data) return null;
  return (
    <Tooltip label="Available: the balance minus the holds for running work">
      <Badge
        component={Link}
        to="/billing"
        variant="light"
        size="lg"
        tt="none"
        className="touch"
        style={{ cursor: 'pointer' }}
        aria-label={`Available: ${moneyText(data.available)}. Go to Billing`}
      >
        <Money cost={data.available} />
      </Badge>
    </Tooltip>
  );
}

const themes = { auto: 'As the system', light: 'Light', dark: 'Dark' } as const;
const theme_icons = { auto: ComputerDesktopIcon, light: SunIcon, dark: MoonIcon };

function ThemeSwitch() {
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const Icon = theme_icons[colorScheme];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <ActionIcon variant="subtle" size="lg" color="gray" aria-label={`Colours: ${themes[colorScheme]}`}>
          <Icon width={20} aria-hidden />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {(['auto', 'light', 'dark'] as const).map((name) => (
          <Menu.Item key={name} onClick={() => setColorScheme(name)}>
            {themes[name]}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function PersonMenu() {
  const { me, account } = useSession();
  const queries = useQueryClient();
  const navigate = useNavigate();
  const signOut = async () => {
    await api.post('/auth/sign-out');
    forgetView();
    queries.clear();
    await navigate({ to: '/sign-in' });
  };
  return (
    <Menu position="bottom-end" width={240}>
      <Menu.Target>
        <UnstyledButton aria-label={`You: ${me.user.name}`} className="touch" style={{ display: 'flex' }}>
          <UserCircleIcon width={28} strokeWidth={1.25} aria-hidden />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {me.user.name}
          <br />
          {addressOf(me.user) ?? 'no e-mail address yet'}
          <br />
          {account ? `${roleName(account.role)} of ${account.name}` : 'operator'}
        </Menu.Label>
        <Menu.Item component={Link} to="/settings">
          Settings
        </Menu.Item>
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
