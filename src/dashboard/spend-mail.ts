import { addressesOf } from '../accounts/members.ts';
import type { Mailer } from '../accounts/mailer.ts';
import { findSpendMail, removeSpendMail, setSpendMail, spend_periods } from '../billing/spend-mails.ts';
import type { Db } from '../db/database.ts';
import { groupNamed, isPair, type UsageGroup } from '../money/groups.ts';
import { readBodyFields } from './body-fields.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import { ownerIn } from './saved-views.ts';
import { page_groups } from './usage.ts';
import type { SpendMailView } from './views/usage.ts';

/** The parts of the app that this takes. */
type Parts = { readonly db: Db; readonly mailer: Mailer };

const action = 'get mails about its spend';

/** The mail about spend that the person gets. */
export const get_spend_mail = account_endpoint('GET', '/usage/mail', 'read', async (app, call) => {
  return { status: 200, body: await spendMailView(app, call) };
});

/** Sets it; `every: null` stops it. */
export const set_spend_mail = account_endpoint('PUT', '/usage/mail', 'read', async (app, call) => {
  const reader = ownerIn(call, action);
  if (call.body?.['every'] === null) await removeSpendMail(app.db, reader);
  else {
    const every = readBodyFields(call.body).oneOf('every', spend_periods);
    await setSpendMail(app.db, { ...reader, every, grouped_by: readGroup(call) }, new Date(app.clock.now()));
  }
  return { status: 200, body: await spendMailView(app, call) };
});

function readGroup({ body }: AccountCall): UsageGroup {
  const group = body?.['group'];
  const named = typeof group === 'string' ? groupNamed(group) : undefined;
  if (named !== undefined && isPair(named)) return named;
  const chosen = readBodyFields(body).oneOf('group', page_groups);
  return chosen === 'kind' ? 'modality' : chosen;
}

async function spendMailView({ db, mailer }: Parts, call: AccountCall): Promise<SpendMailView> {
  const reader = ownerIn(call, action);
  const [mail, members] = await Promise.all([findSpendMail(db, reader), addressesOf(db, [reader.account_id])]);
  const email = members.find(({ user_id }) => user_id === reader.user_id)?.email ?? null;
  return { mails: mailer.ready(), email, every: mail?.every ?? null, group: mail ? groupingOf(mail.grouped_by) : null };
}

function groupingOf(group: UsageGroup): SpendMailView['group'] {
  if (group === 'modality') return 'kind';
  return group === 'hour' || group === 'day' ? 'model' : group;
}
