/**
 * The usage page over an account with a million ledger entries: what its queries take, with the sums of charges
 * and without them. `npm run bench usage [-- --quick]`
 */
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import { openDatabase, type Db } from '../src/db/database.ts';
import { migrate } from '../src/db/migrate.ts';
import { checkBooks } from '../src/money/books.ts';
import { listEntries } from '../src/money/ledger.ts';
import type { UsageGroup } from '../src/money/groups.ts';
import { addUpUsage, chargesOf, usageOf } from '../src/money/usage.ts';
import { openHome } from './home.ts';
import { table, writeResults } from './report.ts';

const quick = process.argv.includes('--quick');
/** Each is a hold and a charge: two entries. */
const charges = quick ? 50_000 : 500_000;
const days = 90;
const keys = 5;
const models = 12;
const rounds = 9;
const day_ms = 86_400_000;

async function main(): Promise<void> {
  const home = await openHome();
  const db = openDatabase({ connection: home.embedded.connection, connections_max: 4 });
  try {
    await migrate(db);
    const end = new Date(Math.ceil(Date.now() / day_ms) * day_ms);
    const account_id = await fill(db, end);
    const without = await measure(db, account_id, end, 3);
    const started_ms = performance.now();
    await addUpUsage(db);
    const added_ms = performance.now() - started_ms;
    await db.query('vacuum analyze usage_sums');
    const within = await measure(db, account_id, end, rounds);
    const rows = without.map(([name = '', text = ''], i) => [name, text, within[i]?.[1] ?? '']);
    const [sums] = await db.query<{ count: bigint }>('select count(*) from usage_sums');
    rows.push([`adding up ${2 * charges} entries into ${sums?.count} sums`, '', `${added_ms.toFixed(0)} ms`]);
    rows.push(['difference of the books', '', (await checkBooks(db, { full: true })).difference]);
    const all = [['query (median / slowest)', 'from the ledger alone', 'with its sums'], ...rows];
    console.log(table(all));
    if (!quick) writeResults('usage', 'npm run bench usage', all);
  } finally {
    await db.close();
    await home.close();
  }
}

/** An account whose entries are spread evenly over the days before `end`, exact as money's own functions leave them. */
async function fill(db: Db, end: Date): Promise<string> {
  const begin = new Date(end.getTime() - days * day_ms);
  const cost = 1_234n;
  const account = await createAccount(db, { name: 'bench', currency: 'USD', initial_credit: 10n ** 12n }, begin);
  const ids = [];
  for (let i = 0; i < keys; i++) {
    ids.push((await createKey(db, { account_id: account.id, name: `bench ${i}`, limit_month: null }, begin)).key.id);
  }
  await db.query(
    `insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, loss,
        available_after, held_after, key_id, model, kind, units, month, created_at)
     select $1, 2 * i + 2 + closing::int, case when closing then 'settle' else 'hold' end, 'bench' || i,
            case when closing then 'close' else 'hold' end, 'USD',
            case when closing then 2000 - $2::bigint else -2000 end, case when closing then -2000 else 2000 end,
            case when closing then $2 else 0 end, 0,
            1000000000000 - i * $2 - case when closing then $2 else 2000 end, case when closing then 0 else 2000 end,
            ($3::text[])[1 + i % $4], 'bench/model-' || i % $5, (array['chat', 'image', 'video'])[1 + i % $5 % 3],
            case when closing then case i % $5 % 3 when 0 then '{"input_token": "812", "output_token": "245"}'
              when 1 then '{"image": "1"}' else '{"second": "4.125"}' end::jsonb end,
            date_trunc('month', at at time zone 'UTC'), at
       from generate_series(0, $6::int - 1) i cross join (values (false), (true)) c (closing)
       cross join lateral (
         select date_trunc('milliseconds', $7::timestamptz + i * ($8::timestamptz - $7) / $6) as at) t`,
    [account.id, cost, ids, keys, models, charges, begin, end],
  );
  await db.query('update balances set entries = $2, amount = amount - $3 where account_id = $1', [
    account.id,
    2 * charges + 1,
    BigInt(charges) * cost,
  ]);
  await db.query(
    `update budgets b set month = m.month, spent = m.spent from (
        select distinct on (key_id) key_id, month, sum(revenue + loss)::bigint as spent from ledger_entries
         where type = 'settle' group by key_id, month order by key_id, month desc) m where b.key_id = m.key_id`,
  );
  await db.query('vacuum analyze ledger_entries');
  return account.id;
}

/** Measures the queries of the page, and the ledger's page of a day long ago. */
async function measure(db: Db, account_id: string, end: Date, times_each: number): Promise<string[][]> {
  const from = (back: number) => new Date(end.getTime() - back * day_ms);
  const usage = (first: number, last: number, group_by: UsageGroup[], only = {}) =>
    usageOf(db, { account_id, from: from(first), to: from(last), group_by, only });
  const page = (days_shown: number, groups: UsageGroup[], only = {}) =>
    Promise.all([usage(days_shown, 0, groups, only), usage(2 * days_shown, days_shown, groups.slice(1), only)]);
  const firstCharge = async () => (await chargesOf(db, { account_id, from: from(40), to: end }).next()).value;
  const queries: [name: string, () => Promise<unknown>][] = [
    ['the page: 90 days by day and model', () => page(90, ['day', 'model'])],
    ['90 days by day and key', () => page(90, ['day', 'key'])],
    ['30 days by day and model, and the 30 before', () => page(30, ['day', 'model'])],
    ['30 days of one model by day and key', () => page(30, ['day', 'key'], { model: 'bench/model-3' })],
    ['2 days by hour and model', () => page(2, ['hour', 'model'])],
    ['Home: 30 days by day', () => usage(30, 0, ['day'])],
    [
      'one page of the ledger, a day 40 days ago',
      () => listEntries(db, { account_id, limit: 50, from: from(40), to: from(39) }),
    ],
    ['the first raw rows of a range', firstCharge],
  ];
  const rows = [];
  for (const [name, ask] of queries) {
    const times: number[] = [];
    for (let round = 0; round < times_each; round++) {
      const started_ms = performance.now();
      await ask();
      times.push(performance.now() - started_ms);
    }
    times.sort((a, b) => a - b);
    const [median = 0, slowest = 0] = [times[times_each >> 1], times.at(-1)];
    rows.push([name, `${median.toFixed(0)} / ${slowest.toFixed(0)} ms`]);
  }
  return rows;
}

await main();
