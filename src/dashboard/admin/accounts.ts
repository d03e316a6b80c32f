import { randomUUID } from 'node:crypto';
import {
  createAccount,
  deleteAccount,
  findAccount,
  searchAccounts,
  setAccountStatus,
  undeletable,
  type Account,
} from '../../accounts/accounts.ts';
import { findKey } from '../../accounts/keys.ts';
import { makeLoginLink } from '../../accounts/sign-in/login-links.ts';
import { listMembers, ownerOf } from '../../accounts/members.ts';
import { audit } from '../../accounts/audit.ts';
import type { SessionCall } from '../../http/endpoint.ts';
import { tellKeyChange } from '../../app/channels.ts';
import type { Queryable, Db } from '../../db/database.ts';
import { ApiError, invalidField } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { isId } from '../../lib/ids.ts';
import { whileLeased } from '../../leases/while-leased.ts';
import { balanceOf, creditManually, setLimit } from '../../money/ledger.ts';
import { balanceView, costView, exact, parseMoney, type Money } from '../../money/money.ts';
import { usageOf } from '../../money/usage.ts';
import { countedFailures, clearFailures } from '../../tasks/pause.ts';
import { readBodyFields } from '../body-fields.ts';
import { key_filters, limitText, readKeyPage, readLimit } from '../keys.ts';
import { session_endpoint } from '../page.ts';
import type { AdminAccount, AdminAccountNames, AdminAccountPage, AdminAccounts } from '../views/admin.ts';
import { publishTopUp } from '../../webhooks/events.ts';

const text = { type: 'string' };
const filters = {
  search: { description: 'Part of a name or an id, or the last four characters of a key.', schema: text },
  after: { description: 'Older than this one.', schema: text },
};
const page_size = 25;
const month_ms = 30 * 86_400_000;

/** Every account of the service, newest first. */
export const admin_accounts = session_endpoint(
  'GET',
  '/dash/admin/accounts',
  'operator',
  async (app, { query }) => {
    const after = query.get('after');
    if (after !== undefined && !isId('acct', after)) throw invalidField('after', 'after must be the id of an account.');
    const search = query.get('search')?.trim().slice(0, 100) ?? '';
    const accounts = await searchAccounts(app.db, { search, after, limit: page_size + 1 });
    const shown = accounts.slice(0, page_size);
    const data = await Promise.all(shown.map((account) => renderAccount(app, account)));
    const currencies = [...app.catalog.current.settings.currencies.keys()];
    const page: AdminAccounts = { data, has_more: accounts.length > page_size, currencies };
    return { status: 200, body: page };
  },
  { query: filters },
);

/** Names of the accounts that a text fits, newest first: for lists to choose from. */
export const admin_account_names = session_endpoint(
  'GET',
  '/dash/admin/account-names',
  'operator',
  async (app, { query }) => {
    const search = query.get('search')?.trim().slice(0, 100) ?? '';
    const accounts = await searchAccounts(app.db, { search, after: undefined, limit: page_size });
    const view: AdminAccountNames = { data: accounts.map(({ id, name }) => ({ id, name })) };
    return { status: 200, body: view };
  },
  { query: { search: filters.search } },
);

async function renderAccount({ db, clock }: { db: Db; clock: Clock }, account: Account): Promise<AdminAccount> {
  const { id, name, currency, status, created_at } = account;
  const now = new Date(clock.now());
  const from = new Date(now.getTime() - month_ms);
  const [balance, usage] = await Promise.all([
    balanceOf(db, id),
    usageOf(db, { account_id: id, from, to: now, group_by: [] }),
  ]);
  const { amount, held } = balance ?? { amount: 0n, held: 0n };
  const spend = usage.reduce((sum, { cost }) => sum + cost, 0n);
  return {
    id,
    name,
    currency,
    status,
    balance: balanceView(amount, currency),
    held: balanceView(held, currency),
    available: balanceView(amount - held, currency),
    spend: costView(spend, currency),
    created_at: created_at.toISOString(),
  };
}

export const admin_account = session_endpoint('GET', '/dash/admin/accounts/{id}', 'operator', async (app, call) => {
  const account = await accountIn(app.db, call);
  const now = new Date(app.clock.now());
  const [shown, members, counted] = await Promise.all([
    renderAccount(app, account),
    listMembers(app.db, account.id),
    countedFailures(app.db, account.id, now),
  ]);
  const view: AdminAccountPage = {
    ...shown,
    members: members.map(({ name, email, role, two_factor }) => ({ name, email, role, two_factor })),
    failures: { counted, limit: app.catalog.current.settings.limits.failed_per_24h },
  };
  return { status: 200, body: view };
});

/** Keys of an account in pages, newest first. */
export const admin_account_keys = session_endpoint(
  'GET',
  '/dash/admin/accounts/{id}/keys',
  'operator',
  async (app, call) => ({ status: 200, body: await readKeyPage(app, await accountIn(app.db, call), call.query) }),
  { query: key_filters },
);

async function accountIn(db: Db, { params }: SessionCall): Promise<Account> {
  const { id = '' } = params;
  const account = isId('acct', id) ? await findAccount(db, id) : undefined;
  if (!account) throw new ApiError('not_found', 'There is no such account.');
  return account;
}

/** Signed amounts correct; a reason stands in the account's ledger. */
function readAmount(body: SessionCall['body'], name: string): Money {
  const amount = parseMoney(String(body?.[name] ?? ''));
  if (amount !== undefined) return amount;
  throw invalidField(name, `${name} must be a decimal such as 25.00, with at most six fraction digits.`);
}

export const admin_create_account = session_endpoint(
  'POST',
  '/dash/admin/accounts',
  'operator',
  async (app, call) => {
    const fields = readBodyFields(call.body);
    const { currencies } = app.catalog.current.settings;
    const currency = fields.oneOf('currency', [...currencies.keys()]);
    const name = fields.text('name', 200);
    const initial_credit = call.body?.['credit'] === undefined ? 0n : readAmount(call.body, 'credit');
    if (initial_credit < 0n) throw invalidField('credit', 'credit must not be negative.');
    const now = new Date(app.clock.now());
    const account = await createAccount(app.db, { name, currency, initial_credit }, now);
    await noteOn(app, call, account.id, {
      action: 'account.create',
      details: { name, currency, credit: exact(initial_credit) },
    });
    return { status: 201, body: await renderAccount(app, account) };
  },
  { needs_proof: true },
);

/** `subject`: the changed thing, if it is not the account itself. */
type OperatorAction = { action: string; details?: Record<string, unknown>; subject?: string };

/** Writes an operator's action to the account's audit log, too. */
function noteOn(
  { db, clock }: { db: Queryable; clock: Clock },
  call: SessionCall,
  account_id: string,
  { action, details = {}, subject = account_id }: OperatorAction,
) {
  const now = new Date(clock.now());
  return audit(db, {
    account_id,
    user: call.person.user,
    action,
    subject,
    details,
    address: call.address,
    now,
  });
}

/** Tops up, or with a minus corrects. `ref`: made by the page, so that a click that is repeated books once. */
export const admin_credit = session_endpoint(
  'POST',
  '/dash/admin/accounts/{id}/credit',
  'operator',
  async (app, call) => {
    const account = await accountIn(app.db, call);
    const fields = readBodyFields(call.body);
    const amount = readAmount(call.body, 'amount');
    if (amount === 0n) throw invalidField('amount', 'amount must not be zero.');
    const reason = fields.text('reason', 500);
    const ref = fields.optionalText('ref', 100) ?? randomUUID();
    const type = amount > 0n ? 'topup' : 'adjustment';
    const movement = { account_id: account.id, type, amount, ref, reason } as const;
    const { outcome, available } = await whileLeased(() =>
      app.db.tx(async (tx) => {
        const now = new Date(app.clock.now());
        const answer = await creditManually(tx, movement, now);
        const details = { amount: exact(amount), reason, ref };
        if (answer.outcome === 'booked')
          await noteOn({ db: tx, clock: app.clock }, call, account.id, { action: 'account.credit', details });
        if (answer.outcome === 'booked' && type === 'topup')
          await publishTopUp(tx, account, { amount, available: answer.available, ref }, now);
        return answer;
      }),
    );
    if (outcome === 'leased') {
      throw invalidField('amount', 'The service has reserved the money for calls. Try again in a few seconds.');
    }
    if (outcome === 'insufficient') {
      throw invalidField('amount', `Only ${exact(available)} ${account.currency} is available. Nothing was booked.`);
    }
    if (outcome === 'too_large') throw invalidField('amount', 'The balance would be larger than any balance may be.');
    if (outcome === 'conflict') throw new ApiError('conflict', 'This was booked before, with another amount.');
    if (outcome === 'elsewhere') {
      throw new ApiError('conflict', 'This reference was booked before, for another account. Nothing was booked.');
    }
    return { status: 200, body: await renderAccount(app, account) };
  },
  { needs_proof: true },
);

export const admin_set_status = session_endpoint(
  'POST',
  '/dash/admin/accounts/{id}/status',
  'operator',
  async (app, call) => {
    const account = await accountIn(app.db, call);
    const status = readBodyFields(call.body).oneOf('status', ['active', 'blocked']);
    await setAccountStatus(app.db, account.id, status);
    tellKeyChange(app);
    await noteOn(app, call, account.id, { action: status === 'blocked' ? 'account.block' : 'account.unblock' });
    return { status: 200, body: await renderAccount(app, { ...account, status }) };
  },
);

/** Deletes an account that never had money or work; 409 with the reason for another one. */
export const admin_delete_account = session_endpoint(
  'DELETE',
  '/dash/admin/accounts/{id}',
  'operator',
  async (app, call) => {
    const { id, name, currency } = await accountIn(app.db, call);
    const outcome = await deleteAccount(app.db, id);
    if (outcome === 'money' || outcome === 'history')
      throw new ApiError('conflict', `${undeletable[outcome]} Block it instead.`);
    tellKeyChange(app);
    await noteOn(app, call, id, { action: 'account.delete', details: { name, currency } });
    return { status: 200, body: { ok: true } };
  },
);

/** Sets the monthly limit of a key; null removes it. Counts from the next hold on. */
export const admin_limit_key = session_endpoint(
  'POST',
  '/dash/admin/accounts/{id}/keys/{key}/limit',
  'operator',
  async (app, call) => {
    const account = await accountIn(app.db, call);
    const limit = readLimit(call.body);
    if (limit === undefined) throw invalidField('limit', 'limit must be an amount, or null for no limit.');
    const { key: key_id = '' } = call.params;
    const key = isId('key', key_id) ? await findKey(app.db, key_id, account.id) : undefined;
    if (!key || !(await setLimit(app.db, key.id, limit))) throw new ApiError('not_found', 'There is no such key.');
    await noteOn(app, call, account.id, {
      action: 'key.change',
      details: { name: key.name, limit: limitText(limit) },
      subject: key.id,
    });
    return { status: 200, body: { ok: true } };
  },
  { needs_proof: true },
);

/** The failures of the last 24 hours count no more: an account that is paused may go on. */
export const admin_forget_failures = session_endpoint(
  'POST',
  '/dash/admin/accounts/{id}/forget-failures',
  'operator',
  async (app, call) => {
    const account = await accountIn(app.db, call);
    const forgotten = await clearFailures(app.db, account.id, new Date(app.clock.now()));
    await noteOn(app, call, account.id, { action: 'account.forget-failures', details: { forgotten } });
    return { status: 200, body: { forgotten } };
  },
);

const handed_over_ms = 24 * 3_600_000;

/** A link to hand over to the account's owner, who has no password yet or has lost it. */
export const admin_login_link = session_endpoint(
  'POST',
  '/dash/admin/accounts/{id}/login-link',
  'operator',
  async (app, call) => {
    const account = await accountIn(app.db, call);
    const now = new Date(app.clock.now());
    const user_id = await ownerOf(app.db, account.id, now);
    const link = await makeLoginLink(app.db, app.base_url(), user_id, now, handed_over_ms);
    await noteOn(app, call, account.id, { action: 'account.login-link', details: { user_id } });
    return { status: 200, body: { link, expires_in: '24 hours' } };
  },
  { needs_proof: true },
);

/** That an operator looks at the account as its people do, which the account can read. */
export const admin_view = session_endpoint('POST', '/dash/admin/accounts/{id}/view', 'operator', async (app, call) => {
  const account = await accountIn(app.db, call);
  await noteOn(app, call, account.id, { action: 'account.view' });
  return { status: 200, body: { ok: true } };
});
