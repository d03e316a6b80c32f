import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { createProject, moveKey } from '../../src/accounts/projects.ts';
import { newId } from '../../src/lib/ids.ts';
import {
  findAccountBudget,
  periodOf,
  refusingBudget,
  removeAccountBudget,
  setAccountBudget,
  type BudgetPeriod,
  type BudgetSetting,
  type BudgetState,
} from '../../src/money/account-budgets.ts';
import { checkBooks } from '../../src/money/books.ts';
import { closableBefore, closeLedger, removeClosed } from '../../src/money/closing.ts';
import { close, commit, hold, makeHoldBatcher } from '../../src/money/holds.ts';
import { addUpUsage } from '../../src/money/usage.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { depth } from '../helpers/depth.ts';
import { closeOf, holdOf, noon, openKey, openWallet, rotated, type Wallet } from './setup.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterEach(() => expectExactBooks(database.db));

afterAll(() => database.drop());

type Options = Partial<Pick<BudgetSetting, 'id' | 'scope' | 'subject' | 'period' | 'is_hard'>> & { now?: Date };

async function setBudget({ account_id }: Wallet, amount: bigint, options: Options = {}): Promise<string> {
  const {
    id = newId('budget'),
    scope = 'account',
    subject = null,
    period = 'month',
    is_hard = true,
    now = noon,
  } = options;
  const budget = { id, account_id, name: `of ${scope}`, scope, subject, period, amount, is_hard };
  expect(await setAccountBudget(database.db, budget, now)).toBe('set');
  return id;
}

async function stateOf({ account_id }: Wallet, id: string, now = noon): Promise<BudgetState> {
  const budget = await findAccountBudget(database.db, { account_id, id }, now);
  if (!budget) throw new Error('there is no such budget');
  return budget;
}

async function openProject({ account_id }: Wallet, name: string): Promise<string> {
  const project = await createProject(database.db, { account_id, name }, noon);
  if (typeof project === 'string') throw new Error(`the project is ${project}`);
  return project.id;
}

async function spend(wallet: Wallet, ref: string, cost: bigint, now = noon): Promise<string> {
  const { outcome } = await hold(database.db, holdOf(wallet, ref, cost), now);
  if (outcome === 'held') await close(database.db, closeOf(wallet, ref, cost), now);
  return outcome;
}

describe('a hard budget', () => {
  it('lets exactly its amount through, open holds included, and one millionth more is refused', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    const id = await setBudget(wallet, 100n);
    expect(await hold(db, holdOf(wallet, 'a', 60n), noon)).toMatchObject({ outcome: 'held', remaining: 40n });
    expect(await hold(db, holdOf(wallet, 'b', 41n), noon)).toMatchObject({ outcome: 'over_limit', remaining: 40n });
    expect(await hold(db, holdOf(wallet, 'b', 40n), noon)).toMatchObject({ outcome: 'held', remaining: 0n });
    await close(db, closeOf(wallet, 'a', 10n), noon);
    await close(db, closeOf(wallet, 'b', null), noon);
    expect(await stateOf(wallet, id)).toMatchObject({ spent: 10n, held: 0n });
    expect(await hold(db, holdOf(wallet, 'c', 91n), noon)).toMatchObject({ outcome: 'over_limit', remaining: 90n });
    expect(await spend(wallet, 'd', 90n)).toBe('held');
    expect(await spend(wallet, 'e', 1n)).toBe('over_limit');
  });

  it('says which of several refuses, and the own limit of the key if that has less left', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n, limit: 50n });
    const { account_id, key_id } = wallet;
    await setBudget(wallet, 100n);
    const small = await setBudget(wallet, 30n, { scope: 'key', subject: key_id, period: 'day' });
    expect(await hold(db, holdOf(wallet, 'a', 31n), noon)).toMatchObject({ outcome: 'over_limit', remaining: 30n });
    expect(await refusingBudget(db, { account_id, key_id }, noon)).toMatchObject({ id: small, room: 30n });
    await removeAccountBudget(db, account_id, small);
    expect(await hold(db, holdOf(wallet, 'a', 51n), noon)).toMatchObject({ outcome: 'over_limit', remaining: 50n });
    expect(await refusingBudget(db, { account_id, key_id }, noon)).toBeUndefined();
  });

  it('keeps free what a call may cost beyond its hold, and no end passes it: the rest is a loss', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    const id = await setBudget(wallet, 100n);
    await hold(db, { ...holdOf(wallet, 'a', 40n), cost_max: 80n }, noon);
    expect(await stateOf(wallet, id)).toMatchObject({ held: 80n });
    expect((await hold(db, holdOf(wallet, 'b', 21n), noon)).outcome).toBe('over_limit');
    expect(await close(db, closeOf(wallet, 'a', 70n, true), noon)).toMatchObject({ charged: 70n });
    await hold(db, holdOf(wallet, 'c', 10n), noon);
    expect(await close(db, closeOf(wallet, 'c', 1_000n, true), noon)).toMatchObject({ charged: 30n });
    const end = closeOf(wallet, 'd', 5n, true);
    expect(await commit(db, { hold: holdOf(wallet, 'd', 5n), end }, noon)).toMatchObject({
      charged: 0n,
      remaining: 0n,
    });
    await hold(db, holdOf(wallet, 'zero', 0n), noon);
    await close(db, closeOf(wallet, 'zero', null), noon);
    expect(await close(db, closeOf(wallet, 'zero', 9n, true), noon)).toMatchObject({ outcome: 'settled', charged: 0n });
    expect(await stateOf(wallet, id)).toMatchObject({ spent: 100n, held: 0n });
  });

  it('counts by all of an account, a project, a key with those it was rotated to, or a member', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    const { account_id, key_id } = wallet;
    const project = await openProject(wallet, 'Shop');
    const other = { account_id, key_id: await openKey(db, account_id) };
    await moveKey(db, { account_id, key_id: other.key_id, project_id: project });
    await db.query('update budgets set member_id = $2 where key_id = $1', [other.key_id, 'user_x']);
    const ids = {
      account: await setBudget(wallet, 1_000n),
      project: await setBudget(wallet, 1_000n, { scope: 'project', subject: project }),
      default: await setBudget(wallet, 1_000n, { scope: 'project', subject: 'default' }),
      key: await setBudget(wallet, 1_000n, { scope: 'key', subject: key_id }),
      member: await setBudget(wallet, 1_000n, { scope: 'member', subject: 'user_x' }),
    };
    const newer = await rotated(db, wallet);
    await spend(wallet, 'a', 1n);
    await spend(newer, 'b', 10n);
    await spend(other, 'c', 100n);
    const spent = await Promise.all(Object.values(ids).map(async (id) => (await stateOf(wallet, id)).spent));
    expect(spent).toEqual([111n, 100n, 11n, 11n, 100n]);
  });

  it('that is made in mid-period counts what was spent since its beginning, and open holds', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    await spend(wallet, 'october', 1_000n, new Date('2026-10-31T23:59:59Z'));
    await spend(wallet, 'sums', 7n, new Date('2026-11-01T00:00:00Z'));
    await spend(wallet, 'sunday', 50n, new Date('2026-11-08T23:59:59Z'));
    await addUpUsage(db, { behind: 1 });
    await spend(wallet, 'monday', 3n, new Date('2026-11-09T00:00:00Z'));
    await hold(db, { ...holdOf(wallet, 'open', 20n), cost_max: 25n }, noon);
    const spentIn = async (period: BudgetPeriod) => stateOf(wallet, await setBudget(wallet, 10_000n, { period }));
    expect(await spentIn('day')).toMatchObject({ spent: 0n, held: 25n });
    expect(await spentIn('week')).toMatchObject({ spent: 3n, held: 25n });
    expect(await spentIn('month')).toMatchObject({ spent: 60n, held: 25n });
    expect(await spentIn('total')).toMatchObject({ spent: 1_060n, held: 25n });
    await close(db, closeOf(wallet, 'open', 22n, true), noon);
    expect(await spentIn('total')).toMatchObject({ spent: 1_082n, held: 0n });
  });

  it.each<[BudgetPeriod, string, string]>([
    ['day', '2026-11-15T23:59:59.999Z', '2026-11-16T00:00:00Z'],
    ['week', '2026-11-15T23:59:59.999Z', '2026-11-16T00:00:00Z'],
    ['month', '2026-11-30T23:59:59.999Z', '2026-12-01T00:00:00Z'],
  ])(
    'of a %s begins anew in UTC; holds go on, and a node whose clock is behind does not turn it back',
    async (period, last, first) => {
      const { db } = database;
      const wallet = await openWallet(db, { credit: 1_000_000n });
      const id = await setBudget(wallet, 100n, { period });
      const [end, begin] = [new Date(last), new Date(first)];
      await spend(wallet, 'a', 90n);
      await hold(db, holdOf(wallet, 'open', 10n), end);
      expect(await spend(wallet, 'b', 1n, end)).toBe('over_limit');
      expect(await stateOf(wallet, id, begin)).toMatchObject({ spent: 0n, held: 10n });
      expect(await spend(wallet, 'c', 91n, begin)).toBe('over_limit');
      expect(await spend(wallet, 'd', 80n, begin)).toBe('held');
      await close(db, closeOf(wallet, 'open', 10n), end); // late, by its clock
      expect(await stateOf(wallet, id, begin)).toMatchObject({ spent: 90n, held: 0n });
      expect(await spend(wallet, 'e', 11n, end)).toBe('over_limit');
      expect(periodOf(period, end)?.ends_at).toEqual(begin);
    },
  );

  it('that is lowered below what is used refuses at once, and takes nothing back', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    const id = await setBudget(wallet, 100n);
    await spend(wallet, 'a', 50n);
    await hold(db, holdOf(wallet, 'open', 30n), noon);
    await setBudget(wallet, 10n, { id });
    expect(await hold(db, holdOf(wallet, 'b', 0n), noon)).toMatchObject({ outcome: 'over_limit', remaining: -70n });
    expect(await close(db, closeOf(wallet, 'open', 40n, true), noon)).toMatchObject({ charged: 30n });
    await setBudget(wallet, 81n, { id });
    expect(await spend(wallet, 'c', 1n)).toBe('held');
  });

  it('becomes soft and hard again without losing count, and is nothing when it is removed', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    const id = await setBudget(wallet, 100n);
    await hold(db, holdOf(wallet, 'open', 40n), noon);
    await setBudget(wallet, 100n, { id, is_hard: false });
    expect(await spend(wallet, 'a', 500n)).toBe('held');
    expect(await stateOf(wallet, id)).toMatchObject({ spent: 500n, held: 40n });
    await setBudget(wallet, 600n, { id });
    expect(await stateOf(wallet, id)).toMatchObject({ spent: 500n, held: 40n });
    await close(db, closeOf(wallet, 'open', 40n), noon);
    expect(await spend(wallet, 'b', 61n)).toBe('over_limit');
    expect(await removeAccountBudget(db, wallet.account_id, id)).toBe(true);
    expect(await removeAccountBudget(db, wallet.account_id, id)).toBe(false);
    expect(await spend(wallet, 'c', 1_000n)).toBe('held');
  });

  it('is kept when its key moves: what was held in a project is spent there', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000n });
    const { account_id, key_id } = wallet;
    const [first, second] = [await openProject(wallet, 'First'), await openProject(wallet, 'Second')];
    const move = (project_id: string) => moveKey(db, { account_id, key_id, project_id });
    const ids = [first, second].map((subject) => setBudget(wallet, 100n, { scope: 'project', subject }));
    await move(first);
    await hold(db, holdOf(wallet, 'a', 60n), noon);
    await move(second);
    expect(await spend(wallet, 'b', 100n)).toBe('held');
    await close(db, closeOf(wallet, 'a', 50n), noon);
    const states = await Promise.all(ids.map(async (id) => stateOf(wallet, await id)));
    expect(states.map(({ spent, held }) => [spent, held])).toEqual([
      [50n, 0n],
      [100n, 0n],
    ]);
    expect(await spend(wallet, 'c', 1n)).toBe('over_limit');
    await move(first);
    expect(await spend(wallet, 'd', 50n)).toBe('held');
  });

  it('is one of a hundred at most, and changes its name and amount beside them', async () => {
    const wallet = await openWallet(database.db, { credit: 1n });
    const { account_id } = wallet;
    for (let i = 0; i < 100; i++) await setBudget(wallet, 1n, { is_hard: i === 0 });
    const one_more = { id: 'one', account_id, name: 'One', scope: 'account', subject: null, period: 'day' } as const;
    expect(await setAccountBudget(database.db, { ...one_more, amount: 1n, is_hard: false }, noon)).toBe('crowded');
  });
});

it('a hard budget of all time goes on exactly when the months before are closed, whatever the books had looked at', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n, now: new Date('2026-09-01T00:00:00Z') });
  const { account_id } = wallet;
  const [september, october] = [new Date('2026-09-10T00:00:00Z'), new Date('2026-10-10T00:00:00Z')];
  await spend(wallet, 'before', 5n, september);
  const id = await setBudget(wallet, 1_000n, { period: 'total', now: september });
  const small = await setBudget(wallet, 1_000n, { period: 'day', now: september });
  await spend(wallet, 'september', 10n, september);
  await spend(wallet, 'october', 100n, october);
  await addUpUsage(db, { behind: 1 });
  await checkBooks(db);
  await spend(wallet, 'behind the mark', 200n, october);
  await addUpUsage(db, { behind: 1 });
  await checkBooks(db);
  for (const month of ['2026-10-01', '2026-11-01']) {
    const closable = await closableBefore(db, new Date(`${month}T00:00:00Z`));
    for (const one of closable.filter((each) => each.account_id === account_id))
      await closeLedger(db, one, { month, count: Number(one.number - one.after) });
    expect((await checkBooks(db)).findings).toEqual([]);
    expect((await checkBooks(db, { full: true })).findings).toEqual([]);
  }
  await removeClosed(db);
  await expectExactBooks(db);
  expect(await stateOf(wallet, id)).toMatchObject({ spent: 315n, held: 0n });
  expect(await spend(wallet, 'more', 685n)).toBe('held');
  expect(await spend(wallet, 'too much', 1n)).toBe('over_limit');
  expect(await stateOf(wallet, small)).toMatchObject({ spent: 685n });
});

it('200 racing holds for a hard budget that pays for exactly 100 get exactly 100, in batches and alone', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n });
  const id = await setBudget(wallet, 700n);
  const batcher = makeHoldBatcher(db, () => noon);
  const outcomes = await Promise.all(
    Array.from({ length: 200 }, async (_, i) => {
      const request = holdOf(wallet, `race ${i}`, 7n);
      const { outcome } = i % 5 === 0 ? await hold(db, request, noon) : await batcher.hold(request);
      if (outcome === 'held') await batcher.close(closeOf(wallet, request.ref, 7n));
      return outcome;
    }),
  );
  expect(outcomes.filter((outcome) => outcome === 'held')).toHaveLength(100);
  expect(await stateOf(wallet, id)).toMatchObject({ spent: 700n, held: 0n });
});

it('the books find a budget whose counters differ by a millionth, and a wrong number of hard budgets', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n });
  await setBudget(wallet, 100n);
  await spend(wallet, 'a', 5n);
  await hold(db, holdOf(wallet, 'b', 5n), noon);
  const counters = 'what a budget spent in its period is the sum of its charges';
  const holds = 'held and exposed of a budget are those of its open holds, and no budget is passed';
  const planted: [string, string][] = [
    ['account_budgets set spent = spent + ', counters],
    ['account_budgets set held = held + ', holds],
    ['account_budgets set exposed = exposed + ', holds],
    ['balances set hard_budgets = hard_budgets + ', holds],
  ];
  for (const [change, rule] of planted) {
    await checkBooks(db);
    await db.query(`update ${change} 1 where account_id = $1`, [wallet.account_id]);
    for (const full of [false, true])
      expect((await checkBooks(db, { full })).findings.map((finding) => finding.rule)).toEqual([rule]);
    await db.query(`update ${change} -1 where account_id = $1`, [wallet.account_id]);
  }
});

type Step =
  | { what: 'hold'; key: number; ref: number; amount: bigint; beyond: bigint }
  | { what: 'end'; ref: number; cost: bigint | null; beyond: boolean; in_batch: boolean }
  | { what: 'call'; key: number; amount: bigint; cost: bigint }
  | { what: 'move'; key: number; project: number }
  | { what: 'set'; budget: number; amount: bigint; is_hard: boolean }
  | { what: 'pass'; hours: number }
  | { what: 'sum' };

const small = fc.bigInt(0n, 40n);
const index = fc.nat(2);
const steps = fc.array(
  fc.oneof(
    {
      weight: 5,
      arbitrary: fc.record({
        what: fc.constant('hold' as const),
        key: index,
        ref: fc.nat(5),
        amount: small,
        beyond: fc.bigInt(0n, 9n),
      }),
    },
    {
      weight: 5,
      arbitrary: fc.record({
        what: fc.constant('end' as const),
        ref: fc.nat(5),
        cost: fc.option(small),
        beyond: fc.boolean(),
        in_batch: fc.boolean(),
      }),
    },
    { weight: 3, arbitrary: fc.record({ what: fc.constant('call' as const), key: index, amount: small, cost: small }) },
    fc.record({ what: fc.constant('move' as const), key: index, project: index }),
    fc.record({
      what: fc.constant('set' as const),
      budget: fc.nat(3),
      amount: fc.bigInt(0n, 200n),
      is_hard: fc.boolean(),
    }),
    fc.record({ what: fc.constant('pass' as const), hours: fc.integer({ min: 1, max: 90 }) }),
    fc.record({ what: fc.constant('sum' as const) }),
  ),
  { maxLength: 30 },
);

/** The model of a budget: charges with their time and owner, and open holds; it adds and subtracts. */
type Owner = { key: number; project: number };
type Open = Owner & { ref: string; amount: bigint; most: bigint };
type Model = {
  now: Date;
  projects: number[]; // of each key
  charges: (Owner & { at: Date; cost: bigint })[];
  open: Map<number, Open>;
  budgets: { amount: bigint; is_hard: boolean }[];
};

/** Budgets of the test: of the account in a week, of a project in a day, of a key in a month, of a project in total. */
const kinds: { period: BudgetPeriod; counts: (owner: Owner) => boolean }[] = [
  { period: 'week', counts: () => true },
  { period: 'day', counts: ({ project }) => project === 1 },
  { period: 'month', counts: ({ key }) => key === 0 },
  { period: 'total', counts: ({ project }) => project === 0 },
];

function usedOf({ charges, open, now }: Model, budget: number): { spent: bigint; held: bigint } {
  const { period, counts } = at(kinds, budget);
  const begin = periodOf(period, now)?.begins_at;
  const own = charges.filter((charge) => counts(charge) && (!begin || charge.at >= begin));
  const held = [...open.values()].filter(counts);
  return {
    spent: own.reduce((sum, { cost }) => sum + cost, 0n),
    held: held.reduce((sum, { most }) => sum + most, 0n),
  };
}

/** Returns what is left of the hard budgets that an owner counts in; undefined without any. */
function roomOf(model: Model, owner: Owner): bigint | undefined {
  const rooms = model.budgets.flatMap(({ amount, is_hard }, i) => {
    const { spent, held } = usedOf(model, i);
    return is_hard && kinds[i]?.counts(owner) ? [amount - spent - held] : [];
  });
  return rooms.length === 0 ? undefined : rooms.reduce((least, room) => (room < least ? room : least));
}

const lesser = (a: bigint, b: bigint) => (a < b ? a : b);
const atLeastZero = (a: bigint) => (a > 0n ? a : 0n);

/** Parts of one run: an account with three keys and three projects (the first is the default), and its budgets. */
type Real = { wallets: Wallet[]; projects: string[]; budgets: string[] };

async function openReal(): Promise<Real> {
  const { db } = database;
  const first = await openWallet(db, { credit: 1_000_000n });
  const { account_id } = first;
  const keys = [await openKey(db, account_id), await openKey(db, account_id)];
  const projects = ['default', await openProject(first, 'One'), await openProject(first, 'Two')];
  const subjects = [null, projects[1], first.key_id, 'default'];
  const scopes = ['account', 'project', 'key', 'project'] as const;
  const budgets: string[] = [];
  for (const [i, { period }] of kinds.entries()) {
    const scope = scopes[i] ?? 'account';
    budgets.push(await setBudget(first, 100n, { scope, subject: subjects[i] ?? null, period, is_hard: i % 2 === 0 }));
  }
  return { wallets: [first, ...keys.map((key_id) => ({ account_id, key_id }))], projects, budgets };
}

const newModel = (): Model => ({
  now: noon,
  projects: [0, 0, 0],
  charges: [],
  open: new Map(),
  budgets: kinds.map((_, i) => ({ amount: 100n, is_hard: i % 2 === 0 })),
});

function at<T>(list: readonly T[], i: number): T {
  const item = list[i];
  if (item === undefined) throw new Error(`there is no item ${i}`);
  return item;
}

type Compared = { answered: unknown; expected: unknown };

const nothing: Compared = { answered: null, expected: null };

/** Does a step in both, and returns what the money answers and what the model expects. */
async function take(step: Step, model: Model, real: Real, prefix: string): Promise<Compared> {
  const { db } = database;
  const batcher = makeHoldBatcher(db, () => model.now);
  const ownerOf = (key: number): Owner => ({ key, project: at(model.projects, key) });
  switch (step.what) {
    case 'hold': {
      if (model.open.has(step.ref)) return nothing;
      const { key, ref, amount, beyond } = step;
      const owner = ownerOf(key);
      const most = amount + beyond;
      const room = roomOf(model, owner);
      const request = {
        ...holdOf(at(real.wallets, key), `${prefix} ${ref} ${model.charges.length}`, amount),
        cost_max: most,
      };
      const answer = await batcher.hold(request);
      if (answer.outcome === 'exists') return nothing;
      if (answer.outcome === 'held') model.open.set(ref, { ...owner, amount, most, ref: request.ref });
      return { answered: answer.outcome, expected: room !== undefined && room < most ? 'over_limit' : 'held' };
    }
    case 'end': {
      const open = model.open.get(step.ref);
      if (!open) return nothing;
      const { cost, beyond, in_batch } = step;
      model.open.delete(step.ref);
      const room = roomOf(model, open); // with the hold gone
      const held = roomWith(room, open);
      const most = beyond ? open.amount + atLeastZero(held) : open.amount;
      const expected = cost === null ? 0n : lesser(cost, room === undefined && beyond ? cost : most);
      const request = closeOf(at(real.wallets, open.key), open.ref, cost, beyond);
      const { charged } = in_batch ? await batcher.close(request) : await close(db, request, model.now);
      if (cost !== null) model.charges.push({ key: open.key, project: open.project, at: model.now, cost: charged });
      return { answered: charged, expected };
    }
    case 'call': {
      const owner = ownerOf(step.key);
      const ref = `${prefix} call ${model.charges.length} ${model.now.getTime()}`;
      const wallet = at(real.wallets, step.key);
      const request = { hold: holdOf(wallet, ref, step.amount), end: closeOf(wallet, ref, step.cost, true) };
      const room = roomOf(model, owner);
      const { charged, outcome } = await commit(db, request, model.now);
      if (outcome === 'closed') return nothing;
      model.charges.push({ ...owner, at: model.now, cost: charged });
      return { answered: charged, expected: room === undefined ? step.cost : lesser(step.cost, atLeastZero(room)) };
    }
    case 'move': {
      const { account_id, key_id } = at(real.wallets, step.key);
      model.projects[step.key] = step.project;
      return {
        answered: await moveKey(db, { account_id, key_id, project_id: at(real.projects, step.project) }),
        expected: true,
      };
    }
    case 'set': {
      const { budget, amount, is_hard } = step;
      await setBudget(at(real.wallets, 0), amount, { id: at(real.budgets, budget), is_hard, now: model.now });
      model.budgets[budget] = { amount, is_hard };
      return nothing;
    }
    case 'pass':
      model.now = new Date(model.now.getTime() + step.hours * 3_600_000);
      return nothing;
    case 'sum':
      await addUpUsage(db, { behind: 1 });
      return nothing;
  }
}

/** Returns what a hold may take beyond its amount: what was kept free for it, and what is left beside. */
function roomWith(room: bigint | undefined, { amount }: Open): bigint {
  return room === undefined ? 0n : room - amount;
}

it('budgets agree with a model that only adds, over calls, moves of keys, other amounts and ends of periods', async () => {
  let runs = 0;
  await fc.assert(
    fc.asyncProperty(steps, async (all) => {
      const [model, real] = [newModel(), await openReal()];
      const prefix = `run ${runs++}`;
      for (const step of all) {
        const { answered, expected } = await take(step, model, real, prefix);
        expect(answered).toEqual(expected);
        for (const [i, id] of real.budgets.entries()) {
          const state = await stateOf(at(real.wallets, 0), id, model.now);
          const { spent, held } = usedOf(model, i);
          const shown = at(model.budgets, i).is_hard ? held : heldOf(model, i);
          expect({ spent: state.spent, held: state.held }).toEqual({ spent, held: shown });
        }
      }
      for (const open of model.open.values())
        await close(database.db, closeOf(at(real.wallets, open.key), open.ref, null), model.now);
      expect((await checkBooks(database.db)).findings).toEqual([]);
    }),
    { numRuns: depth(25, 500) },
  );
});

/** A soft budget shows its holds without what their calls may cost beyond them. */
function heldOf(model: Model, budget: number): bigint {
  const open = [...model.open.values()].filter((each) => at(kinds, budget).counts(each));
  return open.reduce((sum, { amount }) => sum + amount, 0n);
}
