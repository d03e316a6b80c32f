import {
  BanknotesIcon,
  BellAlertIcon,
  BoltIcon,
  ChartBarIcon,
  ClipboardDocumentListIcon,
  CloudIcon,
  Cog6ToothIcon,
  CubeIcon,
  HomeIcon,
  KeyIcon,
  ListBulletIcon,
  PaperAirplaneIcon,
  PlayCircleIcon,
  QueueListIcon,
  ReceiptPercentIcon,
  ScaleIcon,
  ShieldExclamationIcon,
  SignalIcon,
  UsersIcon,
} from '@heroicons/react/24/outline';
import type { ComponentType, SVGProps } from 'react';

type Icon = ComponentType<SVGProps<SVGSVGElement>>;

/** A page of the menu. `about_all`: not for members who are limited to projects. */
export type Item = { to: string; label: string; icon: Icon; about_all?: true };

/** Pages of an account. */
const own: readonly Item[] = [
  { to: '/', label: 'Home', icon: HomeIcon },
  { to: '/playground', label: 'Playground', icon: PlayCircleIcon },
  { to: '/models', label: 'Models', icon: CubeIcon },
  { to: '/activity', label: 'Activity', icon: ListBulletIcon },
  { to: '/usage', label: 'Usage', icon: ChartBarIcon },
  { to: '/speed', label: 'Speed', icon: BoltIcon },
  { to: '/billing', label: 'Billing', icon: BanknotesIcon, about_all: true },
  { to: '/budgets', label: 'Budgets', icon: ReceiptPercentIcon },
  { to: '/keys', label: 'API keys', icon: KeyIcon },
  { to: '/webhooks', label: 'Webhooks', icon: PaperAirplaneIcon, about_all: true },
  { to: '/settings', label: 'Settings', icon: Cog6ToothIcon },
];

/** Pages of the account that this person may see; without an account, those of the person alone. */
export function pagesFor(account: { is_limited: boolean } | undefined): readonly Item[] {
  if (!account) return own.filter(({ to }) => to === '/settings');
  return account.is_limited ? own.filter(({ about_all }) => !about_all) : own;
}

/** Tells whether an address is about all of an account. */
export function isAboutAll(path: string): boolean {
  return own.some(({ to, about_all }) => about_all && (path === to || path.startsWith(`${to}/`)));
}

/** Pages of operators. */
export const operating: readonly Item[] = [
  { to: '/admin', label: 'Overview', icon: SignalIcon },
  { to: '/admin/accounts', label: 'Accounts', icon: UsersIcon },
  { to: '/admin/providers', label: 'Providers', icon: CloudIcon },
  { to: '/admin/models', label: 'Models & routes', icon: CubeIcon },
  { to: '/admin/calls', label: 'Calls', icon: ListBulletIcon },
  { to: '/admin/failures', label: 'Failures', icon: ShieldExclamationIcon },
  { to: '/admin/speed', label: 'Speed', icon: BoltIcon },
  { to: '/admin/queue', label: 'Queue & workers', icon: QueueListIcon },
  { to: '/admin/alerts', label: 'Alerts', icon: BellAlertIcon },
  { to: '/admin/deliveries', label: 'Deliveries', icon: PaperAirplaneIcon },
  { to: '/admin/prices', label: 'Prices & margins', icon: ScaleIcon },
  { to: '/admin/audit', label: 'Audit log', icon: ClipboardDocumentListIcon },
  { to: '/admin/configuration', label: 'Configuration', icon: Cog6ToothIcon },
];
