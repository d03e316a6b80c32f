import type { Endpoint } from '../api/endpoint.ts';
import type { App } from '../app.ts';
import { get_balance } from './balance.ts';
import { accept_invitation, get_invitation } from './invitation.ts';
import { login_endpoints } from './login.ts';
import { get_me } from './me.ts';
import { webEndpoints } from './web.ts';

/** Every route of the dashboard in one list. */
export function dashboardEndpoints(): Endpoint<App>[] {
  return [...login_endpoints, get_me, get_balance, get_invitation, accept_invitation, ...webEndpoints()];
}
