import { invalidField } from '../../errors.ts';
import { accountNames } from '../../accounts/accounts.ts';
import { callView, readLabels } from '../../api/calls.ts';
import { readAllLines, readLines } from '../../chat/activity.ts';
import type { Db } from '../../db/database.ts';
import type { Answer, Query, SessionCall } from '../../http/endpoint.ts';
import { moment, oneOf, timeRange } from '../../http/query.ts';
import type { Clock } from '../../lib/clock.ts';
import { isId } from '../../lib/ids.ts';
import { lastRoutes, type AllFilter } from '../../tasks/list.ts';
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
  http_status: { description: 'Only chat calls that were answered with this status.', schema: { type: 'integer' } },
  user: { description: 'Only of this end user; with account.', schema: text },
  tag: { description: 'Only with this tag in the metadata; with account.', schema: text },
  metadata: { description: 'metadata[name]=value: only with these pairs; with account.', schema: { type: 'object' } },
  from: { description: 'Created at this time or later; without it a day before `to`.', schema: text },
  to: { description: 'Created before this time; without it now.', schema: text },
  after: { description: 'After this one in the list; with after_time.', schema: text },
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

type Parts = { readonly db: Db; readonly clock: Clock };

/** A call or a task with its account and its last route. */
type Row = { account_id: string; route: string | null; call: Parameters<typeof callView>[0] };

async function handleCalls({ db, clock }: Parts, { query: values }: SessionCall): Promise<Answer> {
  const to = new Date(clock.now() + ahead_ms);
  const range = timeRange(values, { from: (end) => new Date(end.getTime() - day_ms), to });
  if (range.to.getTime() - range.from.getTime() > range_ms_max + ahead_ms)
    throw invalidField('from', 'from and to may be at most 31 days apart.');
  const account_id = values.get('account');
  const read = account_id === undefined ? readOfAll(db, values, range) : readOfAccount(db, account_id, values, range);
  const { rows, has_more } = await read;
  const names = await accountNames(
    db,
    rows.map((row) => row.account_id),
  );
  const view: AdminCalls = {
    data: rows.map((row) => renderCall(row, names)),
    has_more,
    from: range.from.toISOString(),
  };
  return { status: 200, body: view };
}

type Range = { from: Date; to: Date };
type Page = { rows: Row[]; has_more: boolean };

async function readOfAll(db: Db, values: Query, range: Range): Promise<Page> {
  const { of, error_type, http_status, end_user, tag, metadata = {}, ...filter } = readFilter(values);
  const needing = { user: end_user, tag, metadata: Object.keys(metadata)[0] };
  for (const [name, value] of Object.entries(needing)) {
    if (value !== undefined) throw invalidField(name, `${name} needs account: it is found within one account.`);
  }
  const { lines, has_more } = await readAllLines(db, {
    ...filter,
    ...range,
    of,
    ...(error_type !== undefined && { error_type }),
    ...(http_status !== undefined && { http_status }),
    limit: page_size,
  });
  const rows = lines.map((call): Row => ({ account_id: call.line.account_id, route: call.line.route, call }));
  return { rows, has_more };
}

/** The list of the account's own page, which has an index for each label. */
async function readOfAccount(db: Db, account_id: string, values: Query, { from, to }: Range): Promise<Page> {
  const { status, after, ...filter } = readFilter(values);
  const { lines, has_more } = await readLines(
    db,
    {
      ...filter,
      ...(status === 'succeeded' || status === 'failed' ? { ok: status === 'succeeded' } : status && { status }),
      account_id,
      created_after: from,
      created_before: to,
      oldest_first: false,
    },
    { limit: page_size, ...(after && { after: after.id }) },
  );
  const task_ids = lines.flatMap(({ what, line }) => (what === 'task' ? line.id : []));
  const routes = await lastRoutes(db, account_id, task_ids);
  const rows = lines.map((call): Row => {
    const route = call.what === 'task' ? (routes.get(call.line.id) ?? null) : call.line.route;
    return { account_id, route, call };
  });
  return { rows, has_more };
}

function readFilter(values: Query) {
  const [model, route] = [values.get('model'), values.get('route')];
  const status = oneOf(values, 'status', ['queued', 'running', 'succeeded', 'failed']);
  const after = placeIn(values);
  return {
    of: oneOf(values, 'of', ['all', 'tasks', 'chats']) ?? 'all',
    ...readLabels(values),
    ...(model !== undefined && { model }),
    ...(route !== undefined && { route }),
    ...(status && { status }),
    ...(after && { after }),
  };
}

function placeIn(values: Query): AllFilter['after'] {
  const [id, created_at] = [values.get('after'), moment(values, 'after_time')];
  if (id === undefined && !created_at) return undefined;
  if (!created_at) throw invalidField('after_time', 'after needs after_time, the time at which that one was created.');
  if (id !== undefined && (isId('task', id) || isId('req', id))) return { created_at, id };
  throw invalidField('after', 'after must be the id of a task or of a call.');
}

function renderCall({ account_id, route, call }: Row, names: ReadonlyMap<string, string>): AdminCall {
  const { id, kind, modality, model, status, http_status, error_type, ...rest } = callView(call, route);
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
