import { accountNames } from '../../accounts/accounts.ts';
import { callView } from '../../api/calls.ts';
import { readAllLines, type AccountLine } from '../../chat/activity.ts';
import type { Db } from '../../db/database.ts';
import type { Answer, Query, SessionCall } from '../../http/endpoint.ts';
import { moment, oneOf, timeRange } from '../../http/query.ts';
import type { Clock } from '../../lib/clock.ts';
import { isId } from '../../lib/ids.ts';
import type { AllFilter } from '../../tasks/list.ts';
import { wrong } from '../body-fields.ts';
import { session_endpoint } from '../page.ts';
import type { AdminCall, AdminCalls } from '../views/admin.ts';

const text = { type: 'string' };
const query = {
  of: { description: 'all, tasks or chats.', schema: text },
  account: { description: 'Only of this account.', schema: text },
  model: { description: 'Only this model.', schema: text },
  route: { description: 'Only what tried this route last.', schema: text },
  status: { description: 'Only this status.', schema: text },
  error: { description: 'Only failures with this type of error.', schema: text },
  from: { description: 'Created at this time or later; without it a day before `to`.', schema: text },
  to: { description: 'Created before this time; without it now.', schema: text },
  after: { description: 'Behind this one in the list; with after_time.', schema: text },
  after_time: { description: 'Creation time of that one.', schema: text },
};

/** Chat calls and tasks of all accounts in a time, newest first: numbers, no words. */
export const admin_calls = session_endpoint('GET', '/dash/admin/calls', 'operator', handleCalls, { query });

const page_size = 50;
const day_ms = 86_400_000;

/** Each page is read from an index of times, but a filter that fits few reads all of the time. */
const range_ms_max = 31 * day_ms;

/** Nodes may be ahead by a little. */
const ahead_ms = 60_000;

async function handleCalls(
  { db, clock }: { readonly db: Db; readonly clock: Clock },
  { query: values }: SessionCall,
): Promise<Answer> {
  const to = new Date(clock.now() + ahead_ms);
  const range = timeRange(values, { from: (end) => new Date(end.getTime() - day_ms), to });
  if (range.to.getTime() - range.from.getTime() > range_ms_max + ahead_ms)
    throw wrong('from', 'from and to may be at most 31 days apart.');
  const of = oneOf(values, 'of', ['all', 'tasks', 'chats']) ?? 'all';
  const { lines, has_more } = await readAllLines(db, { ...readFilter(values), ...range, of, limit: page_size });
  const names = await accountNames(
    db,
    lines.map(({ line }) => line.account_id),
  );
  const data = lines.map((each) => renderCall(each, names));
  const view: AdminCalls = { data, has_more, from: range.from.toISOString() };
  return { status: 200, body: view };
}

function readFilter(values: Query): Omit<AllFilter, 'from' | 'to' | 'limit'> {
  const [account_id, model, route] = [values.get('account'), values.get('model'), values.get('route')];
  const error_type = values.get('error');
  const status = oneOf(values, 'status', ['queued', 'running', 'succeeded', 'failed']);
  const after = placeIn(values);
  return {
    ...(account_id !== undefined && { account_id }),
    ...(model !== undefined && { model }),
    ...(route !== undefined && { route }),
    ...(error_type !== undefined && { error_type }),
    ...(status && { status }),
    ...(after && { after }),
  };
}

function placeIn(values: Query): AllFilter['after'] {
  const [id, created_at] = [values.get('after'), moment(values, 'after_time')];
  if (id === undefined && !created_at) return undefined;
  if (!created_at) throw wrong('after_time', 'after needs after_time, the time at which that one was created.');
  if (id !== undefined && (isId('task', id) || isId('req', id))) return { created_at, id };
  throw wrong('after', 'after must be the id of a task or of a call.');
}

function renderCall(each: AccountLine, names: ReadonlyMap<string, string>): AdminCall {
  const { account_id, route } = each.line;
  const { id, kind, modality, model, status, http_status, error_type, ...rest } = callView(each, route);
  const { first_content_ms, total_ms, usage, cost, created_at } = rest;
  return {
    account_id,
    account_name: names.get(account_id) ?? account_id,
    id,
    kind,
    modality,
    model,
    route,
    status,
    http_status,
    error_type,
    first_content_ms,
    total_ms,
    usage,
    cost,
    created_at,
  };
}
