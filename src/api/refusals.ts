import { scopeOfKey } from '../accounts/limited-keys.ts';
import { budgetsInSight, type ProjectScope } from '../accounts/project-scope.ts';
import type { Queryable } from '../db/database.ts';
import { reading, type ReadParts } from '../db/reads.ts';
import { refusal_reasons } from '../errors.ts';
import type { Answer, Call, Endpoint } from '../http/endpoint.ts';
import { oneOf, timeRange } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { listAccountBudgets } from '../money/account-budgets.ts';
import { refusal_rows_max, refusalGroupNamed, refusalsOf } from '../money/refusals.ts';
import { groupQuery, range_query, readGroups, rowNames } from './groups.ts';
import { limited_key_docs, refusals, too_slow } from './schemas.ts';

/** The parts of the app that a report of refusals takes. */
type Parts = ReadParts & { readonly clock: Clock };

const day_ms = 86_400_000;
const group_names = 'hour, day, reason, key, model, project, budget';

/** Requests of the account that were refused before any work. */
export const get_refusals: Endpoint<Parts> = {
  method: 'GET',
  path: '/v1/usage/refusals',
  docs: {
    tag: 'Money',
    summary: 'Get refused requests',
    description:
      'How many requests of the account were refused before any work, grouped, with the most first: for want of money ' +
      '(402), at a limit or a budget, by a rule of the key, or because the account is blocked or paused (403, 429). ' +
      'They are counted by the hour, a few seconds after they came, and kept as long as records of chat calls. ' +
      'An hour is in a range if it has a part in it. `key`, `project`, `model` and `budget` are null where a refusal ' +
      'has none: the model of a request at its limit per minute is not read. Of one account, an hour tells some hundred ' +
      'combinations apart; what is beyond them has a reason alone. Days are in UTC. Default: the last 24 hours by reason. ' +
      limited_key_docs,
    query: {
      ...range_query,
      ...groupQuery(group_names, 'hour,reason'),
      reason: { description: 'Only this reason.', schema: { enum: [...refusal_reasons] } },
      key: { description: 'Only requests of this key, by its id.', schema: { type: 'string' } },
    },
    responses: { 200: { description: 'The groups and their sum.', schema: refusals }, 504: too_slow },
  },
  handle: handleRefusals,
};

/** Returns the ids of the budgets that a limited key sees. */
async function namedBudgets({ clock }: Parts, db: Queryable, scope: ProjectScope): Promise<string[]> {
  const budgets = await listAccountBudgets(db, scope.account_id, new Date(clock.now()));
  return (await budgetsInSight(db, scope, budgets)).map(({ id }) => id);
}

async function handleRefusals(app: Parts, { caller, query, gone }: Call): Promise<Answer> {
  const account_id = caller.account.id;
  const a_day_before = (to: Date) => new Date(to.getTime() - day_ms);
  const { from, to } = timeRange(query, { from: a_day_before, to: new Date(app.clock.now()) });
  const group_by = readGroups(query.get('group_by') ?? 'reason', refusalGroupNamed, group_names);
  const db = reading(app, { key: account_id, gone });
  const scope = await scopeOfKey(db, caller);
  const reason = oneOf(query, 'reason', refusal_reasons);
  const seen = scope && { projects: scope.project_ids, budgets: await namedBudgets(app, db, scope) };
  const filter = { account_id, from, to, reason, key: query.get('key'), ...seen };
  const rows = await refusalsOf(db, filter, group_by);
  const [total] = await refusalsOf(db, filter, []);
  return {
    status: 200,
    body: {
      object: 'refusals',
      from: from.toISOString(),
      to: to.toISOString(),
      group_by,
      data: rows.map(({ names, count }) => ({
        ...rowNames(group_by, (_, index) => names[index]),
        count,
      })),
      has_more: rows.length === refusal_rows_max,
      total: total?.count ?? 0,
    },
  };
}
