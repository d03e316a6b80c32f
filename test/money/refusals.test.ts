import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { deleteAccount } from '../../src/accounts/accounts.ts';
import { createProject, moveKey } from '../../src/accounts/projects.ts';
import { withConnection, type Queryable } from '../../src/db/database.ts';
import { openMetrics } from '../../src/metrics/metrics.ts';
import {
  allRefusals,
  makeRefusals,
  refusalsOf,
  refusedByBudgets,
  removeOldRefusals,
  type RefusalGroup,
  type RefusalRecord,
} from '../../src/money/refusals.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { noon, openWallet, rotated, type Wallet } from './setup.ts';

/** Refused requests, as nodes count them. */

const hour_ms = 3_600_000;

let database: TestDatabase;
let wallet: Wallet;
let now_ms: number;
let statements: number;
let is_down: boolean;

beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());
beforeEach(async () => {
  now_ms = noon.getTime();
  statements = 0;
  is_down = false;
  wallet = await openWallet(database.db);
});

function node() {
  const db: Queryable = {
    query: (...args) => {
      statements += 1;
      return is_down ? Promise.reject(new Error('down')) : database.db.query(...args);
    },
  };
  return nodeOn(db);
}

function nodeOn(db: Queryable) {
  const metrics = openMetrics();
  const warnings: unknown[] = [];
  const log = { warn: (...fields: unknown[]) => void warnings.push(fields) };
  return { metrics, warnings, ...makeRefusals({ db, clock: { now: () => now_ms }, log, metrics }) };
}

const lostBy = ({ metrics }: ReturnType<typeof nodeOn>) => [...metrics.refusals_lost.lines()];

const of_day = () => {
  const { account_id } = wallet;
  return { account_id, from: new Date(noon.getTime() - hour_ms), to: new Date(noon.getTime() + 24 * hour_ms) };
};
const report = (...groups: RefusalGroup[]) => refusalsOf(database.db, of_day(), groups);
const lines = async (...groups: RefusalGroup[]) =>
  (await report(...groups)).map(({ names, count }) => [...names, count].join(' '));

async function exported(): Promise<RefusalRecord[]> {
  const all: RefusalRecord[] = [];
  for await (const each of allRefusals(database.db, wallet.account_id)) all.push(each);
  return all;
}

describe('a node', () => {
  it('writes a thousand refusals in one statement when it stops, by hour, reason, key and model', async () => {
    const refusals = node();
    for (let i = 0; i < 1_000; i++) {
      if (i === 900) now_ms += hour_ms;
      const reason = i % 2 === 0 ? 'insufficient_balance' : 'monthly_limit';
      refusals.note(wallet, { reason, model: 'acme/small' });
    }
    expect(statements).toBe(0);
    await refusals.close();
    expect(statements).toBe(1);
    expect(await lines('hour', 'reason', 'key', 'model', 'project')).toEqual([
      `2026-11-15T12:00:00Z insufficient_balance ${wallet.key_id} acme/small default 450`,
      `2026-11-15T12:00:00Z monthly_limit ${wallet.key_id} acme/small default 450`,
      `2026-11-15T13:00:00Z insufficient_balance ${wallet.key_id} acme/small default 50`,
      `2026-11-15T13:00:00Z monthly_limit ${wallet.key_id} acme/small default 50`,
    ]);
    expect([...refusals.metrics.refusals.lines()]).toContain('medley_refusals_total{reason="monthly_limit"} 500');
  });

  it('writes by itself a few seconds later, and then nothing more', async () => {
    const refusals = node();
    refusals.note(wallet, { reason: 'rate_limit' });
    await expect.poll(() => lines('reason'), { interval: 100 }).toEqual(['rate_limit 1']);
    await refusals.close();
    expect(statements).toBe(1);
  });

  it('tells 200 rows of an account and hour apart, and counts 10,000 models exactly', async () => {
    const refusals = node();
    const other = await openWallet(database.db);
    for (let round = 0; round < 2; round++) {
      for (let i = 0; i < 10_000; i++) refusals.note(wallet, { reason: 'model_not_allowed', model: `m${i}` });
      refusals.note(other, { reason: 'model_not_allowed', model: 'mine' });
      await refusals.flush();
    }
    const rows = await report('model', 'key');
    expect(rows).toHaveLength(201);
    expect(rows[0]).toEqual({ names: ['', ''], count: 2 * 9_800 });
    expect(rows.slice(1).every(({ count, names }) => count === 2 && names[1] === wallet.key_id)).toBe(true);
    expect(await lines('reason')).toEqual(['model_not_allowed 20000']);
    expect(await refusalsOf(database.db, { ...of_day(), account_id: other.account_id }, ['model'])).toEqual([
      { names: ['mine'], count: 2 },
    ]);
    now_ms += hour_ms;
    refusals.note(wallet, { reason: 'model_not_allowed', model: 'm9999' });
    await refusals.close();
    expect(await lines('hour', 'model')).toContain('2026-11-15T13:00:00Z m9999 1');
  });

  it('keeps what it cannot write, and writes it once', async () => {
    const refusals = node();
    refusals.note(wallet, { reason: 'rate_limit' });
    is_down = true;
    await refusals.flush();
    refusals.note(wallet, { reason: 'rate_limit' });
    is_down = false;
    await refusals.flush();
    await refusals.close();
    expect(await lines('reason')).toEqual(['rate_limit 2']);
  });

  it('loses nothing of other accounts when one was deleted meanwhile', async () => {
    const refusals = node();
    const gone = await openWallet(database.db);
    refusals.note(gone, { reason: 'rate_limit' });
    await refusals.flush();
    refusals.note(gone, { reason: 'rate_limit' });
    refusals.note(wallet, { reason: 'rate_limit' });
    expect(await deleteAccount(database.db, gone.account_id)).toBe('deleted');
    await refusals.close();
    expect(await lines('reason')).toEqual(['rate_limit 1']);
    expect(await refusalsOf(database.db, { ...of_day(), account_id: gone.account_id }, [])).toEqual([]);
  });
});

describe('a backlog', () => {
  it('is written in statements of a thousand rows', async () => {
    const refusals = node();
    for (let hour = 0; hour < 2_500; hour++) {
      refusals.note(wallet, { reason: 'rate_limit' });
      now_ms -= hour_ms;
    }
    await refusals.close();
    expect(statements).toBe(3);
    expect(await exported()).toHaveLength(2_500);
  });

  it('has a bound over all hours, beyond which reasons alone are counted, and then what is lost', async () => {
    is_down = true;
    const refusals = node();
    const accounts = Array.from({ length: 150 }, (_, index) => `none-${index}`);
    const note = () => {
      for (const account_id of accounts)
        for (let i = 0; i < 100; i++) refusals.note({ account_id }, { reason: 'model_not_allowed', model: `m${i}` });
    };
    for (let hour = 0; hour < 2; hour++, now_ms += hour_ms) note();
    expect(lostBy(refusals)).toEqual([]);
    for (let hour = 0; hour < 200; hour++, now_ms += hour_ms)
      for (const account_id of accounts) refusals.note({ account_id }, { reason: 'rate_limit' });
    const noted = 30_000 + 200 * accounts.length;
    await refusals.flush();
    const [line = ''] = lostBy(refusals);
    const lost = Number(line.split(' ').at(-1));
    expect(lost).toBeGreaterThan(5_000);
    expect(lost).toBeLessThan(15_000);
    await refusals.close();
    expect(lostBy(refusals)).toEqual([`medley_refusals_lost_total ${noted}`]);
    expect(refusals.warnings).toHaveLength(2);
  });

  it('is written but for the row that the database does not take', async () => {
    const refusals = node();
    for (let i = 0; i < 50; i++)
      refusals.note(wallet, { reason: 'model_not_allowed', model: i === 7 ? 'a\0b' : `m${i}` });
    await refusals.flush();
    expect(await lines('reason')).toEqual(['model_not_allowed 49']);
    expect(lostBy(refusals)).toEqual(['medley_refusals_lost_total 1']);
    const { length } = refusals.warnings;
    refusals.note(wallet, { reason: 'model_not_allowed', model: 'm1' });
    await refusals.close();
    expect(refusals.warnings).toHaveLength(length);
    expect(await lines('reason')).toEqual(['model_not_allowed 50']);
  });
});

describe('writes of a node', () => {
  it('come one after the other, and the last one is that of its stop', async () => {
    let running = 0;
    let overlaps = 0;
    const refusals = nodeOn({
      query: async (...args) => {
        overlaps += Number(running > 0);
        running += 1;
        try {
          return await database.db.query(...args);
        } finally {
          running -= 1;
        }
      },
    });
    const writes = Array.from({ length: 5 }, () => {
      refusals.note(wallet, { reason: 'rate_limit' });
      return refusals.flush();
    });
    refusals.note(wallet, { reason: 'rate_limit' });
    await Promise.all([...writes, refusals.close()]);
    expect(overlaps).toBe(0);
    expect(await lines('reason')).toEqual(['rate_limit 6']);
  });

  it('end with its stop: what comes later, or cannot be written then, is counted as lost, and no timer runs', async () => {
    const refusals = node();
    refusals.note(wallet, { reason: 'rate_limit' });
    is_down = true;
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    await refusals.close();
    refusals.note(wallet, { reason: 'rate_limit' });
    expect(vi.getTimerCount()).toBe(0);
    vi.useRealTimers();
    expect(lostBy(refusals)).toEqual(['medley_refusals_lost_total 2']);
    is_down = false;
    await refusals.close();
    expect(await lines('reason')).toEqual([]);
  });

  it('neither stop a deletion of an account nor are stopped by it', async () => {
    const gone = await openWallet(database.db);
    const first = node();
    first.note(gone, { reason: 'rate_limit' });
    await first.close();
    await withConnection(database.db, async (client) => {
      // Without a limit of the time that it waits for locks, as a slow server would have it.
      const refusals = nodeOn({ query: async (text, values = []) => (await client.query(text, [...values])).rows });
      const [row] = (await client.query<{ pid: number }>('select pg_backend_pid() as pid')).rows;
      const isWaiting = async () => {
        const rows = await database.db.query('select from pg_locks where pid = $1 and not granted', [row?.pid]);
        return rows.length > 0;
      };
      let written: Promise<void> | undefined;
      let tries = 0;
      await database.db.tx(async (tx) => {
        tries += 1;
        await tx.query('select from balances where account_id = $1 for update', [gone.account_id]);
        await tx.query('select from accounts where id = $1 for update', [gone.account_id]);
        if (!written) {
          for (const reason of ['rate_limit', 'monthly_limit'] as const) refusals.note(gone, { reason });
          refusals.note(wallet, { reason: 'rate_limit' });
          written = refusals.close();
        }
        await expect.poll(isWaiting).toBe(true);
        expect(await deleteAccount(tx, gone.account_id)).toBe('deleted');
      });
      await written;
      expect([tries, refusals.warnings]).toEqual([1, []]);
    });
    expect(await lines('reason')).toEqual(['rate_limit 1']);
  });
});

it('two nodes that write the same rows at once add up', async () => {
  const { key_id } = await rotated(database.db, wallet);
  const nodes = Array.from({ length: 4 }, node);
  for (let round = 0; round < 5; round++) {
    for (const [index, each] of nodes.entries()) {
      const keys = index % 2 === 0 ? [wallet.key_id, key_id] : [key_id, wallet.key_id];
      for (const key of keys) each.note({ ...wallet, key_id: key }, { reason: 'budget_reached', budget_id: 'b' });
    }
    await Promise.all(nodes.map((each) => each.flush()));
  }
  expect((await lines('key')).toSorted()).toEqual([`${key_id} 20`, `${wallet.key_id} 20`].toSorted());
});

it('a refusal belongs to the project that its key is in', async () => {
  const { account_id, key_id } = wallet;
  const project = await createProject(database.db, { account_id, name: 'p' }, noon);
  if (typeof project === 'string') throw new Error(project);
  await moveKey(database.db, { account_id, key_id, project_id: project.id });
  const refusals = node();
  refusals.note(wallet, { reason: 'rate_limit' });
  refusals.note({ account_id }, { reason: 'account_blocked' });
  await refusals.close();
  expect((await lines('project', 'reason')).toSorted()).toEqual([' account_blocked 1', `${project.id} rate_limit 1`]);
});

it('budgets have what they refused since their period began', async () => {
  const refusals = node();
  const note = (budget_id: string) => refusals.note(wallet, { reason: 'budget_reached', budget_id });
  note('day');
  note('total');
  now_ms += 24 * hour_ms;
  note('day');
  note('day');
  note('total');
  await refusals.close();
  const begins_at = new Date('2026-11-16T00:00:00Z');
  const budgets = [
    { id: 'day', begins_at },
    { id: 'total', begins_at: null },
    { id: 'calm', begins_at },
  ];
  expect(await refusedByBudgets(database.db, wallet.account_id, budgets)).toEqual(
    new Map([
      ['day', 2],
      ['total', 2],
    ]),
  );
});

it('old hours are removed, and an export has the rest, page by page', async () => {
  const refusals = node();
  for (let hour = 0; hour < 1_200; hour++) {
    refusals.note(wallet, { reason: 'rate_limit', model: `m${hour % 7}` });
    now_ms += hour_ms;
  }
  await refusals.close();
  const all = await exported();
  expect(all.map(({ start }) => start.getTime())).toEqual(all.map((_, index) => noon.getTime() + index * hour_ms));
  expect(all).toHaveLength(1_200);
  expect(all[1]).toEqual({
    start: new Date(noon.getTime() + hour_ms),
    reason: 'rate_limit',
    key_id: wallet.key_id,
    project_id: 'default',
    budget_id: '',
    model: 'm1',
    count: 1,
  });
  await removeOldRefusals(database.db, new Date(noon.getTime() + 1_199 * hour_ms));
  expect(await exported()).toEqual(all.slice(-1));
});
