import { listViews, removeView, saved_views_max, saveView, type ViewOwner } from '../accounts/saved-views.ts';
import type { Db } from '../db/database.ts';
import { ApiError, invalidField } from '../errors.ts';
import type { Answer } from '../http/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import { readBodyFields } from './body-fields.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { SavedViews } from './views/activity.ts';

const name_max = 60;
const search_max = 2_000;

/** The lists of this account that the person saved; nobody else sees them. */
export const list_views = account_endpoint('GET', '/views', 'read', listOwn, { limited: 'same' });

async function listOwn({ db }: { readonly db: Db }, { account, person }: AccountCall): Promise<Answer> {
  const body: SavedViews = { data: await listViews(db, { account_id: account.id, user_id: person.user.id }) };
  return { status: 200, body };
}

/** Saves one under its name. */
export const save_view = account_endpoint('POST', '/views', 'read', save, { limited: 'same' });

async function save({ db, clock }: { readonly db: Db; readonly clock: Clock }, call: AccountCall): Promise<Answer> {
  const owner = ownerIn(call);
  const fields = readBodyFields(call.body);
  const name = fields.text('name', name_max);
  const search = call.body?.['search'] === '' ? '' : fields.text('search', search_max);
  if (!(await saveView(db, owner, { name, search }, new Date(clock.now())))) {
    throw invalidField('name', `At most ${saved_views_max} lists can be saved. Remove one first.`);
  }
  return { status: 200, body: { ok: true } };
}

export const remove_view = account_endpoint('POST', '/views/remove', 'read', remove, { limited: 'same' });

async function remove({ db }: { readonly db: Db }, call: AccountCall): Promise<Answer> {
  await removeView(db, ownerIn(call), readBodyFields(call.body).text('name', name_max));
  return { status: 200, body: { ok: true } };
}

/** An operator who looks at an account of others leaves nothing there. `action`: what members do. */
export function ownerIn({ account, person }: AccountCall, action = 'save lists'): ViewOwner {
  if (person.role !== 'operator') return { account_id: account.id, user_id: person.user.id };
  throw new ApiError('forbidden', `Your role here (operator) does not allow this. Members of the account ${action}.`);
}
