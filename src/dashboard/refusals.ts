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
  const filter = readFilter(query, account.id, now);
  const { from, to } = filter;
  const step = to.getTime() - from.getTime() <= by_hour_ms_max ? 'hour' : 'day';
  const [bars, hours, parts] = await Promise.all([
    rowsOf(db, filter, [step, 'reason']),
    rowsOf(db, filter, ['reason', 'hour']),
    rowsOf(db, filter, ['reason', 'key', 'budget', 'model']),
  ]);
  const shown = refusal_reasons.flatMap((reason) => rowsWith(parts, reason).slice(0, parts_max));
  const reasons = reasonsOf(hours, shown, await namesOf(db, account.id, shown, now));
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

type Row = { names: readonly string[]; count: number };

function rowsOf(db: Db, filter: RefusalFilter, group_by: readonly RefusalGroup[]): Promise<Row[]> {
  return refusalsOf(db, filter, group_by, rows_max);
}

/** Ten reasons in each hour of 400 days, and more than that of no other group. */
const rows_max = 100_000;

/** Rows whose names begin with a reason. */
function rowsWith(rows: readonly Row[], reason: RefusalReason): Row[] {
  return rows.filter(({ names: [name] }) => name === reason);
}

type Names = { keys: ReadonlyMap<string, string>; budgets: ReadonlyMap<string, string> };

/** Returns the names of budgets, and those of the keys in rows of a reason and a key. */
async function namesOf(db: Db, account_id: string, rows: readonly Row[], now: Date): Promise<Names> {
  const key_ids = rows.map(({ names: [, key_id = ''] }) => key_id);
  const [keys, budgets] = await Promise.all([
    keyNames(db, account_id, key_ids),
    listAccountBudgets(db, account_id, now),
  ]);
  return { keys, budgets: new Map(budgets.map(({ id, name }) => [id, name])) };
}

/** Returns each reason that there is, the most frequent first. Rows of `hours` and `parts` begin with one. */
function reasonsOf(hours: readonly Row[], parts: readonly Row[], names: Names): RefusalsView['reasons'] {
  const reasons = refusal_reasons.flatMap((reason) => {
    const own_hours = rowsWith(hours, reason);
    const starts = own_hours.map(({ names: [, hour = ''] }) => hour).toSorted();
    const last_at = starts.at(-1);
    if (last_at === undefined) return [];
    const count = own_hours.reduce((sum, row) => sum + row.count, 0);
    return [{ reason, count, last_at, parts: rowsWith(parts, reason).map((row) => renderPart(row, names)) }];
  });
  return reasons.toSorted((one, other) => other.count - one.count);
}

function renderPart(
  { names: [, key = '', budget = '', model = ''], count }: Row,
  { keys, budgets }: Names,
): RefusedPart {
  const named = (id: string, names: ReadonlyMap<string, string>) =>
    id === '' ? null : { id, name: names.get(id) ?? id };
  return { key: named(key, keys), budget: named(budget, budgets), model: model || null, count };
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
