import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { failingAccounts, failingService } from '../../src/alerts/error-rate.ts';
import { countCalls } from '../../src/chat/overview.ts';
import type { Queryable } from '../../src/db/database.ts';
import { newId } from '../../src/lib/ids.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

let database: TestDatabase;
const now = new Date('2026-11-28T12:00:00Z');

beforeAll(async () => {
  database = await testDatabase();
});

afterAll(() => database.drop());

beforeEach(() => database.db.query('delete from chat_calls'));

type Calls = { count: number; status: number; account?: string; model?: string; minutes_ago?: number };

async function add({ count, status, account = 'acct_1', model = 'test/one', minutes_ago = 1 }: Calls): Promise<void> {
  await database.db.query(
    `insert into chat_calls (account_id, id, key_id, model, style, stream, status, attempts, input_tokens,
       cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost, currency, total_ms, created_at)
     select $1, $2 || i, 'key_1', $3, 'openai', false, $4, '[]', 1, 0, 0, 1, 0, false, 0, 'USD', 1, $5
       from generate_series(1, $6::int) i`,
    [account, newId('chat'), model, status, new Date(now.getTime() - minutes_ago * 60_000), count],
  );
}

const service = () => failingService(database.db, { percent: 20, models_left_out: ['sandbox/chat'] }, now);

it.each([
  [16, 4, { ended: 20, failed: 4 }],
  [17, 4, undefined], // 19 %
  [15, 4, undefined], // too few to say
  [0, 20, { ended: 20, failed: 20 }],
  [400, 100, { ended: 500, failed: 100 }],
  [401, 100, undefined],
])('of %i calls that succeed and %i that fail, the share is %j', async (succeeded, failed, expected) => {
  await add({ count: succeeded, status: 200 });
  await add({ count: failed, status: 502 });
  await add({ count: 50, status: 502, minutes_ago: 16 });
  await add({ count: 50, status: 502, model: 'sandbox/chat' });
  expect(await service()).toEqual(expected);
});

it('mistakes of callers are no failures, and each account has its own share', async () => {
  await add({ count: 30, status: 429 });
  await add({ count: 10, status: 500 });
  await add({ count: 30, status: 200, account: 'acct_2' });
  await add({ count: 10, status: 500, account: 'acct_2' });
  await add({ count: 40, status: 500, account: 'acct_3' }); // asks for no alert
  const percents = new Map([
    ['acct_1', 25],
    ['acct_2', 26],
    ['acct_4', 1],
  ]);
  expect(await failingAccounts(database.db, percents, now)).toEqual(new Map([['acct_1', { ended: 40, failed: 10 }]]));
});

it('calls are found by their time, also where PostgreSQL thinks that most of them are new', async () => {
  await add({ count: 2_000, status: 200, minutes_ago: 60 });
  await add({ count: 4_000, status: 200 });
  await add({ count: 4, status: 500 });
  await database.db.query('analyze chat_calls');
  const plans: string[] = [];
  const explaining: Queryable = {
    query: async <T>(text: string, values?: readonly unknown[]) => {
      const rows = await database.db.query<{ 'QUERY PLAN': string }>(`explain ${text}`, values);
      plans.push(...rows.map((row) => row['QUERY PLAN']));
      return database.db.query<T>(text, values);
    },
  };
  const scope = { since: new Date(now.getTime() - 900_000), models_left_out: ['sandbox/chat'] };
  expect(await countCalls(explaining, scope, 21)).toBe(21);
  expect(plans.join('\n')).toContain('Index Scan Backward using chat_calls_by_time');
});
