import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { recordText } from '../../src/db/record.ts';
import { hold, close } from '../../src/money/holds.ts';
import { listEntries } from '../../src/money/ledger.ts';
import { addUpUsage, chargesOf, usageOf, type UsageRow } from '../../src/money/usage.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, openKey, openWallet, type Wallet } from './setup.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const begin_ms = Date.parse('2026-11-10T00:00:00Z');
const span_ms = 4 * 86_400_000;
const kinds = ['chat', 'image', 'video'] as const;

type UsageGroup = 'hour' | 'day' | 'model' | 'key' | 'modality';

type Charge = {
  at_ms: number;
  key_id: string;
  model: string;
  kind: string;
  cost: bigint;
  units: Record<string, string>;
};

/** Grouped and added up by nothing but plain loops. */
function expected(charges: readonly Charge[], groups: readonly UsageGroup[]): UsageRow[] {
  const rows = new Map<string, UsageRow & { units_of: Map<string, number> }>();
  for (const { at_ms, key_id, model, kind, cost, units } of charges) {
    const iso = new Date(at_ms).toISOString();
    const names = { hour: `${iso.slice(0, 13)}:00:00Z`, day: iso.slice(0, 10), model, key: key_id, modality: kind };
    const group = Object.fromEntries(groups.map((name) => [name, names[name]]));
    const id = JSON.stringify(group);
    const row = rows.get(id) ?? { ...group, charges: 0n, cost: 0n, units: {}, units_of: new Map<string, number>() };
    row.charges += 1n;
    row.cost += cost;
    for (const [unit, amount] of Object.entries(units)) {
      row.units_of.set(unit, (row.units_of.get(unit) ?? 0) + Math.round(Number(amount) * 1000));
    }
    rows.set(id, row);
  }
  return [...rows.values()].map(({ units_of, ...row }) => {
    return { ...row, units: Object.fromEntries([...units_of].map(([unit, amount]) => [unit, String(amount / 1000)])) };
  });
}

const sorted = (rows: UsageRow[]) =>
  rows
    .map(({ units, ...row }) => ({
      ...row,
      units: Object.fromEntries(Object.entries(units).toSorted(([a], [b]) => (a < b ? -1 : 1))),
    }))
    .toSorted((a, b) => (JSON.stringify(a, shown) < JSON.stringify(b, shown) ? -1 : 1));
const shown = (_: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

async function charge(wallet: Wallet, planned: Charge, ref: string): Promise<void> {
  const { key_id, model, kind, cost, units } = planned;
  const now = new Date(planned.at_ms);
  await hold(database.db, { ...holdOf({ ...wallet, key_id }, ref, cost), model, kind }, now);
  await close(database.db, { ...closeOf(wallet, ref, cost), units }, now);
}

const amounts = fc.integer({ min: 1, max: 9_000 }).map((thousandths) => String(thousandths / 1000));
const one = fc.record({
  minute: fc.integer({ min: 0, max: span_ms / 60_000 - 1 }),
  second_key: fc.boolean(),
  model: fc.constantFrom('a/one', 'b/two'),
  kind: fc.constantFrom(...kinds),
  cost: fc.bigInt({ min: 0n, max: 5_000_000n }),
  units: fc.dictionary(fc.constantFrom('image', 'second', 'input_token'), amounts, { maxKeys: 2 }),
});

describe('the usage report', () => {
  it('is the sum of the charges for any range and group, however far the sums have been computed', async () => {
    const { db } = database;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ charge: one, sum_up: fc.nat({ max: 12 }) }), { minLength: 1, maxLength: 25 }),
        fc.integer({ min: -60, max: 6_000 }),
        fc.integer({ min: 1, max: 6_000 }),
        fc.subarray<UsageGroup>(['hour', 'day', 'model', 'key', 'modality']),
        fc.constantFrom({}, { model: 'a/one' }, { modality: 'chat' }, { model: 'b/two', modality: 'image' }),
        async (steps, from_minute, minutes, group_by, only) => {
          const wallet = await openWallet(db, { credit: 1_000_000_000n, now: new Date(begin_ms) });
          const second = await openKey(db, wallet.account_id, null, new Date(begin_ms));
          const charges: Charge[] = [];
          for (const [i, step] of steps.entries()) {
            const { minute, second_key, ...rest } = step.charge;
            const each = { ...rest, at_ms: begin_ms + minute * 60_000, key_id: second_key ? second : wallet.key_id };
            await charge(wallet, each, `u${i}`);
            charges.push(each);
            if (step.sum_up > 8) await db.query('select add_up_usage($1, $2)', [wallet.account_id, step.sum_up]);
          }
          const from = new Date(begin_ms + from_minute * 60_000);
          const to = new Date(from.getTime() + minutes * 60_000);
          const range = { account_id: wallet.account_id, from, to, only };
          const selected = charges.filter(({ at_ms, model, kind }) => {
            const fits = (only.model ?? model) === model && (only.modality ?? kind) === kind;
            return fits && at_ms >= from.getTime() && at_ms < to.getTime();
          });
          expect(sorted(await usageOf(db, { ...range, group_by }))).toEqual(sorted(expected(selected, group_by)));
          const raw = (await allOf(chargesOf(db, range))).flat();
          expect(raw.map(({ created_at, cost }) => [created_at.getTime(), cost])).toEqual(
            selected.toSorted((a, b) => a.at_ms - b.at_ms).map(({ at_ms, cost }) => [at_ms, cost]),
          );
        },
      ),
      { numRuns: 40 },
    );
    await expectExactBooks(db);
  });

  it('is added up for accounts that are far behind, by several nodes at once', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000_000n, now: new Date(begin_ms) });
    await fill(wallet, 3_000);
    const range = { account_id: wallet.account_id, from: new Date(begin_ms), to: new Date(begin_ms + span_ms) };
    const before = await usageOf(db, { ...range, group_by: ['hour', 'model'] });
    expect(before.length).toBeGreaterThan(10);
    await Promise.all([1, 2, 3].map(() => addUpUsage(db)));
    const marks = await db.query('select number from usage_marks where account_id = $1', [wallet.account_id]);
    expect(marks).toEqual([{ number: 6_001n }]);
    expect(await usageOf(db, { ...range, group_by: ['hour', 'model'] })).toEqual(before);
    expect((await allOf(chargesOf(db, range))).flat()).toHaveLength(3_000);
    expect(await addUpUsage(db)).toBe(0);
    await expectExactBooks(db);
  });
});

async function allOf<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

/** Charges one minute after the other, many in a call. */
async function fill(wallet: Wallet, count: number): Promise<void> {
  const end = { account_id: wallet.account_id, cost: 7, units: { input_token: '3' } };
  await database.db.query(
    `select count(hold_money(t, null, $1::jsonb || jsonb_build_object('ref', 'f' || i), null)),
            count(close_hold(t, $2::jsonb || jsonb_build_object('ref', 'f' || i)))
       from generate_series(1, $3::int) i, lateral (select $4::timestamptz + i * interval '1 minute' as t) s`,
    [recordText({ ...wallet, amount: 10, model: 'a/one', kind: 'chat' }), recordText(end), count, new Date(begin_ms)],
  );
}

describe('ledger entries of a time range', () => {
  it('are complete on every page', async () => {
    const { db } = database;
    const wallet = await openWallet(db, { credit: 1_000_000_000n, now: new Date(begin_ms) });
    await fill(wallet, 500);
    const at = (minute: number) => new Date(begin_ms + minute * 60_000);
    const { account_id } = wallet;
    const all = await listEntries(db, { account_id, limit: 2_000 });
    expect(all.entries).toHaveLength(1_001);
    for (const [from, to] of [
      [10, 20],
      [0, 1],
      [499, 501],
      [-5, 0],
      [501, 700],
      [120, 121],
    ] as const) {
      const entries = await listEntries(db, { account_id, limit: 2_000, from: at(from), to: at(to) });
      const expected_entries = all.entries.filter(({ created_at }) => created_at >= at(from) && created_at < at(to));
      expect(entries.entries).toEqual(expected_entries);
    }
    const first = await listEntries(db, { account_id, limit: 5, from: at(10), to: at(20) });
    const rest = await listEntries(db, {
      account_id,
      limit: 50,
      from: at(10),
      to: at(20),
      after: first.entries.at(-1)?.number ?? 0n,
    });
    expect([first.has_more, first.entries.length + rest.entries.length]).toEqual([true, 20]);
  });
});
