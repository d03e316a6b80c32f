import { writeFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { marginsOf, type MarginRow } from '../../src/money/margins.ts';
import { exact, parseMoney, rational, times, toMoney, type Money } from '../../src/money/money.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { flagged_prompt, type Run } from './two-routes/site.ts';
import {
  costs,
  openStage,
  playPhase,
  price,
  rate,
  type PhaseResult,
  type Stage,
  type TaskResult,
} from './two-routes/stage.ts';
import { depth } from '../helpers/depth.ts';

/**
 * Models with two routes over two imitated providers, of which one fails in every way by turns. The long run
 * (docs/reliability.md): TWO_ROUTES_TASKS=10000 TWO_ROUTES_REPORT=table.md npm test -- test/providers/two-routes.test.ts
 */
const lasting = process.env['TWO_ROUTES_TASKS'] !== undefined;
const tasks = Number(process.env['TWO_ROUTES_TASKS'] ?? depth(100, 300));

let stage: Stage;
const results: PhaseResult[] = [];
let task_results: TaskResult[] = [];
let months: string[] = [];

beforeAll(async () => {
  stage = await openStage(tasks, lasting);
  const begun_at = new Date();
  for (const [i, phase] of stage.phases.entries()) {
    const place = (index: number) => Math.round((tasks * index) / stage.phases.length);
    results.push(await playPhase(stage, phase, place(i), place(i + 1), lasting));
  }
  task_results = results.flatMap((result) => result.results);
  months = [...new Set([begun_at, new Date()].map((at) => `${at.toISOString().slice(0, 7)}-01`))];
}, 3_000_000);
afterAll(async () => {
  await stage.stop();
}, 300_000);

it('no caller sees a failure that the other route could have prevented', () => {
  const expectedEnd = ({ prompt }: TaskResult) =>
    prompt.startsWith(flagged_prompt) ? 'content_policy_violation' : 'succeeded';
  const seen = ({ task }: TaskResult) => (task.status === 'failed' ? (task.error?.type ?? '') : task.status);
  expect(task_results.filter((each) => each.status !== 202 || seen(each) !== expectedEnd(each))).toEqual([]);
  expect(task_results).toHaveLength(tasks);
  for (const { phase, failures } of results) {
    expect({ phase, met: phase.way === 'refused' || failures > 0 }).toEqual({ phase, met: true });
  }
});

it('no task runs twice or is submitted twice to one provider, by the journals and the attempts', async () => {
  const attempts = await stage.service.app.db.query<Attempt>('select route, state, run_ref, reason from attempts');
  for (const name of ['a', 'b'] as const) {
    const site = stage[name];
    const own = attempts.filter(({ route }) => route.endsWith(`#${name}`));
    const accepted = own.filter(({ run_ref }) => run_ref !== null);
    const ids = [...site.runs.keys()];
    expect(accepted).toHaveLength(ids.length);
    const refs = accepted.map(({ run_ref }) => run_ref).join('\n');
    expect(ids.filter((id) => !refs.includes(id))).toEqual([]);
    expect([...site.submits].filter(([, count]) => count !== 1)).toEqual([]);
    const refused = own.filter(({ reason }) => reason === 'unreachable');
    expect(own).toHaveLength(site.submits.size + refused.length);
    expect(refused.length > 0).toBe(true);
    expect(own.filter(({ state }) => state === 'ambiguous')).toHaveLength(site.lost.length);
  }
  const ended = runs().filter(({ state }) => state === 'done' || state === 'flagged');
  expect(new Set(ended.map(({ prompt }) => prompt)).size).toBe(tasks);
  expect(ended).toHaveLength(tasks);
  expect(ended.filter(({ prompt, state }) => prompt.startsWith(flagged_prompt) !== (state === 'flagged'))).toEqual([]);
  expect(runs().filter(({ state, way }) => state === 'going' && way === undefined)).toEqual([]);
});

it('upstream cost and margin are in the ledger to the millionth', async () => {
  const by_route = await margins('route');
  const expected = expectedRows();
  expect(sumsOf(by_route)).toEqual(sumsOf(expected));
  for (const by of ['model', 'provider', 'account', 'day'] as const) {
    expect(total(await margins(by))).toEqual(total(expected));
  }
  const [row] = await stage.service.app.db.query<{ cost: Money }>(
    `select sum(upstream_amount)::bigint as cost from attempts`,
  );
  expect(row?.cost).toBe(total(expected).upstream_cost);
});

it('the books are exact after all calls, and no hold is open', async () => {
  await expectExactBooks(stage.service.app);
  const left = await stage.service.app.db.query('select * from open_holds');
  expect(left).toEqual([]);
  for (const [currency, client] of Object.entries(stage.clients)) {
    const { json } = await client.call('GET', '/v1/balance');
    const charged = task_results.filter(
      (each) => each.currency === currency && !each.prompt.startsWith(flagged_prompt),
    ).length;
    expect(parseMoney(json.held.exact)).toBe(0n);
    expect(parseMoney(json.balance.exact)).toBe(
      (parseMoney(String(tasks)) ?? 0n) - BigInt(charged) * priceIn(currency),
    );
  }
  if (process.env['TWO_ROUTES_REPORT'] !== undefined) writeFileSync(process.env['TWO_ROUTES_REPORT'], await report());
});

type Attempt = { route: string; state: string; run_ref: string | null; reason: string | null };
type Sums = Pick<MarginRow, 'name' | 'currency' | 'runs' | 'revenue' | 'upstream_cost' | 'margin' | 'unknown' | 'base'>;

function runs(): Run[] {
  return [...stage.a.runs.values(), ...stage.b.runs.values()];
}

async function margins(by: Parameters<typeof marginsOf>[2]): Promise<MarginRow[]> {
  const of_months = await Promise.all(months.map((month) => marginsOf(stage.service.app.db, month, by)));
  return of_months.flat();
}

/** Money in one of the two currencies, from an amount in the other or the same. */
function converted({ amount, currency }: { amount: string; currency: string }, to: string): Money {
  const [value, factor] = [rational(amount), rational(rate)];
  if (!value || !factor) throw new Error('no decimals');
  if (currency === to) return toMoney(value, 'half_up');
  const inverse = { numerator: factor.denominator, denominator: factor.numerator };
  return toMoney(times(value, to === 'EUR' ? factor : inverse), 'half_up');
}

function priceIn(currency: string): Money {
  return converted({ amount: price, currency: 'USD' }, currency);
}

/** From the journals of the providers and what callers were told, without the ledger. */
function expectedRows(): Sums[] {
  const currency_of = new Map(task_results.map(({ prompt, currency }) => [prompt, currency]));
  const rows: Sums[] = [];
  for (const name of ['a', 'b'] as const) {
    for (const currency of ['EUR', 'USD']) {
      const own = [...stage[name].runs.values()].filter(({ prompt }) => currency_of.get(prompt) === currency);
      const done = BigInt(own.filter(({ state }) => state === 'done').length);
      const flagged = BigInt(own.filter(({ state }) => state === 'flagged').length);
      const lost = BigInt(stage[name].lost.filter((prompt) => currency_of.get(prompt) === currency).length);
      const revenue = done * priceIn(currency);
      const upstream_cost = done * converted(costs[name], currency);
      const base = [{ currency: 'USD', cost: done * converted(costs[name], 'USD') }];
      const sums = { revenue, upstream_cost, margin: revenue - upstream_cost, unknown: flagged + lost, base };
      rows.push({ name, currency, runs: done + flagged, ...sums });
    }
  }
  return rows;
}

/** By the provider at the end of a route's name. */
function sumsOf(rows: readonly Sums[]): Record<string, Omit<Sums, 'name'>> {
  const groups = new Map<string, Sums[]>();
  for (const row of rows) {
    const key = `${row.name?.split('#').at(-1)} ${row.currency}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return Object.fromEntries([...groups].map(([key, group]) => [key, total(group)]).toSorted());
}

function total(rows: readonly Sums[]) {
  const sum = (pick: (row: Sums) => bigint) => rows.reduce((so_far, row) => so_far + pick(row), 0n);
  return {
    runs: sum(({ runs: count }) => count),
    revenue: sum(({ revenue }) => revenue),
    upstream_cost: sum(({ upstream_cost }) => upstream_cost),
    margin: sum(({ margin }) => margin),
    unknown: sum(({ unknown }) => unknown),
    base: sum(({ base }) => base.reduce((so_far, { cost }) => so_far + cost, 0n)),
  };
}

async function report(): Promise<string> {
  const lines = results.map(({ phase, results: of_phase, failures, seconds }) => {
    const by_other =
      of_phase.length -
      [...stage[phase.failing].runs.values()].filter(
        ({ prompt, state }) =>
          (state === 'done' || state === 'flagged') && of_phase.some((each) => each.prompt === prompt),
      ).length;
    return `| ${phase.way}, ${phase.failing === 'a' ? 'Replicate' : 'fal'} | ${of_phase.length} | ${failures} | ${by_other} | ${seconds.toFixed(0)} s |`;
  });
  const sums = Object.entries(sumsOf(await margins('route'))).map(
    ([name, row]) =>
      `| ${name} | ${row.runs} | ${exact(row.revenue)} | ${exact(row.upstream_cost)} | ${exact(row.margin)} | ${row.unknown} |`,
  );
  return [...lines, '', ...sums, ''].join('\n');
}
