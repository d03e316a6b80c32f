import type { Clock } from '../lib/clock.ts';
import type { Db } from '../db/database.ts';
import { distinctKeyNames, keyNames } from '../accounts/key-list.ts';
import { projectNames } from '../accounts/projects.ts';
import type { Answer, Query } from '../http/endpoint.ts';
import { oneOf, timeRange } from '../http/query.ts';
import { units as known_units } from '../catalog/model.ts';
import { costView, exact } from '../money/money.ts';
import { keysInProjects } from '../money/ledger.ts';
import { groupNamed, isLabel, isPair, type UsageGroup } from '../money/groups.ts';
import { compareGroups, costOf } from '../money/usage-groups.ts';
import { chargesOf, pairNames, usageOf, type UsageFilter, type UsageRow } from '../money/usage.ts';
import { csvAnswer, type Cell } from './csv.ts';
import { account_endpoint, type AccountCall } from './page.ts';
import type { UsageSum, UsageGrouping, UsageView } from './views/usage.ts';

/** The parts of the app that showing usage takes. */
type Parts = { readonly db: Db; readonly clock: Clock };

const day_ms = 86_400_000;
const by_hour_ms_max = 2 * day_ms;

const text = { type: 'string' };
const filters = {
  from: { description: 'Charged at this time or later.', schema: text },
  to: { description: 'Charged before this time.', schema: text },
  group: { description: 'model, key, project, kind, user, tag or metadata.NAME.', schema: text },
  model: { description: 'Only this model.', schema: text },
  key: { description: 'Only of this key.', schema: text },
  project: { description: 'Only of this project.', schema: text },
  kind: { description: 'Only this kind.', schema: text },
};

type UsageQuery = { from: Date; to: Date; group: UsageGrouping; only: UsageFilter };

/** Rows of a table that people read; the API has all groups. */
const rows_max = 500;

/** Spend and units of a range by its days or hours, beside those of the range before it. */
export const get_usage = account_endpoint('GET', '/usage', 'read', handleUsage, {
  query: filters,
  limited: 'own',
});

/** The page's table as a file. */
export const get_usage_table = account_endpoint('GET', '/usage/table.csv', 'read', handleTable, {
  query: filters,
  limited: 'own',
});

/** Every charge of the range as a file. */
export const get_usage_charges = account_endpoint('GET', '/usage/charges.csv', 'read', handleCharges, {
  query: filters,
  limited: 'own',
});

function readUsageQuery({ clock }: Parts, { query, scope }: AccountCall): UsageQuery {
  const tomorrow = new Date((Math.floor(clock.now() / day_ms) + 1) * day_ms);
  const { from, to } = timeRange(query, { from: (end) => new Date(end.getTime() - 30 * day_ms), to: tomorrow });
  const group = groupOf(query);
  const [model, key, project, modality] = ['model', 'key', 'project', 'kind'].map((name) => query.get(name));
  return { from, to, group, only: { model, key, project, modality, projects: scope?.project_ids } };
}

/** Groups of the page beside pairs of metadata. */
export const page_groups = ['model', 'key', 'project', 'kind', 'user', 'tag'] as const;

function groupOf(query: Query): UsageGrouping {
  const named = groupNamed(query.get('group') ?? '');
  if (named !== undefined && isPair(named)) return named;
  return oneOf(query, 'group', page_groups) ?? 'model';
}

async function handleUsage(app: Parts, call: AccountCall): Promise<Answer> {
  return { status: 200, body: await usageView(app.db, call, readUsageQuery(app, call)) };
}

async function usageView(db: Db, { account, scope }: AccountCall, query: UsageQuery): Promise<UsageView> {
  const { from, to, group, only } = query;
  const before = { from: new Date(2 * from.getTime() - to.getTime()), to: from };
  const step = to.getTime() - from.getTime() <= by_hour_ms_max ? 'hour' : 'day';
  const by = group === 'kind' ? 'modality' : group;
  const usage = (range: { from: Date; to: Date }, group_by: UsageGroup[]) =>
    usageOf(db, { account_id: account.id, ...range, only, group_by });
  const [usages, earlier, pairs] = await Promise.all([
    usage({ from, to }, [step, by]),
    usage(before, [by]),
    scope ? [] : pairNames(db, account.id), // they are those of all projects
  ]);
  // A charge with several tags counts in each, and once in the sum.
  const sumOf = (range: { from: Date; to: Date }, rows: UsageRow[]) => (isLabel(by) ? usage(range, []) : rows);
  const [all, all_before] = [await sumOf({ from, to }, usages), await sumOf(before, earlier)];
  const shown = (rows: readonly UsageRow[]) => usedView(rows, account.currency);
  const groups = compareGroups(usages, earlier, by);
  const names = await namesOf(db, { account, scope }, group, groups.slice(0, rows_max), distinctKeyNames);
  const rows = groups.slice(0, rows_max).map(({ id, used, used_before }) => {
    const name = names.get(id) ?? id;
    return { id, name, ...shown(used), before: used_before ? shown(used_before) : null };
  });
  const bars = Map.groupBy(usages, (row) => (step === 'hour' ? row.hour : `${row.day}T00:00:00Z`) ?? '');
  return {
    from: from.toISOString(),
    to: to.toISOString(),
    before: { from: before.from.toISOString(), to: before.to.toISOString() },
    step,
    group,
    rows,
    rows_more: groups.length - rows.length,
    pairs,
    bars: [...bars].map(([at, parts]) => ({
      at: new Date(at).toISOString(),
      parts: parts.map((row) => ({ id: row[by] ?? '', ...shown([row]) })),
    })),
    total: shown(all),
    total_before: shown(all_before),
  };
}

/** Returns the names of groups. A key that is in another project by now has spent in this one, and has no name here. */
async function namesOf(
  db: Db,
  { account, scope }: Pick<AccountCall, 'account' | 'scope'>,
  group: UsageGrouping,
  groups: readonly { id: string }[],
  read: typeof keyNames,
): Promise<Map<string, string>> {
  if (group === 'project') return projectNames(db, account.id);
  if (group !== 'key') return new Map();
  const ids = groups.map(({ id }) => id);
  const seen = scope ? await keysInProjects(db, scope, ids) : ids;
  return read(db, account.id, seen);
}

/** Tells whether groups have names beside their ids. */
function isNamed(group: UsageGrouping): group is 'key' | 'project' {
  return group === 'key' || group === 'project';
}

function usedView(rows: readonly UsageRow[], currency: string): UsageSum {
  const units = new Map<string, string>();
  for (const row of rows) {
    for (const [unit, amount] of Object.entries(row.units))
      units.set(unit, addDecimals(units.get(unit) ?? '0', amount));
  }
  return {
    count: Number(rows.reduce((sum, { charges }) => sum + charges, 0n)),
    cost: costView(costOf(rows), currency),
    units: Object.fromEntries(units),
  };
}

/** The exact sum of two plain decimals, which are not negative. */
function addDecimals(a: string, b: string): string {
  const [whole_a = '', fraction_a = ''] = a.split('.');
  const [whole_b = '', fraction_b = ''] = b.split('.');
  const digits = Math.max(fraction_a.length, fraction_b.length);
  const sum = BigInt(whole_a + fraction_a.padEnd(digits, '0')) + BigInt(whole_b + fraction_b.padEnd(digits, '0'));
  if (digits === 0) return String(sum);
  const all = String(sum).padStart(digits + 1, '0');
  return `${all.slice(0, -digits)}.${all.slice(-digits)}`.replace(/\.?0+$/, '');
}

async function handleTable(app: Parts, call: AccountCall): Promise<Answer> {
  const { account } = call;
  const request = readUsageQuery(app, call);
  const { rows, total, total_before } = await usageView(app.db, call, request);
  const units = unitsOf(total.units);
  const lines = rows.map(({ id, name, count, cost, units: used, before }): Cell[] => {
    const own = isNamed(request.group) ? [id, name] : [id];
    return [
      ...own,
      count,
      cost.exact,
      cost.currency,
      ...units.map((unit) => used[unit]),
      before?.cost.exact ?? '0.000000',
    ];
  });
  const sums = ['total', ...(isNamed(request.group) ? [''] : []), total.count, total.cost.exact, account.currency];
  const header = isNamed(request.group) ? [request.group, `${request.group}_name`] : [request.group];
  return csvAnswer(
    fileName(`usage-by-${isPair(request.group) ? 'metadata' : request.group}`, request),
    [...header, 'charges', 'cost', 'currency', ...units, 'cost_before'],
    [...lines, [...sums, ...units.map((unit) => total.units[unit]), total_before.cost.exact]],
  );
}

/** Known ones in their order, then any others. */
function unitsOf(used: Record<string, string>): string[] {
  const units: readonly string[] = known_units;
  return [...units.filter((unit) => unit in used), ...Object.keys(used).filter((unit) => !units.includes(unit))];
}

async function handleCharges(app: Parts, call: AccountCall): Promise<Answer> {
  const request = readUsageQuery(app, call);
  const header = [
    'time',
    'reference',
    'model',
    'kind',
    'key',
    'key_name',
    'project',
    'cost',
    'currency',
    ...known_units,
  ];
  return csvAnswer(fileName('charges', request), header, chargeLines(app.db, call, request));
}

async function* chargeLines(
  db: Db,
  { account, scope }: Pick<AccountCall, 'account' | 'scope'>,
  { from, to, only }: UsageQuery,
): AsyncGenerator<Cell[]> {
  const { id: account_id, currency } = account;
  for await (const charges of chargesOf(db, { account_id, from, to, only })) {
    const keys = charges.map(({ key_id }) => ({ id: key_id }));
    const names = await namesOf(db, { account, scope }, 'key', keys, keyNames);
    for (const { created_at, ref, model, kind, key_id, project_id, cost, units } of charges) {
      const used = known_units.map((unit) => units?.[unit]);
      yield [created_at, ref, model, kind, key_id, names.get(key_id), project_id, exact(cost), currency, ...used];
    }
  }
}

/** `charges-2026-11-01-2026-11-30`: the first and the last day. */
export function fileName(name: string, { from, to }: { from?: Date | undefined; to?: Date | undefined }): string {
  const days = [from, to && new Date(to.getTime() - 1)].flatMap((date) =>
    date ? [date.toISOString().slice(0, 10)] : [],
  );
  return ['medley', name, ...days].join('-');
}
