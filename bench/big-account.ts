/** A large account, written straight into the tables by a few statements, as the service itself would have left it. */
import { createAccount } from '../src/accounts/accounts.ts';
import { createKey } from '../src/accounts/keys.ts';
import type { Db } from '../src/db/database.ts';

export type BigAccount = {
  account_id: string;
  /** A key that has nearly all calls. */
  key: string;
  key_id: string;
  /** One that has few. */
  rare_key_id: string;
  /** Rows that were written. */
  rows: { ledger: number; tasks: number; chats: number; deliveries: number };
};

/** Models: five common ones, and one of few calls. */
export const common_model = 'bench/model-1';
export const rare_model = 'bench/rare';

const chunk = 250_000;

/**
 * Facts of call `i`: of ten calls, four are so old that their record was removed, then one in three is a task. Three in
 * a hundred failed, one in five tasks has a webhook, one in twenty chat calls labels. One in 20,000 has the rare model, and the rare key.
 */
const calls = `
  select *, case when is_task then 40000 else 2000 end::bigint as reserved,
         case when is_failed then 0 when is_task then 40000 else 1234 end::bigint as cost,
         case when is_task then 'image' else 'chat' end as kind,
         case when is_task then 'task_' else 'req_' end || pg_temp.bench_time(ms) || lpad(i::text, 16, '0') as id
    from (select *, (extract(epoch from at) * 1000)::bigint - 3000 as ms from (select i, i % 33 = 7 as is_failed, i >= $5::int * 2 / 5 and i % 3 = 0 as is_task,
                 i >= $5::int * 2 / 5 as is_recorded, i % 5 = 0 as has_webhook,
                 case when i % 20011 = 5 then '${rare_model}' else 'bench/model-' || i % 5 end as model,
                 case when i % 20021 = 9 then ($2::text[])[2] else ($2::text[])[1] end as key_id,
                 date_trunc('milliseconds', $6::timestamptz + i * (($7::timestamptz - $6) / $5)) as at
            from generate_series($3::int, $4::int - 1) i) g offset 0) f`;

/** Its hold and what ended it; $8: what is available before the first of them. */
const entries = `
  insert into ledger_entries (account_id, number, type, ref, event, currency, available, held, revenue, available_after,
      held_after, key_id, model, kind, units, month, created_at, provider, route, upstream_cost, upstream_owed,
      upstream_basis, upstream_base, base_currency)
    select $1, 2 * i + 2 + n, case when n = 0 then 'hold' when is_failed then 'release' else 'settle' end, id,
           case n when 0 then 'hold' else 'close' end, 'USD', case n when 0 then -reserved else reserved - cost end,
           case n when 0 then reserved else -reserved end, case n when 0 then 0 else cost end,
           case n when 0 then before - reserved else before - cost end, case n when 0 then reserved else 0 end,
           key_id, model, kind,
           case when n = 1 and not is_failed then case when is_task then '{"image": "1"}'
             else '{"input_token": "812", "output_token": "245"}' end::jsonb end,
           date_trunc('month', at at time zone 'UTC'), at, case n when 1 then 'sandbox' end,
           case n when 1 then 'sandbox/' || kind end, n * cost / 2, - n * (cost / 2), case n when 1 then 'rows' end,
           case n when 1 then cost / 2 end, case n when 1 then 'USD' end
      from (select *, $8::bigint - sum(cost) over (order by i) + cost as before from (${calls}) c) s
      cross join (values (0), (1)) e (n)
     order by i, n`;

const tasks = `
  insert into tasks (account_id, id, key_id, model, kind, input, metadata, webhook_url, currency, pricing, held_units,
      estimate, status, cost, error_type, error_message, body, created_at, started_at, completed_at, deadline_at)
    select $1, id, key_id, model, kind, '{"prompt":"A lighthouse on a cliff, number ' || i || ', in the style of an old engraving","width":1024,"height":1024}',
           metadata, case when has_webhook then 'https://example.com/hook' end, 'USD',
           '{"currency":"USD","rate":"1","rows":[{"unit":"image","amount":"0.04","per":1}]}', '{"image": "1"}', reserved,
           case when is_failed then 'failed' else 'succeeded' end, cost, case when is_failed then 'upstream_error' end,
           case when is_failed then 'The provider failed.' end,
           '{"id":"' || id || '","status":"' || case when is_failed then 'failed' else 'succeeded' end || '","model":"' || model
             || '","output":[],"cost":{"amount":"0.04","currency":"USD","exact":"0.040000"},"estimated_cost":{"amount":"0.04","currency":"USD"},"error":null,"created_at":"2026-11-01T00:00:00.000Z","started_at":"2026-11-01T00:00:01.000Z","completed_at":"2026-11-01T00:00:03.000Z","metadata":' || metadata || '}',
           at - interval '3 s', at - interval '2 s', at, at + interval '1 hour'
      from (select *, '{"project":"p' || i % 1000 || '","order":"' || i || '"}' as metadata from (${calls}) c where is_task) t`;

const attempts = `
  insert into attempts (account_id, task_id, number, route, provider, route_settings, claim, state, reason, run_ref,
      upstream_cost, upstream_amount, created_at, ended_at)
    select $1, id, 1, 'sandbox/image', 'sandbox', '{"provider":"sandbox","upstream_model":"image","cost":[{"unit":"image","amount":"0.02"}]}',
           'claim' || i, case when is_failed then 'failed' else 'done' end, case when is_failed then 'upstream error' end,
           '{"run":"' || i || '"}', '{"amount":"0.02","currency":"USD"}', cost / 2, at - interval '2 s', at
      from (${calls}) c where is_task`;

const deliveries = `
  insert into deliveries (account_id, id, task_id, event, url, body, lane, host, state, attempts, failures, created_at,
      delivered_at, ended_at)
    select $1, 'dlv_' || substr(t.id, 6), t.id, 'task.' || t.status, t.webhook_url, t.body, 'bench', 'example.com',
           case when is_dropped then 'dropped' else 'delivered' end, 1, is_dropped::int, t.completed_at,
           case when not is_dropped then t.completed_at + interval '80 ms' end, t.completed_at + interval '80 ms'
      from (select id, i % 2000 = 0 as is_dropped from (${calls}) c where is_task and has_webhook) c
      join tasks t on t.account_id = $1 and t.id = c.id`;

const delivery_attempts = `
  insert into delivery_attempts (account_id, delivery_id, number, started_at, ended_at, duration_ms, status, answer)
    select $1, 'dlv_' || substr(id, 6), 1, at, at + interval '80 ms', 80, case when i % 2000 = 0 then 500 else 200 end, 'ok'
      from (${calls}) c where is_task and has_webhook`;

const chats = `
  insert into chat_calls (account_id, id, key_id, model, style, stream, status, error_type, finish, attempts,
      input_tokens, cached_input_tokens, cache_write_tokens, output_tokens, reasoning_tokens, counted_here, cost,
      currency, first_content_ms, total_ms, created_at, upstream_cost, cache_write_1h_tokens, end_user, metadata, error_message)
    select $1, id, key_id, model, 'completions', i % 2 = 0, case when is_failed then 502 else 200 end,
           case when is_failed then 'upstream_error' end, case when not is_failed then 'stop' end,
           jsonb_build_array(jsonb_build_object('route', 'sandbox/chat', 'outcome',
             case when is_failed then 'failed' else 'ok' end, 'duration_ms', 900)
             || case when is_failed then '{"reason": "status 500"}' else '{}' end::jsonb),
           812, 0, 0, 245, 0, false, cost, 'USD', 300 + i % 400, 900 + i % 2000, at - interval '3 s', cost / 2, 0,
           case when i % 20 = 1 then 'user-' || i end,
           case when i % 20 = 1 then jsonb_build_object('team', 't' || i % 7, 'tags', 'nightly,run-' || i / 1000) end,
           case when is_failed then 'The model is overloaded, request ' || i || '.' end
      from (${calls}) c where is_recorded and not is_task`;

/** Ten characters of an id: the milliseconds of its time. */
const time_function = `
  create or replace function pg_temp.bench_time(ms bigint) returns text immutable language sql as $$
    select ${Array.from({ length: 10 }, (_, index) => `substr('0123456789abcdefghjkmnpqrstvwxyz', ((ms >> ${45 - 5 * index}) & 31)::int + 1, 1)`).join(' || ')}
  $$`;

/** Makes an account with so many ledger entries, spread evenly over the days before `end`, all of them in order. */
export async function makeBigAccount(
  db: Db,
  { ledger_entries, days, end }: { ledger_entries: number; days: number; end: Date },
): Promise<BigAccount> {
  const begin = new Date(end.getTime() - days * 86_400_000);
  const account = await createAccount(db, { name: 'big', currency: 'USD', initial_credit: 10n ** 14n }, begin);
  const [key, rare] = [
    await createKey(db, { account_id: account.id, name: 'usual', limit_month: null }, begin),
    await createKey(db, { account_id: account.id, name: 'rare', limit_month: null }, begin),
  ];
  const count = Math.floor((ledger_entries - 1) / 2);
  let available = 10n ** 14n;
  for (let first = 0; first < count; first += chunk) {
    const last = Math.min(first + chunk, count);
    const values = [account.id, [key.key.id, rare.key.id], first, last, count, begin, end];
    const write = (...statements: string[]) => writeIn(db, statements, values);
    const [, rows] = await Promise.all([
      write(tasks, attempts, deliveries, delivery_attempts),
      write(chats).then(() => writeIn(db, [entries], [...values, available], account.id)),
    ]);
    available = rows[0]?.available_after ?? available;
  }
  await settleSums(db, account.id, available);
  return {
    account_id: account.id,
    key: key.text,
    key_id: key.key.id,
    rare_key_id: rare.key.id,
    rows: await countRows(db, account.id),
  };
}

/** One transaction, whose connection has the function of the ids; answers the last entry of `account_id`. */
async function writeIn(
  db: Db,
  statements: readonly string[],
  values: readonly unknown[],
  account_id = '',
): Promise<{ available_after: bigint }[]> {
  return db.tx(async (tx) => {
    await tx.query('set local synchronous_commit = off');
    await tx.query(time_function);
    for (const statement of statements) await tx.query(statement, values);
    return tx.query<{ available_after: bigint }>(
      'select available_after from ledger_entries where account_id = $1 order by number desc limit 1',
      [account_id],
    );
  });
}

/** Makes the balance and the budgets those of the entries. */
async function settleSums(db: Db, account_id: string, available: bigint): Promise<void> {
  await db.query(
    `update balances set amount = $2, entries = (
        select number from ledger_entries where account_id = $1 order by number desc limit 1) where account_id = $1`,
    [account_id, available],
  );
  await db.query(
    `update budgets b set month = m.month, spent = m.spent from (
        select distinct on (key_id) key_id, month, sum(revenue + loss)::bigint as spent from ledger_entries
         where account_id = $1 and type = 'settle' group by key_id, month order by key_id, month desc) m
      where b.key_id = m.key_id`,
    [account_id],
  );
}

async function countRows(db: Db, account_id: string): Promise<BigAccount['rows']> {
  const [row] = await db.query<BigAccount['rows']>(
    `select (select entries from balances where account_id = $1)::float8 as ledger,
            (select count(*) from tasks where account_id = $1)::float8 as tasks,
            (select count(*) from chat_calls where account_id = $1)::float8 as chats,
            (select count(*) from deliveries where account_id = $1)::float8 as deliveries`,
    [account_id],
  );
  return row ?? { ledger: 0, tasks: 0, chats: 0, deliveries: 0 };
}
