import type { Db } from '../db/database.ts';
import { membershipsOf } from '../accounts/members.ts';
import { rights_of, rightsOf } from '../accounts/roles.ts';
import type { User } from '../accounts/sign-in/login.ts';
import { findAccount } from '../accounts/accounts.ts';
import { session_endpoint } from './page.ts';
import type { Me, MyAccount } from './views/common.ts';

const viewed = { description: 'An account that an operator looks at.', schema: { type: 'string' } };

/** The signed-in person and their accounts: the dashboard's first request. */
export const get_me = session_endpoint(
  'GET',
  '/dash/me',
  'signed in',
  async (app, { person, query }) => {
    const { user, has_two_factors } = person;
    const is_asked = app.catalog.current.settings.sign_in.operators_need_second_factor;
    const operator_needs_second_factor = user.is_operator && is_asked && !has_two_factors;
    const memberships = await membershipsOf(app.db, user.id);
    const accounts = memberships.map((membership): MyAccount => {
      const { account_id: id, account_name: name, currency, status, role, second_factor_required } = membership;
      const needs_second_factor = second_factor_required && !has_two_factors;
      const rights = rightsOf(membership);
      return {
        id,
        name,
        currency,
        status,
        role,
        rights,
        needs_second_factor,
        is_limited: membership.projects !== null,
        has_no_project: membership.projects?.length === 0,
      };
    });
    const viewed_id = operator_needs_second_factor ? undefined : query.get('view');
    const other = await lookedAt(app.db, user, viewed_id, accounts);
    const me: Me = {
      user,
      accounts: [...accounts, ...other],
      base_url: app.base_url(),
      mails: app.mailer.ready(),
      operator_needs_second_factor,
    };
    return { status: 200, body: me };
  },
  { query: { view: viewed } },
);

async function lookedAt(db: Db, user: User, id: string | undefined, own: MyAccount[]): Promise<MyAccount[]> {
  if (!user.is_operator || id === undefined || own.some((account) => account.id === id)) return [];
  const account = await findAccount(db, id);
  if (!account) return [];
  const { name, currency, status } = account;
  return [
    {
      id,
      name,
      currency,
      status,
      role: 'operator',
      rights: rights_of.viewer,
      needs_second_factor: false,
      is_limited: false,
      has_no_project: false,
    },
  ];
}
