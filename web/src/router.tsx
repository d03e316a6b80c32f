import { Center, Loader } from '@mantine/core';
import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Outlet,
  redirect,
} from '@tanstack/react-router';
import { own_path } from './below.ts';
import {
  readAccountsSearch,
  readAuditSearch,
  readCallsSearch,
  readDeliveriesSearch,
  readFailuresSearch,
  readPricesSearch,
  readRoutesSearch,
} from './pages/admin/search.ts';
import { readActivitySearch } from './pages/activity/search.ts';
import { readDeviceSearch } from './pages/device/search.ts';
import { readKeysSearch } from './pages/keys/search.ts';
import { readModelsSearch } from './pages/models/search.ts';
import { readPlaygroundSearch } from './pages/playground/search.ts';
import { readWebhooksSearch } from './pages/webhooks/search.ts';
import { readSettingsSearch } from './pages/settings/search.ts';
import { readBillingSearch } from './pages/billing/search.ts';
import { readUsageSearch } from './pages/usage/search.ts';
import { readSpeedSearch } from './pages/speed/search.ts';
import { parseSearch, stringifySearch } from './ui/search-text.ts';
import { Failed } from './ui/states.tsx';
import { Updated } from './ui/Updated.tsx';
import { isMissingPart } from './updated.ts';
import { NotFound } from './shell/NotFound.tsx';
import { SignedIn } from './shell/SignedIn.tsx';

/** Every page of the dashboard with its address: the table of contents of the web app. */

const root = createRootRoute({ component: Outlet, notFoundComponent: NotFound });

const signIn = createRoute({
  getParentRoute: () => root,
  path: '/sign-in',
  component: lazyRouteComponent(() => import('./pages/sign-in/SignIn.tsx'), 'SignIn'),
});

const invitation = createRoute({
  getParentRoute: () => root,
  path: '/invitation',
  component: lazyRouteComponent(() => import('./pages/sign-in/Invitation.tsx'), 'Invitation'),
});

const resetPassword = createRoute({
  getParentRoute: () => root,
  path: '/reset-password',
  component: lazyRouteComponent(() => import('./pages/sign-in/ResetPassword.tsx'), 'ResetPassword'),
});

const confirmEmail = createRoute({
  getParentRoute: () => root,
  path: '/confirm-email',
  component: lazyRouteComponent(() => import('./pages/sign-in/ConfirmEmail.tsx'), 'ConfirmEmail'),
});

const status = createRoute({
  getParentRoute: () => root,
  path: '/status',
  component: lazyRouteComponent(() => import('./pages/status/Status.tsx'), 'Status'),
});

/** Everything below needs somebody who has signed in. */
const signedIn = createRoute({ getParentRoute: () => root, id: 'signed-in', component: SignedIn });

const home = createRoute({
  getParentRoute: () => signedIn,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/home/Home.tsx'), 'Home'),
});

const activity = createRoute({
  getParentRoute: () => signedIn,
  path: '/activity',
  validateSearch: readActivitySearch,
  component: lazyRouteComponent(() => import('./pages/activity/Activity.tsx'), 'Activity'),
});

const task = createRoute({
  getParentRoute: () => signedIn,
  path: '/tasks/$id',
  component: lazyRouteComponent(() => import('./pages/task/TaskPage.tsx'), 'TaskPage'),
});

const chat = createRoute({
  getParentRoute: () => signedIn,
  path: '/chats/$id',
  component: lazyRouteComponent(() => import('./pages/chat/ChatPage.tsx'), 'ChatPage'),
});

const keys = createRoute({
  getParentRoute: () => signedIn,
  path: '/keys',
  validateSearch: readKeysSearch,
  component: lazyRouteComponent(() => import('./pages/keys/Keys.tsx'), 'Keys'),
});

const device = createRoute({
  getParentRoute: () => signedIn,
  path: '/device',
  validateSearch: readDeviceSearch,
  component: lazyRouteComponent(() => import('./pages/device/Device.tsx'), 'Device'),
});

const models = createRoute({ getParentRoute: () => signedIn, path: '/models' });

const modelList = createRoute({
  getParentRoute: () => models,
  path: '/',
  validateSearch: readModelsSearch,
  component: lazyRouteComponent(() => import('./pages/models/Models.tsx'), 'Models'),
});

/** Ids of models have slashes. */
const model = createRoute({
  getParentRoute: () => models,
  path: '$',
  component: lazyRouteComponent(() => import('./pages/models/ModelPage.tsx'), 'ModelPage'),
});

const playground = createRoute({
  getParentRoute: () => signedIn,
  path: '/playground',
  validateSearch: readPlaygroundSearch,
  component: lazyRouteComponent(() => import('./pages/playground/Playground.tsx'), 'Playground'),
});

const webhooks = createRoute({
  getParentRoute: () => signedIn,
  path: '/webhooks',
  validateSearch: readWebhooksSearch,
  component: lazyRouteComponent(() => import('./pages/webhooks/Webhooks.tsx'), 'Webhooks'),
});

const delivery = createRoute({
  getParentRoute: () => signedIn,
  path: '/webhooks/$id',
  component: lazyRouteComponent(() => import('./pages/webhooks/DeliveryPage.tsx'), 'DeliveryPage'),
});

/** Everything below is for operators; others find nothing there. */
const operating = createRoute({
  getParentRoute: () => signedIn,
  id: 'operating',
  component: lazyRouteComponent(() => import('./pages/admin/Operating.tsx'), 'Operating'),
});

const adminPages = [
  createRoute({
    getParentRoute: () => operating,
    path: '/admin',
    component: lazyRouteComponent(() => import('./pages/admin/Overview.tsx'), 'Overview'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/accounts',
    validateSearch: readAccountsSearch,
    component: lazyRouteComponent(() => import('./pages/admin/Accounts.tsx'), 'Accounts'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/accounts/$id',
    component: lazyRouteComponent(() => import('./pages/admin/AccountPage.tsx'), 'AccountPage'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/models',
    validateSearch: readRoutesSearch,
    component: lazyRouteComponent(() => import('./pages/admin/AdminModels.tsx'), 'AdminModels'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/providers',
    component: lazyRouteComponent(() => import('./pages/admin/Providers.tsx'), 'Providers'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/speed',
    validateSearch: readSpeedSearch,
    component: lazyRouteComponent(() => import('./pages/speed/OperatorSpeed.tsx'), 'OperatorSpeed'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/calls',
    validateSearch: readCallsSearch,
    component: lazyRouteComponent(() => import('./pages/admin/Calls.tsx'), 'Calls'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/failures',
    validateSearch: readFailuresSearch,
    component: lazyRouteComponent(() => import('./pages/admin/Failures.tsx'), 'Failures'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/queue',
    component: lazyRouteComponent(() => import('./pages/admin/Queue.tsx'), 'QueuePage'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/alerts',
    component: lazyRouteComponent(() => import('./pages/admin/AdminAlerts.tsx'), 'AdminAlertsPage'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/deliveries',
    validateSearch: readDeliveriesSearch,
    component: lazyRouteComponent(() => import('./pages/admin/AdminDeliveries.tsx'), 'AdminDeliveries'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/prices',
    validateSearch: readPricesSearch,
    component: lazyRouteComponent(() => import('./pages/admin/Prices.tsx'), 'Prices'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/audit',
    validateSearch: readAuditSearch,
    component: lazyRouteComponent(() => import('./pages/admin/Audit.tsx'), 'Audit'),
  }),
  createRoute({
    getParentRoute: () => operating,
    path: '/admin/configuration',
    component: lazyRouteComponent(() => import('./pages/admin/Configuration.tsx'), 'Configuration'),
  }),
] as const;

const settings = createRoute({
  getParentRoute: () => signedIn,
  path: '/settings',
  validateSearch: readSettingsSearch,
  component: lazyRouteComponent(() => import('./pages/settings/Settings.tsx'), 'Settings'),
});

const usage = createRoute({
  getParentRoute: () => signedIn,
  path: '/usage',
  validateSearch: readUsageSearch,
  component: lazyRouteComponent(() => import('./pages/usage/Usage.tsx'), 'Usage'),
});

const speed = createRoute({
  getParentRoute: () => signedIn,
  path: '/speed',
  validateSearch: readSpeedSearch,
  component: lazyRouteComponent(() => import('./pages/speed/Speed.tsx'), 'Speed'),
});

const billing = createRoute({
  getParentRoute: () => signedIn,
  path: '/billing',
  validateSearch: readBillingSearch,
  component: lazyRouteComponent(() => import('./pages/billing/Billing.tsx'), 'Billing'),
});

const budgets = createRoute({
  getParentRoute: () => signedIn,
  path: '/budgets',
  component: lazyRouteComponent(() => import('./pages/budgets/Budgets.tsx'), 'Budgets'),
});

/** Address that mails link to. */
const invoices = createRoute({
  getParentRoute: () => signedIn,
  path: '/billing/invoices',
  beforeLoad: () => {
    throw redirect({ to: '/billing', search: { tab: 'invoices' }, replace: true });
  },
});

const routeTree = root.addChildren([
  signIn,
  invitation,
  resetPassword,
  confirmEmail,
  status,
  signedIn.addChildren([
    home,
    activity,
    task,
    chat,
    keys,
    device,
    models.addChildren([modelList, model]),
    usage,
    speed,
    billing,
    budgets,
    invoices,
    playground,
    webhooks,
    delivery,
    settings,
    operating.addChildren([...adminPages]),
  ]),
]);

export const router = createRouter({
  routeTree,
  basepath: own_path || '/',
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  // The page of another call or account begins anew: what is shown and typed is of one thing.
  defaultRemountDeps: ({ params }) => params,
  scrollRestoration: true,
  defaultErrorComponent: ({ error, reset }) =>
    isMissingPart(error) ? (
      <Updated />
    ) : (
      <Failed error={error instanceof Error ? error : new Error(String(error))} retry={reset} />
    ),
  defaultPendingComponent: () => (
    <Center h={240} role="status" aria-label="Loading">
      <Loader />
    </Center>
  ),
});

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router;
  }
}
