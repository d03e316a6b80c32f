import { keyNames } from '../accounts/key-list.ts';
import type { Db } from '../db/database.ts';
import { refusal_reasons } from '../errors.ts';
import type { Answer } from '../http/endpoint.ts';
import { timeRange } from '../http/query.ts';
import type { Clock } from '../lib/clock.ts';
import { listAccountBudgets } from '../money/account-budgets.ts';
import { refusalsOf, type RefusalFilter, type RefusalGroup } from '../money/refusals.ts';
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
});

async function handleRefusals({ db, clock }: Parts, { account, query }: AccountCall): Promise<Answer> {
  const now = new Date(clock.now());
  const { from, to } = timeRange(query, { from: (end) => new Date(end.getTime() - day_ms), to: now });
  const [model, key, project] = ['model', 'key', 'project'].map((name) => query.get(name));
  const filter: RefusalFilter = { account_id: account.id, from, to, model, key, project };
  const step = to.getTime() - from.getTime() <= by_hour_ms_max ? 'hour' : 'day';
  const [bars, hours, parts, budgets] = await Promise.all([
    rowsOf(db, filter, [step, 'reason']),
    rowsOf(db, filter, ['reason', 'hour']),
    rowsOf(db, filter, ['reason', 'key', 'budget', 'model']),
    listAccountBudgets(db, account.id, now),
  ]);
  const budget_names = new Map(budgets.map(({ id, name }) => [id, name]));
  const shown = new Map(
    refusal_reasons.map((reason) => [reason, parts.filter(({ names: [name] }) => name === reason).slice(0, parts_max)]),
  );
  const key_ids = [...shown.values()].flat().map(({ names: [, key_id] }) => key_id);
  const names = await keyNames(db, account.id, key_ids);
  const of_reason = refusal_reasons.flatMap((reason) => {
    const own_hours = hours.filter(({ names: [name] }) => name === reason);
    if (own_hours.length === 0) return [];
    const last_at =
      own_hours
        .map(({ names: [, hour = ''] }) => hour)
        .toSorted()
        .at(-1) ?? '';
    const own_parts = shown.get(reason) ?? [];
    return [
      {
        reason,
        count: own_hours.reduce((sum, { count }) => sum + count, 0),
        last_at,
        parts: own_parts.map((row) => renderPart(row, names, budget_names)),
      },
    ];
  });
  const view: RefusalsView = {
    from: from.toISOString(),
    to: to.toISOString(),
    step,
    total: of_reason.reduce((sum, { count }) => sum + count, 0),
    reasons: of_reason.toSorted((one, other) => other.count - one.count),
    bars: barsOf(bars, step),
  };
  return { status: 200, body: view };
}

type Row = { names: readonly string[]; count: number };

function rowsOf(db: Db, filter: RefusalFilter, group_by: readonly RefusalGroup[]): Promise<Row[]> {
  return refusalsOf(db, filter, group_by, rows_max);
}

/** Ten reasons in each hour of 400 days, and more than that of no other group. */
const rows_max = 100_000;

function renderPart(
  { names: [, key = '', budget = '', model = ''], count }: Row,
  key_names: ReadonlyMap<string, string>,
  budget_names: ReadonlyMap<string, string>,
): RefusedPart {
  const named = (id: string, names: ReadonlyMap<string, string>) =>
    id === '' ? null : { id, name: names.get(id) ?? id };
  return { key: named(key, key_names), budget: named(budget, budget_names), model: model || null, count };
}

function barsOf(rows: readonly Row[], step: RefusalsView['step']): RefusalsView['bars'] {
  const bars = Map.groupBy(rows, ({ names: [at = ''] }) => (step === 'hour' ? at : `${at}T00:00:00Z`));
  return [...bars]
    .map(([at, parts]) => ({
      at: new Date(at).toISOString(),
      parts: parts.flatMap(({ names: [, reason], count }) => {
        const listed: RefusalReason | undefined = refusal_reasons.find((each) => each === reason);
        return listed ? [{ reason: listed, count }] : []; // a newer node may know more of them
      }),
    }))
    .toSorted((one, other) => (one.at < other.at ? -1 : 1));
}
