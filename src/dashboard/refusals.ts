import { keyNames } from '../accounts/key-list.ts';
import type { Db } from '../db/database.ts';
import { refusal_reasons } from '../errors.ts';
import type { Answer } from '../http/endpoint.ts';
import { budgetsInSight } from '../accounts/project-scope.ts';
import { timeRange } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { listAccountBudgets } from '../money/account-budgets.ts';
import { keysInProjects } from '../money/ledger.ts';
import {
  largestRefusals,
  refusalsOf,
  refusalTotals,
  type RefusalFilter,
  type RefusalPart,
  type RefusalRow,
  type RefusalTotal,
} from '../money/refusals.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { RefusalReason, RefusalsView, RefusedPart } from './views/refusals.ts';

/** The parts of the app that showing refusals takes. */
type Parts = { readonly db: Db; readonly clock: Clock };

const day_ms = 86_400_000;
const by_hour_ms_max = 2 * day_ms;

/** Combinations of names that are shown of a reason. */
const parts_max = 3;

const text = { type: 'string' };

/** Requests of the account that were refused before any work, by default those of the last 24 hours. */
export const get_refusals = account_endpoint('GET', '/refusals', 'read', handleRefusals, {
  query: {
    from: { description: 'Refused in this hour or later.', schema: text },
    to: { description: 'Refused in an hour before this time.', schema: text },
    model: { description: 'Only of this model.', schema: text },
    key: { description: 'Only of this key.', schema: text },
    project: { description: 'Only of this project.', schema: text },
  },
  limited: 'own',
});

/** Whoever is limited to projects reads what these were refused, and no name of a key or a budget out of sight. */
async function handleRefusals({ db, clock }: Parts, { account, query, scope }: AccountCall): Promise<Answer> {
  const now = new Date(clock.now());
  const budgets = await budgetsInSight(db, scope, await listAccountBudgets(db, account.id, now));
  const seen = scope && { projects: scope.project_ids, budgets: budgets.map(({ id }) => id) };
  const filter = { ...readFilter(query, account.id, now), ...seen };
  const { from, to } = filter;
  const step = to.getTime() - from.getTime() <= by_hour_ms_max ? 'hour' : 'day';
  const [bars, totals, parts] = await Promise.all([
    refusalsOf(db, filter, [step, 'reason'], bars_max),
    refusalTotals(db, filter),
    largestRefusals(db, filter, parts_max),
  ]);
  const key_ids = parts.map(({ key_id }) => key_id);
  const names = {
    keys: await keyNames(db, account.id, scope ? await keysInProjects(db, scope, key_ids) : key_ids),
    budgets: new Map(budgets.map(({ id, name }) => [id, name])),
  };
  const reasons = reasonsOf(totals, parts, names);
  const view: RefusalsView = {
    from: from.toISOString(),
    to: to.toISOString(),
    step,
    total: reasons.reduce((sum, { count }) => sum + count, 0),
    reasons,
    bars: barsOf(bars, step),
  };
  return { status: 200, body: view };
}

function readFilter(query: AccountCall['query'], account_id: string, now: Date): RefusalFilter {
  const { from, to } = timeRange(query, { from: (end) => new Date(end.getTime() - day_ms), to: now });
  const [model, key, project] = ['model', 'key', 'project'].map((name) => query.get(name));
  return { account_id, from, to, model, key, project };
}

/** Ten reasons on each day of the longest time, and more than that. */
const bars_max = 100_000;

type Names = { keys: ReadonlyMap<string, string>; budgets: ReadonlyMap<string, string> };

/** Returns each reason that this version knows, the most frequent first. */
function reasonsOf(
  totals: readonly RefusalTotal[],
  parts: readonly RefusalPart[],
  names: Names,
): RefusalsView['reasons'] {
  const parts_of = Map.groupBy(parts, ({ reason }) => reason);
  return totals.flatMap(({ reason: name, count, last_at }) => {
    const reason = listed(name);
    if (!reason) return [];
    const own = (parts_of.get(name) ?? []).map((part) => renderPart(part, names));
    return [{ reason, count, last_at: last_at.toISOString(), parts: own }];
  });
}

/** A newer node may know more of them. */
function listed(name: string | undefined): RefusalReason | undefined {
  return refusal_reasons.find((each) => each === name);
}

function renderPart({ key_id, budget_id, model, count }: RefusalPart, { keys, budgets }: Names): RefusedPart {
  const named = (id: string, names: ReadonlyMap<string, string>) =>
    id === '' ? null : { id, name: names.get(id) ?? id };
  return { key: named(key_id, keys), budget: named(budget_id, budgets), model: model || null, count };
}

function barsOf(rows: readonly RefusalRow[], step: RefusalsView['step']): RefusalsView['bars'] {
  const bars = Map.groupBy(rows, ({ names: [at = ''] }) => (step === 'hour' ? at : `${at}T00:00:00Z`));
  return [...bars]
    .map(([at, parts]) => ({
      at: new Date(at).toISOString(),
      parts: parts.flatMap(({ names: [, name], count }) => {
        const reason = listed(name);
        return reason ? [{ reason, count }] : [];
      }),
    }))
    .toSorted((one, other) => (one.at < other.at ? -1 : 1));
}
