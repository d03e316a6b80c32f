import { membershipsOf } from '../accounts/members.ts';
import { rights_of } from '../accounts/roles.ts';
import type { Endpoint } from '../api/endpoint.ts';
import type { App } from '../app.ts';

/** Who has signed in, and to which accounts they belong: the first thing that the dashboard asks. */
export const get_me: Endpoint<App> = {
  method: 'GET',
  path: '/dash/me',
  format: 'service',
  session: 'signed in',
  docs: { tag: 'Dashboard', summary: 'Who has signed in', hidden: true, responses: { 200: { description: 'ok' } } },
  handle: async (app, { person }) => {
    const { user } = person;
    const memberships = await membershipsOf(app.db, user.id);
    const accounts = memberships.map(({ account_id, account_name, currency, status, role }) => ({
      id: account_id,
      name: account_name,
      currency,
      status,
      role,
      rights: rights_of[role],
    }));
    return { status: 200, body: { user, accounts, base_url: app.base_url() } };
  },
};
