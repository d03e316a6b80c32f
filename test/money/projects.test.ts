import { afterAll, beforeAll, expect, it } from 'vitest';
import { archiveProject, createProject, moveKey } from '../../src/accounts/projects.ts';
import { close, commit, hold, makeHoldBatcher } from '../../src/money/holds.ts';
import { addUpUsage, usageOf } from '../../src/money/usage.ts';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';
import { closeOf, holdOf, noon, openKey, openWallet, rotated, type Wallet } from './setup.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(async () => {
  await expectExactBooks(database.db);
  await database.drop();
});

async function openProject({ account_id }: Wallet, name: string): Promise<string> {
  const project = await createProject(database.db, { account_id, name }, noon);
  if (typeof project === 'string') throw new Error(`the project is ${project}`);
  return project.id;
}

async function move({ account_id, key_id }: Wallet, project_id: string): Promise<void> {
  expect(await moveKey(database.db, { account_id, key_id, project_id })).toBe(true);
}

async function byProject({ account_id }: Wallet): Promise<Record<string, bigint>> {
  const range = { from: new Date('2026-11-01T00:00:00Z'), to: new Date('2026-12-01T00:00:00Z') };
  const rows = await usageOf(database.db, { account_id, ...range, group_by: ['project'] });
  return Object.fromEntries(rows.map(({ project, cost }) => [project, cost]));
}

it('a charge belongs to the project that its key was in when the hold was made, in sums and behind them', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n });
  const [first, second] = [await openProject(wallet, 'First'), await openProject(wallet, 'Second')];
  const batcher = makeHoldBatcher(db, () => noon);
  await hold(db, holdOf(wallet, 'a', 100n), noon);
  await move(wallet, first);
  await close(db, closeOf(wallet, 'a', 10n), noon);
  await hold(db, holdOf(wallet, 'b', 100n), noon);
  await hold(db, holdOf(wallet, 'c', 100n), noon);
  await move(wallet, second);
  await Promise.all(['b', 'c'].map((ref) => batcher.close(closeOf(wallet, ref, 20n)))); // in one call of move_money
  await commit(db, { hold: holdOf(wallet, 'd', 100n), end: closeOf(wallet, 'd', 3n) }, noon);
  const ends = ['e', 'f'].map((ref) =>
    batcher.commit({ hold: holdOf(wallet, ref, 100n), end: closeOf(wallet, ref, 1n) }),
  );
  await Promise.all(ends);
  const expected = { default: 10n, [first]: 40n, [second]: 5n };
  expect(await byProject(wallet)).toEqual(expected);
  await addUpUsage(db, { behind: 1 });
  expect(await byProject(wallet)).toEqual(expected);
});

it('the late charge of a released hold belongs to the project of the hold', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n });
  const project = await openProject(wallet, 'First');
  const batcher = makeHoldBatcher(db, () => noon);
  await move(wallet, project);
  for (const ref of ['late', 'later']) {
    await hold(db, holdOf(wallet, ref, 100n), noon);
    await close(db, closeOf(wallet, ref, null), noon);
  }
  await move(wallet, 'default');
  await close(db, closeOf(wallet, 'late', 7n, true), noon);
  await Promise.all([batcher.close(closeOf(wallet, 'later', 8n, true)), batcher.hold(holdOf(wallet, 'x', 1n))]);
  await close(db, closeOf(wallet, 'x', null), noon);
  expect(await byProject(wallet)).toEqual({ [project]: 15n });
});

it('a key that was rotated is in the project of the key before, and both move together', async () => {
  const { db } = database;
  const wallet = await openWallet(db, { credit: 1_000_000n });
  const [first, second] = [await openProject(wallet, 'First'), await openProject(wallet, 'Second')];
  await move(wallet, first);
  const newer = await rotated(db, wallet);
  const spend = async (whose: Wallet, ref: string, cost: bigint) => {
    await hold(db, holdOf(whose, ref, 100n), noon);
    await close(db, closeOf(whose, ref, cost), noon);
  };
  await spend(newer, 'a', 1n);
  await move(newer, second);
  await spend(newer, 'b', 10n);
  await spend(wallet, 'c', 100n);
  expect(await byProject(wallet)).toEqual({ [first]: 1n, [second]: 110n });
});

it('a project with a working key is not archived, and no key is moved to one that is, or to that of others', async () => {
  const { db } = database;
  const [wallet, stranger] = [await openWallet(db), await openWallet(db)];
  const { account_id } = wallet;
  const [own, foreign] = [await openProject(wallet, 'Own'), await openProject(stranger, 'Own')];
  await move(wallet, own);
  expect(await archiveProject(db, { account_id, id: own }, noon)).toBe('in_use');
  await move(wallet, 'default');
  expect(await archiveProject(db, { account_id, id: own }, noon)).toEqual({ name: 'Own' });
  for (const project_id of [own, foreign, 'none'])
    expect(await moveKey(db, { account_id, key_id: wallet.key_id, project_id })).toBe(false);
  expect(await archiveProject(db, { account_id, id: foreign }, noon)).toBe('missing');
});

it('a key that moves while its project is archived ends up in a project that is not', async () => {
  const { db } = database;
  const wallet = await openWallet(db);
  const { account_id } = wallet;
  for (let round = 0; round < 20; round++) {
    const id = await openProject(wallet, `Round ${round}`);
    const key_id = await openKey(db, account_id);
    const [moved, archived] = await Promise.all([
      moveKey(db, { account_id, key_id, project_id: id }),
      archiveProject(db, { account_id, id }, noon),
    ]);
    expect(moved).toBe(archived === 'in_use');
  }
});
