import type { Command } from 'commander';
import type { CommandApp } from '../app/command-app.ts';
import { margin_groups, marginsOf, type MarginGroup, type MarginRow } from '../money/margins.ts';
import { exact } from '../money/money.ts';
import { CommandError, says, table, withApp, type CommandResult } from './command.ts';

export function marginsCommand(margins: Command): void {
  margins
    .option('--month <YYYY-MM>', 'a month (UTC); this one if absent')
    .option('--by <group>', margin_groups.join(', '), 'model');
  says(margins, () => withApp((app) => tellMargins(app, margins.opts())));
}

async function tellMargins(app: CommandApp, options: { month?: string; by?: string }): Promise<CommandResult> {
  const month = options.month ?? new Date(app.clock.now()).toISOString().slice(0, 7);
  if (!/^20\d\d-(0[1-9]|1[0-2])$/.test(month))
    throw new CommandError(`--month must be like 2026-01, not "${month}".`, 2);
  const by = groupNamed(options.by ?? 'model');
  const rows = await marginsOf(app.db, `${month}-01`, by);
  const totals = totalsOf(rows);
  return {
    json: { month, by, rows: rows.map(jsonOf), totals: totals.map(jsonOf) },
    text: textOf(month, by, rows, totals),
  };
}

function groupNamed(name: string): MarginGroup {
  const group = margin_groups.find((each) => each === name);
  if (group) return group;
  throw new CommandError(`--by must be one of ${margin_groups.join(', ')}, not "${name}".`, 2);
}

/** One line for each currency. */
function totalsOf(rows: readonly MarginRow[]): MarginRow[] {
  const totals = new Map<string, MarginRow>();
  for (const row of rows) {
    const sum = totals.get(row.currency);
    totals.set(row.currency, sum ? added(sum, row) : { ...row, name: null });
  }
  return [...totals.values()];
}

function added(a: MarginRow, b: MarginRow): MarginRow {
  const base = new Map(a.base.map(({ currency, cost }) => [currency, cost]));
  for (const { currency, cost } of b.base) base.set(currency, (base.get(currency) ?? 0n) + cost);
  return {
    ...a,
    runs: a.runs + b.runs,
    revenue: a.revenue + b.revenue,
    upstream_cost: a.upstream_cost + b.upstream_cost,
    margin: a.margin + b.margin,
    base: [...base].map(([currency, cost]) => ({ currency, cost })),
    unknown: a.unknown + b.unknown,
  };
}

function jsonOf({ name, runs, revenue, upstream_cost, margin, base, unknown, currency }: MarginRow) {
  return {
    name,
    currency,
    runs: Number(runs),
    revenue: exact(revenue),
    upstream_cost: exact(upstream_cost),
    margin: exact(margin),
    upstream_cost_base: base.map((one) => ({ currency: one.currency, amount: exact(one.cost) })),
    unknown: Number(unknown),
  };
}

function textOf(month: string, by: MarginGroup, rows: readonly MarginRow[], totals: readonly MarginRow[]): string {
  if (rows.length === 0) return `No charges in ${month}.`;
  const head = [by, 'currency', 'runs', 'revenue', 'upstream cost', 'margin', '%', 'cost unknown'];
  const lines = rows.map((row) => lineOf(row.name ?? '(unknown)', row));
  const sums = totals.map((row) => lineOf('all', row));
  const unknown = totals.reduce((sum, row) => sum + row.unknown, 0n);
  const note =
    `Cost unknown: runs, calls and attempts for which the upstream may charge, but neither it nor the route's cost rows ` +
    'say how much. They are in no sum, so that the margin is at most what stands here.';
  return [table([head, ...lines, ...sums]), ...(unknown > 0n ? [note] : [])].join('\n');
}

function lineOf(name: string, row: MarginRow): string[] {
  const { currency, runs, revenue, upstream_cost, margin, unknown } = row;
  return [
    name,
    currency,
    String(runs),
    exact(revenue),
    exact(upstream_cost),
    exact(margin),
    shareOf(row),
    String(unknown),
  ];
}

/** In tenths of a percent, cut; at most that much while a cost is unknown. */
function shareOf({ margin, revenue, unknown }: MarginRow): string {
  if (revenue <= 0n) return '–';
  const tenths = (margin * 1000n) / revenue;
  const size = tenths < 0n ? -tenths : tenths;
  return `${unknown > 0n ? '≤' : ''}${tenths < 0n ? '−' : ''}${size / 10n}.${size % 10n}`;
}
