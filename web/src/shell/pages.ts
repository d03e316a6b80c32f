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

/** A page of the menu. */
export type Item = { to: string; label: string; icon: Icon };

/** Pages of an account. */
export const own: readonly Item[] = [
  { to: '/', label: 'Home', icon: HomeIcon },
  { to: '/playground', label: 'Playground', icon: PlayCircleIcon },
  { to: '/models', label: 'Models', icon: CubeIcon },
  { to: '/activity', label: 'Activity', icon: ListBulletIcon },
  { to: '/usage', label: 'Usage', icon: ChartBarIcon },
  { to: '/speed', label: 'Speed', icon: BoltIcon },
  { to: '/billing', label: 'Billing', icon: BanknotesIcon },
  { to: '/budgets', label: 'Budgets', icon: ReceiptPercentIcon },
  { to: '/keys', label: 'API keys', icon: KeyIcon },
  { to: '/webhooks', label: 'Webhooks', icon: PaperAirplaneIcon },
  { to: '/settings', label: 'Settings', icon: Cog6ToothIcon },
];

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
