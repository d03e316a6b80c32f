import type { Clock } from '../../lib/clock.ts';
import type { Db } from '../../db/database.ts';
import { accountNames } from '../../accounts/accounts.ts';
import { audit } from '../../accounts/audit.ts';
import type { Query } from '../../http/endpoint.ts';
import { moment, oneOf } from '../../http/query.ts';
import { chatFailuresByRoute } from '../../chat/failures.ts';
import { ApiError, invalidField } from '../../errors.ts';
import { isId } from '../../lib/ids.ts';
import { margin_groups, marginsOf, type MarginGroup, type MarginRow } from '../../money/margins.ts';
import { costView, exact } from '../../money/money.ts';
import { failuresByRoute } from '../../tasks/overview.ts';
import { resend } from '../../webhooks/manual.ts';
import { findDelivery, listDeliveries } from '../../webhooks/delivery.ts';
import { csvAnswer, type Cell } from '../csv.ts';
import { renderDelivery } from '../deliveries.ts';
import { session_endpoint } from '../page.ts';
import type { Page } from '../views/activity.ts';
import type { AdminDelivery, AdminFailure, AdminFailures, AdminMargin, AdminMargins } from '../views/admin.ts';

/** Lists of operators over all accounts, and the same as files. */

const text = { type: 'string' };
const page_size = 50;

const margin_query = {
  month: { description: 'As 2026-11.', schema: text },
  by: { description: 'Grouping of the rows.', schema: { enum: [...margin_groups] } },
};

/** The first day of the month of this moment. */
export function monthOf(now: Date): string {
  return `${now.toISOString().slice(0, 7)}-01`;
}

/** Revenue, upstream cost and margin of a month, as `medley margins` tells them. */
export async function marginViews(db: Db, month: string, by: MarginGroup): Promise<AdminMargin[]> {
  return (await marginsOf(db, month, by)).map((row) => {
    const { name, currency, runs, revenue, upstream_cost, margin, unknown } = row;
    return {
      name,
      currency,
      runs: Number(runs),
      revenue: costView(revenue, currency),
      upstream_cost: costView(upstream_cost, currency),
      margin: costView(margin, currency),
      unknown: Number(unknown),
    };
  });
}

function marginsQuery({ clock }: { clock: Clock }, query: Query): { month: string; by: MarginGroup } {
  const month = query.get('month') ?? monthOf(new Date(clock.now())).slice(0, 7);
  if (!/^20\d\d-(0[1-9]|1[0-2])$/.test(month)) throw invalidField('month', 'month must be written as 2026-11.');
  return { month, by: oneOf(query, 'by', margin_groups) ?? 'model' };
}

/** Revenue, upstream cost and margin of a month. */
export const admin_margins = session_endpoint(
  'GET',
  '/dash/admin/margins',
  'operator',
  async (app, { query }) => {
    const { month, by } = marginsQuery(app, query);
    const data = await marginViews(app.db, `${month}-01`, by);
    const ids = by === 'account' ? data.flatMap(({ name }) => name ?? []) : [];
    const names = Object.fromEntries(await accountNames(app.db, ids));
    const view: AdminMargins = { month, by, data, names };
    return { status: 200, body: view };
  },
  { query: margin_query },
);

export const admin_margins_file = session_endpoint(
  'GET',
  '/dash/admin/margins.csv',
  'operator',
  async (app, { query }) => {
    const { month, by } = marginsQuery(app, query);
    const rows = await marginsOf(app.db, `${month}-01`, by);
    const header = [by, 'currency', 'runs', 'revenue', 'upstream_cost', 'margin', 'cost_unknown'];
    return csvAnswer(`margins-${month}-${by}`, header, rows.map(marginCells));
  },
  { query: margin_query },
);

function marginCells({ name, currency, runs, revenue, upstream_cost, margin, unknown }: MarginRow): Cell[] {
  return [name, currency, runs, exact(revenue), exact(upstream_cost), exact(margin), unknown];
}

const failures_query = { from: { description: 'Since this time.', schema: text } };
const failures_ms = 7 * 86_400_000;

type Failures = Omit<AdminFailure, 'last_at'> & { last_at: Date };

async function failuresQuery(
  { db, clock }: { db: Db; clock: Clock },
  query: Query,
): Promise<{ since: Date; groups: Failures[] }> {
  const since = moment(query, 'from') ?? new Date(clock.now() - failures_ms);
  const [tasks, chats] = await Promise.all([failuresByRoute(db, since), chatFailuresByRoute(db, since)]);
  const groups = [
    ...tasks.map((group) => ({ ...group, of: 'generation' as const })),
    ...chats.map((group) => ({ ...group, of: 'chat' as const })),
  ];
  return { since, groups: groups.toSorted((a, b) => b.count - a.count) };
}

/** Failures of the last days, by route and kind. */
export const admin_failures = session_endpoint(
  'GET',
  '/dash/admin/failures',
  'operator',
  async (app, { query }) => {
    const { since, groups } = await failuresQuery(app, query);
    const data = groups.map(({ last_at, ...group }): AdminFailure => ({ ...group, last_at: last_at.toISOString() }));
    const view: AdminFailures = { data, since: since.toISOString() };
    return { status: 200, body: view };
  },
  { query: failures_query },
);

export const admin_failures_file = session_endpoint(
  'GET',
  '/dash/admin/failures.csv',
  'operator',
  async (app, { query }) => {
    const { since, groups } = await failuresQuery(app, query);
    const header = ['of', 'route', 'state', 'reason', 'count', 'last_at', 'example'];
    const rows = groups.map((group) => {
      return [group.of, group.route, group.state, group.reason, group.count, group.last_at, group.example];
    });
    return csvAnswer(`failures-since-${since.toISOString().slice(0, 10)}`, header, rows);
  },
  { query: failures_query },
);

/** Webhooks of all accounts, newest first. */
export const admin_deliveries = session_endpoint(
  'GET',
  '/dash/admin/deliveries',
  'operator',
  async (app, { query }) => {
    const [account_id, after] = [query.get('account'), query.get('after')];
    if (after !== undefined && !isId('dlv', after)) throw invalidField('after', 'after must be the id of a delivery.');
    const standing = oneOf(query, 'state', ['waiting', 'retrying', 'delivered', 'dropped']);
    const { lines, has_more } = await listDeliveries(app.db, {
      limit: page_size,
      ...(account_id !== undefined && { account_id }),
      ...(after !== undefined && { after }),
      ...(standing && { standing }),
    });
    const names = await accountNames(
      app.db,
      lines.map((line) => line.account_id),
    );
    const data = lines.map((line): AdminDelivery => {
      const { account_id: id, last_status, last_error } = line;
      const account_name = names.get(id) ?? id;
      return { ...renderDelivery(line), account_id: id, account_name, last_status, last_error };
    });
    const page: Page<AdminDelivery> = { data, has_more };
    return { status: 200, body: page };
  },
  {
    query: {
      account: { description: 'Only of this account.', schema: text },
      after: { description: 'Older than this one.', schema: text },
      state: { description: 'Only in this state.', schema: text },
    },
  },
);

/** Sends one once more, the same bytes, as soon as there is a place. */
export const admin_resend = session_endpoint(
  'POST',
  '/dash/admin/deliveries/{id}/resend',
  'operator',
  async (app, call) => {
    const { id = '' } = call.params;
    const delivery = isId('dlv', id) ? await findDelivery(app.db, id) : undefined;
    const answer = delivery ? await resend(app, delivery) : 'missing';
    if (!delivery || answer === 'missing') throw new ApiError('not_found', 'This delivery no longer exists.');
    if (answer === 'busy') {
      throw new ApiError('conflict', 'It is being sent already: an attempt is due now or in progress.', {
        code: 'conflict',
      });
    }
    if (answer === 'disabled') {
      throw new ApiError('conflict', 'Its endpoint is disabled or deleted.', { code: 'conflict' });
    }
    const { account_id } = delivery;
    const now = new Date(app.clock.now());
    const { user } = call.person;
    await audit(app.db, { account_id, user, action: 'webhook.resend', subject: id, address: call.address, now });
    return { status: 202, body: { ok: true } };
  },
);
