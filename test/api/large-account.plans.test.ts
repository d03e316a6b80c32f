import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeBigAccount, rare_model, type BigAccount } from '../../bench/big-account.ts';
import { callMarks, recentCalls } from '../../src/chat/changes.ts';
import { listAllRecords, listRecords, searchRecords } from '../../src/chat/record.ts';
import type { Db, Queryable, Tx } from '../../src/db/database.ts';
import { listEntries } from '../../src/money/ledger.ts';
import { marginsOf } from '../../src/money/margins.ts';
import { accountsMoved, statementOf } from '../../src/money/statement.ts';
import { addUpUsage, usageOf } from '../../src/money/usage.ts';
import { recentTasks, taskMarks } from '../../src/tasks/changes.ts';
import { lastRoutes, listAllTaskLines, listTaskLines, listTasks, searchTaskLines } from '../../src/tasks/list.ts';
import { listVideos } from '../../src/tasks/videos.ts';
import { countUndelivered, listDeliveries } from '../../src/webhooks/delivery.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;
let big: BigAccount;

const end = new Date('2026-11-20T12:00:00Z');
const month = { from: new Date('2026-10-01T00:00:00Z'), to: new Date('2026-11-01T00:00:00Z') };

beforeAll(async () => {
  database = await testDatabase({ state: 'engine' });
  big = await makeBigAccount(database.db, { ledger_entries: 60_001, days: 60, end });
  await addUpUsage(database.db, { behind: 1 });
  await database.db.query('vacuum analyze');
});
afterAll(() => database.drop());

type Plan = { 'Shared Hit Blocks': number; 'Shared Read Blocks': number };

/** Counts the pages of 8 kB that all statements of `work` read, by asking PostgreSQL to explain each. */
async function pagesReadBy(work: (db: Queryable) => Promise<unknown>): Promise<number> {
  let pages = 0;
  const query: Queryable['query'] = async (text, values = []) => {
    pages += pagesOf(await planOf(database.db, text, values));
    return database.db.query(text, values);
  };
  await work({ query });
  return pages;
}

function pagesOf(plan: Plan): number {
  return plan['Shared Hit Blocks'] + plan['Shared Read Blocks'];
}

async function planOf(db: Queryable, text: string, values: readonly unknown[]): Promise<Plan> {
  const [row] = await db.query<{ 'QUERY PLAN': { Plan: Plan }[] }>(
    `explain (analyze, buffers, format json) ${text}`,
    values,
  );
  const plan = row?.['QUERY PLAN'][0]?.Plan;
  if (!plan) throw new Error(`no plan of ${text}`);
  return plan;
}

/** The plans of the statements of a search, in its transaction. */
async function plansOfSearch(work: (db: Pick<Db, 'tx'>) => Promise<unknown>): Promise<Plan[]> {
  const plans: Plan[] = [];
  const explaining = (tx: Tx): Tx => ({
    transaction: true,
    query: async (text, values = []) => {
      if (!text.startsWith('set local')) plans.push(await planOf(tx, text, values));
      return tx.query(text, values);
    },
  });
  await work({ tx: (inner) => database.db.tx((tx) => inner(explaining(tx))) });
  return plans;
}

const own = () => ({ account_id: big.account_id, limit: 20 });
const tasks = (filter: object) => (db: Queryable) => listTasks(db, { ...own(), metadata: {}, ...filter });
const long_ago = new Date(end.getTime() - 40 * 86_400_000);
const day = () => ({ from: new Date(end.getTime() - 86_400_000), to: end });
const of_day = () => ({ created_after: day().from, created_before: day().to });
const days = () => ({ from: new Date(end.getTime() - 31 * 86_400_000), to: end, limit: 20 });
const place = { created_at: new Date(end.getTime() - 43_200_000), id: 'req_' };

async function routesOfPage(db: Queryable) {
  const { lines } = await listTaskLines(database.db, own());
  return lastRoutes(
    db,
    big.account_id,
    lines.map(({ id }) => id),
  );
}

test.each<[name: string, work: (db: Queryable) => Promise<unknown>, pages_max: number]>([
  ['tasks', tasks({}), 60],
  ['tasks that are queued', tasks({ status: 'queued' }), 60],
  ['tasks that run', tasks({ status: 'running' }), 60],
  ['tasks that succeeded', tasks({ status: 'succeeded' }), 60],
  ['tasks that failed', tasks({ status: 'failed' }), 100],
  ['tasks of a model that is rarely used', tasks({ model: rare_model }), 100],
  ['tasks of a model that is never used', tasks({ model: 'none' }), 60],
  ['tasks of a rare pair of metadata', tasks({ metadata: { order: '12021' } }), 700],
  ['tasks of a common pair', tasks({ metadata: { project: 'p18' } }), 700],
  ['tasks of long ago', tasks({ created_before: long_ago }), 150],
  ['tasks since long ago, upwards', tasks({ created_after: long_ago, before: 'task_0' }), 150],
  ['tasks of a key that is rarely used', (db) => listTaskLines(db, { ...own(), key_id: big.rare_key_id }), 100],
  ['videos', (db) => listVideos(db, { ...own(), order: 'desc', after: undefined }), 60],
  ['top-ups', (db) => listEntries(db, { ...own(), type: 'topup' }), 60],
  ['corrections', (db) => listEntries(db, { ...own(), type: 'adjustment' }), 60],
  ['releases', (db) => listEntries(db, { ...own(), type: 'release' }), 100],
  ['movements of long ago', (db) => listEntries(db, { ...own(), to: long_ago }), 300],
  ['chat calls that failed', (db) => listRecords(db, { ...own(), ok: false }), 100],
  ['chat calls of long ago', (db) => listRecords(db, { ...own(), created_before: long_ago }), 150],
  ['tasks of an end user, as lines', (db) => listTaskLines(db, { ...own(), metadata: { order: '12021' } }), 700],
  ['tasks of a kind of error', (db) => listTaskLines(db, { ...own(), error_type: 'timeout' }), 100],
  ['chat calls of a kind of error', (db) => listRecords(db, { ...own(), error_type: 'timeout' }), 700],
  ['chat calls of an end user', (db) => listRecords(db, { ...own(), end_user: 'user-12041' }), 250],
  ['chat calls of an end user that is not there', (db) => listRecords(db, { ...own(), end_user: 'user-1' }), 250],
  ['chat calls of a tag', (db) => listRecords(db, { ...own(), tag: 'run-12' }), 250],
  ['chat calls of a pair', (db) => listRecords(db, { ...own(), metadata: { team: 't1' } }), 700],
  ['chat calls of a status', (db) => listRecords(db, { ...own(), http_status: 429 }), 250],
  ['tasks of a tag that is not there', (db) => listTaskLines(db, { ...own(), tag: 'run-12' }), 700],
  ['tasks of a day, as lines', (db) => listTaskLines(db, { ...own(), ...of_day() }), 12],
  ['chat calls of a day', (db) => listRecords(db, { ...own(), ...of_day() }), 12],
  ['tasks of all accounts', (db) => listAllTaskLines(db, { ...day(), limit: 20 }), 150],
  ['tasks of all accounts, further down', (db) => listAllTaskLines(db, { ...day(), limit: 20, after: place }), 150],
  ['chat calls of all accounts', (db) => listAllRecords(db, { ...day(), limit: 20 }), 60],
  ['chat calls of all accounts, further down', (db) => listAllRecords(db, { ...day(), limit: 20, after: place }), 60],
  [
    'chat calls of all accounts that failed',
    (db) => listAllRecords(db, { ...day(), status: 'failed', limit: 20 }),
    150,
  ],
  ['chat calls of all accounts of a status', (db) => listAllRecords(db, { ...days(), http_status: 429 }), 60],
  ['chat calls of all accounts of an error', (db) => listAllRecords(db, { ...days(), error_type: 'timeout' }), 60],
  ['routes of a page of tasks', routesOfPage, 150],
  ['deliveries that were dropped', (db) => listDeliveries(db, { ...own(), standing: 'dropped' }), 100],
  ['deliveries that are tried again', (db) => listDeliveries(db, { ...own(), standing: 'retrying' }), 60],
  ['the number of deliveries that failed', (db) => countUndelivered(db, big.account_id, long_ago), 60],
  ['a month by day', (db) => usageOf(db, { account_id: big.account_id, ...month, group_by: ['day'] }), 400],
  ['margins of a month', (db) => marginsOf(db, '2026-10-01', 'model'), 200],
  ['the statement of a month', (db) => statementOf(db, { account_id: big.account_id, ...month }), 600],
  ['the accounts with movements in a month', (db) => accountsMoved(db, month), 60],
  ['marks of the newest tasks', (db) => taskMarks(db, [big.account_id]), 60],
  ['marks of the newest calls', (db) => callMarks(db, [big.account_id]), 60],
  ['the newest tasks with their keys', (db) => recentTasks(db, [big.account_id]), 400],
  ['the newest calls with their keys', (db) => recentCalls(db, [big.account_id]), 400],
])('%s of an account with 60,000 entries are read from few pages', async (_, work, pages_max) => {
  expect(await pagesReadBy(work)).toBeLessThan(pages_max);
});

test('tasks are found by pairs of their metadata however long ago they were, and by all pairs at once', async () => {
  const findIds = async (metadata: Record<string, string>) =>
    (await listTasks(database.db, { ...own(), metadata })).bodies.map((body): unknown => JSON.parse(body));
  expect(await findIds({ order: '12021' })).toMatchObject([{ metadata: { order: '12021', project: 'p21' } }]);
  expect(await findIds({ order: '12021', project: 'p21' })).toHaveLength(1);
  expect(await findIds({ order: '12021', project: 'p22' })).toEqual([]);
  expect(await findIds({ order: '1202' })).toEqual([]);
  const of_project = await database.db.query(`select 1 from tasks where metadata like '{"project":"p21",%'`);
  expect(await findIds({ project: 'p21' })).toHaveLength(Math.min(20, of_project.length));
});

test.each<[words: string, filter: object, statements: number, pages_max: number, lines: number]>([
  ['lighthouse engraving', {}, 1, 250, 20], // every task has them
  ['lighthouse engraving', { before: 'task_0' }, 1, 250, 20],
  ['12021', {}, 2, 400, 1],
  ['number p21 12021', { created_before: end }, 2, 700, 1],
  ['12021', { key_id: 'none' }, 2, 400, 0],
  ['elephant', {}, 2, 400, 0],
])('tasks with the words "%s" and %o are found by indexes, in %d statements', async (words, filter, ...expected) => {
  const [statements, pages_max, lines] = expected;
  const seen: number[] = [];
  const plans = await plansOfSearch(async (db) => {
    seen.push((await searchTaskLines(db, { ...own(), ...filter }, words)).lines.length);
  });
  expect(seen).toEqual([lines]);
  expect(plans).toHaveLength(statements);
  const text = JSON.stringify(plans);
  expect(text).not.toContain('Seq Scan');
  expect(text.includes('tasks_of_words')).toBe(statements > 1);
  expect(plans.map(pagesOf).reduce((sum, pages) => sum + pages, 0)).toBeLessThan(pages_max);
});

test.each<[words: string, filter: object, statements: number, lines: number]>([
  ['nightly', {}, 2, 20],
  ['user 12041', {}, 2, 1],
  ['user 12041', { key_id: 'none' }, 2, 0],
  ['elephant', {}, 2, 0],
  ['overloaded', {}, 2, 20], // messages of errors
  ['overloaded 12019', {}, 2, 1],
])(
  'chat calls with the words "%s" and %o are found by their index, in %d statements',
  async (words, filter, ...expected) => {
    const seen: number[] = [];
    const plans = await plansOfSearch(async (db) => {
      seen.push((await searchRecords(db, { ...own(), ...filter }, words)).lines.length);
    });
    expect([plans.length, ...seen]).toEqual(expected);
    const text = JSON.stringify(plans);
    expect(text).not.toContain('Seq Scan');
    for (const index of ['chat_calls_of_words', 'chat_calls_failed_of_words']) expect(text).toContain(`"${index}"`);
    expect(plans.map(pagesOf).reduce((sum, pages) => sum + pages, 0)).toBeLessThan(700);
  },
);

test('the statement of a month is the same from its sums and from every entry', async () => {
  const { db } = database;
  const period = { account_id: big.account_id, ...month };
  const summed = await statementOf(db, period);
  expect(summed.lines).toHaveLength(11);
  const halves = await db.query<{ cost: string }>(
    `select sum(revenue + loss)::text as cost from ledger_entries
      where account_id = $1 and type = 'settle' and created_at >= $2 and created_at < $3`,
    [big.account_id, month.from, month.to],
  );
  expect(String(summed.charged)).toBe(halves[0]?.cost);
  // Without sums all of it comes from the entries.
  await db.query('delete from usage_sums');
  await db.query('update usage_marks set number = 0');
  expect(await statementOf(db, period)).toEqual(summed);
});
