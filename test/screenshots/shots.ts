import type { Page } from 'playwright-core';
import type { World } from './world.ts';

export type Look = 'light' | 'dark' | 'phone';

/** A picture: whose page, in which state, and what is done before it is taken. */
export type Shot = {
  name: string;
  path: string;
  who: keyof World['who'] | 'nobody';
  /** All three where nothing is said. */
  looks?: readonly Look[];
  /** `loading`: nothing of the page is answered. `error`: everything is answered with a 500. */
  state?: 'loading' | 'error';
  /** Of the browser; English where nothing is said. */
  locale?: string;
  prepare?: (page: Page) => Promise<void>;
  /** Shows times that PostgreSQL has written, which are real ones. */
  real_time?: true;
  /** It makes calls, which would be seen in pictures that are taken after it. */
  last?: true;
};

const clip = 'studio/clip-with-a-remarkably-long-name-2.1-preview';

const button = (page: Page, name: string | RegExp) => page.getByRole('button', { name }).first();

/** Every page of the dashboard with work in it. */
export function fullShots({ tasks, chat, accounts, deliveries, invitation }: World): Shot[] {
  const own = (name: string, path: string, prepare?: Shot['prepare']): Shot => {
    return { name, path, who: 'owner', ...(prepare && { prepare }) };
  };
  const admin = (name: string, path: string): Shot => ({ name: `admin-${name}`, path, who: 'operator' });
  return [
    own('home', '/'),
    own('playground', `/playground?model=studio/poster&task=${tasks.poster}`),
    own('playground-result', `/playground?model=studio/poster&task=${tasks.poster}&run=${tasks.poster}`),
    { ...own('playground-chat', '/playground?model=studio/assistant&beside=sandbox/chat', talk), last: true },
    own('models', '/models'),
    own('model', '/models/studio/poster'),
    own('activity', '/activity'),
    own('activity-tasks', '/activity?tab=tasks'),
    own('activity-chats', '/activity?tab=chats'),
    own('task-picture', `/tasks/${tasks.poster}`),
    own('task-film', `/tasks/${tasks.clip_task}`),
    own('task-sound', `/tasks/${tasks.melody}`),
    own('task-failed', `/tasks/${tasks.failed}`),
    own('task-moved-on', `/tasks/${tasks.moved}`),
    own('task-running', `/tasks/${tasks.running}`),
    own('chat', `/chats/${chat}`),
    own('usage', '/usage'),
    own('usage-keys', '/usage?period=7d&group=key'),
    own('speed', '/speed?period=30d'),
    own('billing', '/billing'),
    own('billing-invoices', '/billing?tab=invoices'),
    own('billing-details', '/billing?tab=details'),
    own('keys', '/keys'),
    own('webhooks', '/webhooks'),
    own('webhooks-setup', '/webhooks?tab=setup'),
    own('delivery', `/webhooks/${deliveries.delivered}`),
    own('delivery-failing', `/webhooks/${deliveries.failing}`),
    own('settings-profile', '/settings'),
    own('settings-security', '/settings?tab=security'),
    own('settings-team', '/settings?tab=team'),
    own('settings-alerts', '/settings?tab=alerts'),
    own('settings-appearance', '/settings?tab=appearance'),
    own('not-found', '/settings/nowhere'),
    { name: 'sign-in', path: '/sign-in', who: 'nobody' },
    { name: 'invitation', path: `/invitation?id=${invitation}`, who: 'nobody' },
    { name: 'reset-password', path: '/reset-password?token=x', who: 'nobody' },
    admin('overview', '/admin'),
    admin('accounts', '/admin/accounts'),
    admin('account', `/admin/accounts/${accounts.main}`),
    admin('account-long-name', `/admin/accounts/${accounts.long}`),
    admin('models', '/admin/models'),
    { ...admin('providers', '/admin/providers'), real_time: true },
    admin('calls', '/admin/calls?period=30d'),
    admin('failures', '/admin/failures'),
    admin('speed', '/admin/speed?period=30d&group=route'),
    { ...admin('queue', '/admin/queue'), real_time: true },
    admin('alerts', '/admin/alerts'),
    admin('deliveries', '/admin/deliveries'),
    admin('prices', '/admin/prices'),
    admin('audit', '/admin/audit'),
    admin('configuration', '/admin/configuration'),
  ];
}

async function talk(page: Page): Promise<void> {
  await page.getByRole('textbox', { name: /message/i }).fill('Write a product description for a ceramic teapot.');
  await page.keyboard.press('Control+Enter');
  await page
    .getByText(/tokens/)
    .first()
    .waitFor();
}

/** Dialogs, and what one sees with fewer rights. */
export function momentShots({ accounts }: World): Shot[] {
  const looks = ['light', 'dark', 'phone'] as const;
  return [
    { name: 'keys-create', path: '/keys', who: 'owner', looks, prepare: (page) => button(page, /^Create/).click() },
    { name: 'keys-viewer', path: '/keys', who: 'viewer', looks: ['light'] },
    { name: 'home-viewer', path: '/', who: 'viewer', looks: ['light'] },
    { name: 'home-polish', path: '/', who: 'owner', looks, locale: 'pl-PL' },
    { name: 'billing-polish', path: '/billing', who: 'owner', looks, locale: 'pl-PL' },
    { name: 'settings-team-viewer', path: '/settings?tab=team', who: 'viewer', looks: ['light'] },
    {
      name: 'menu',
      path: '/',
      who: 'operator',
      looks: ['phone'],
      prepare: (page) => button(page, 'Open the menu').click(),
    },
    {
      name: 'admin-credit',
      path: `/admin/accounts/${accounts.main}`,
      who: 'operator',
      looks,
      prepare: (page) => button(page, /^Credit/).click(),
    },
  ];
}

const listed = [
  ['home', '/', 'owner'],
  ['playground', '/playground', 'owner'],
  ['models', '/models', 'owner'],
  ['activity-tasks', '/activity?tab=tasks', 'owner'],
  ['activity-chats', '/activity?tab=chats', 'owner'],
  ['usage', '/usage', 'owner'],
  ['billing', '/billing', 'owner'],
  ['billing-invoices', '/billing?tab=invoices', 'owner'],
  ['keys', '/keys', 'owner'],
  ['webhooks', '/webhooks', 'owner'],
  ['settings-team', '/settings?tab=team', 'owner'],
  ['admin-overview', '/admin', 'operator'],
  ['admin-accounts', '/admin/accounts', 'operator'],
  ['admin-audit', '/admin/audit', 'operator'],
] as const;

/** Lists the shots of a page before anything is there, while it comes, and when it does not. */
export function stateShots({ tasks }: World): Shot[] {
  const bare = (name: string, path: string): Shot => ({ name: `${name}-empty`, path, who: 'newcomer' });
  return [
    bare('home', '/'),
    bare('activity-tasks', '/activity?tab=tasks'),
    bare('activity-chats', '/activity?tab=chats'),
    bare('usage', '/usage'),
    bare('billing', '/billing'),
    bare('billing-invoices', '/billing?tab=invoices'),
    bare('keys', '/keys'),
    bare('webhooks', '/webhooks'),
    bare('settings-team', '/settings?tab=team'),
    {
      name: 'activity-tasks-filtered',
      path: `/activity?status=failed&model=${encodeURIComponent(clip)}`,
      who: 'owner',
      looks: ['light'],
    },
    { name: 'task-unknown', path: `/tasks/${tasks.poster.slice(0, -2)}00`, who: 'owner', looks: ['light'] },
    { name: 'task-loading', path: `/tasks/${tasks.poster}`, who: 'owner', state: 'loading', looks: ['light'] },
    { name: 'task-error', path: `/tasks/${tasks.poster}`, who: 'owner', state: 'error', looks: ['light'] },
    ...listed.flatMap(([name, path, who]): Shot[] => [
      { name: `${name}-loading`, path, who, state: 'loading', looks: ['light'] },
      { name: `${name}-error`, path, who, state: 'error', looks: ['dark'] },
    ]),
  ];
}
