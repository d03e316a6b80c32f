// nightly: every order of the steps of two and three sessions takes a minute
import type { PoolClient } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/books.ts';
import { testDatabase, type TestDatabase } from '../helpers/database.ts';

/**
 * Like PostgreSQL's isolation tester: two or three sessions of three steps each (begin and read, the
 * call, the end) in every order. A step that waits for another session's lock is left waiting and the
 * next ones go on. The outcome must be that of the sessions one after the other, in one of the orders.
 */
const verbs: Record<string, string> = {
  hold: `select outcome from ${holding('2026-11-15', '$1', '$2', 'x', 40)}`,
  settle: `select outcome, charged from ${closing('2026-11-15', '$1', 'open', `'cost', 50, 'beyond_hold', true`)} where $2 <> ''`,
  release: `select outcome, state from ${closing('2026-11-15', '$1', 'open', `'cost', null`)} where $2 <> ''`,
  top_up: `select outcome from money_credit('2026-11-15', $1, 'topup', 25, 'paid', 'r') where $2 <> ''`,
  limit: `select money_limit($2, 90) where $1 <> ''`,
  next_month: `select outcome from ${holding('2026-12-01', '$1', '$2', 'y', 45)}`,
  commit: `select outcome, charged from commit_hold('2026-11-15', jsonb_build_object('account_id', $1::text, 'key_id', $2::text,
           'ref', 'z', 'reserved', 70, 'model', 'm', 'kind', 'chat', 'cost', 75, 'beyond_hold', true))`,
  batch: `select outcome from move_money('2026-11-15', null, jsonb_build_array(
            jsonb_build_object('verb', 'hold', 'account_id', $1::text, 'key_id', $2::text, 'ref', 'z', 'amount', 30,
              'model', 'm', 'kind', 'chat'),
            jsonb_build_object('verb', 'close', 'account_id', $1::text, 'ref', 'open', 'cost', 10)), null)`,
};

/** The call of SQL that reserves; account and key are SQL, too. */
function holding(now: string, account: string, key: string, ref: string, amount: number): string {
  return `hold_money('${now}', null, jsonb_build_object('account_id', ${account}::text, 'key_id', ${key}::text, 'ref', '${ref}',
    'amount', ${amount}, 'model', 'm', 'kind', 'chat'), null)`;
}

/** The call of SQL that ends a hold. */
function closing(now: string, account: string, ref: string, end: string): string {
  return `close_hold('${now}', jsonb_build_object('account_id', ${account}::text, 'ref', '${ref}', ${end}))`;
}

/** Each has 80 available, 30 held by `open`, and a key with a limit of 80, of which 20 are spent. */
const make_wallets = `
  insert into accounts select 'a' || i, 'n', 'USD', 'active', 'whsec_', '2026-11-01' from generate_series(1, 2000) i;
  insert into api_keys select 'k' || i, 'a' || i, 'n', sha256(i::text::bytea), '', '', '2026-11-01' from generate_series(1, 2000) i;
  insert into balances select id, 'USD' from accounts;
  insert into budgets select id, account_id, 80, '2026-11-01' from api_keys;
  select count(money_credit('2026-11-01', id, 'topup', 130, 'first', 'r')) from accounts;
  select count(${holding('2026-11-01', 'account_id', 'id', 'spent', 20)}) from api_keys;
  select count(${closing('2026-11-01', 'id', 'spent', `'cost', 20`)}) from accounts;
  select count(${holding('2026-11-01', 'account_id', 'id', 'open', 30)}) from api_keys`;

const outcome_of = `
  select b.amount, b.held, k.limit_month, k.spent, k.held, k.month::text,
         (select array_agg(type || ref || available || ' ' || held || ' ' || available_after order by number)::text
            from ledger_entries where account_id = b.account_id)
    from balances b join budgets k using (account_id) where account_id = $1`;

/** One session: what it calls, and how it ends. */
type Session = { verb: string; end: 'commit' | 'rollback' };

let database: TestDatabase;
let wallets = 0;
let waited = 0;
const clients: { client: PoolClient; pid: number }[] = [];

beforeAll(async () => {
  database = await testDatabase();
  await database.db.pool.query(make_wallets);
  for (let i = 0; i < 3; i++) {
    const client = await database.db.pool.connect();
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid');
    clients.push({ client, pid: rows[0]?.pid ?? 0 });
  }
});
afterAll(async () => {
  for (const { client } of clients) client.release();
  await database.drop();
});

/** All orders of `left[i]` steps of each session i, as lists of session numbers. */
function ordersOf(left: number[]): number[][] {
  if (left.every((steps) => steps === 0)) return [[]];
  return left.flatMap((steps, i) =>
    steps === 0 ? [] : ordersOf(left.map((each, j) => (j === i ? each - 1 : each))).map((rest) => [i, ...rest]),
  );
}

/** Runs the sessions' steps in `order` on a wallet of their own; answers and rows as one text. */
async function run(sessions: Session[], order: number[]): Promise<string> {
  wallets += 1;
  const [account_id, key_id] = [`a${wallets}`, `k${wallets}`];
  const answers: string[] = [];
  const steps = sessions.map(({ verb, end }, i) => [
    (client: PoolClient) => client.query(`begin; select * from balances where account_id = '${account_id}'`),
    async (client: PoolClient) => {
      const { rows } = await client.query(verbs[verb] ?? '', [account_id, key_id]);
      answers[i] = end === 'commit' ? plain(rows) : end;
    },
    (client: PoolClient) => client.query(end),
  ]);
  const waiting = new Map<number, Promise<unknown>>();
  const todo = [...order];
  while (todo.length > 0) {
    // What a waiting session would do next comes when the step it waits in is done. That all wait is an older answer
    // of the server's, or a deadlock, which the server ends with an error.
    let next = todo.findIndex((each) => !waiting.has(each));
    for (; next < 0; next = todo.findIndex((each) => !waiting.has(each))) {
      await Promise.race(waiting.values());
      await noticeDone(waiting);
    }
    const [i = 0] = todo.splice(next, 1);
    const step = steps[i]?.shift();
    if (step) waiting.set(i, step(clientOf(i).client));
    await noticeDone(waiting, i);
    if (waiting.has(i)) waited += 1;
  }
  // The last step may wait as well: a commit that notifies waits for those of all other databases of the server.
  await Promise.all(waiting.values());
  const { rows } = await database.db.pool.query({ text: outcome_of, values: [account_id], rowMode: 'array' });
  return plain([answers, rows]);
}

/** Takes out who waits no longer. `first` first: its end may be what the others wait for. */
async function noticeDone(waiting: Map<number, Promise<unknown>>, first?: number): Promise<void> {
  for (const i of new Set([...(first === undefined ? [] : [first]), ...waiting.keys()])) {
    if (!(await isBlocked(clientOf(i).pid, waiting.get(i)))) waiting.delete(i);
  }
}

function clientOf(i: number): { client: PoolClient; pid: number } {
  const client = clients[i];
  if (!client) throw new Error('there are three');
  return client;
}

function plain(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) => (typeof each === 'bigint' ? String(each) : each));
}

/** True as soon as the server says that `pid` waits for a lock; false when `done` is done. */
async function isBlocked(pid: number, done: Promise<unknown> = Promise.resolve()): Promise<boolean> {
  let finished = false;
  const watch = done.then(() => (finished = true));
  for (;;) {
    const ask = database.db.query<{ blocked: boolean }>('select pg_blocking_pids($1) <> $2 as blocked', [pid, []]);
    await Promise.race([watch, ask]);
    if (finished) return false;
    if ((await ask)[0]?.blocked) return true;
  }
}

/** Runs `orders` and expects of each what some order of whole sessions gives. */
async function expectSerial(sessions: Session[], orders: number[][]): Promise<void> {
  const whole = ordersOf(sessions.map(() => 1)).map((order) => order.flatMap((i) => [i, i, i]));
  const serial: string[] = [];
  for (const order of whole) serial.push(await run(sessions, order));
  for (const order of orders) {
    const name = `${sessions.map(({ verb, end }) => `${verb} ${end}`).join(' | ')}, steps ${order.join('')}`;
    expect(serial, name).toContain(await run(sessions, order));
  }
}

test('two sessions that run step by step in every order end like one after the other', async () => {
  const orders = ordersOf([3, 3]);
  expect(orders).toHaveLength(20);
  const names = Object.keys(verbs);
  for (const [i, verb] of names.entries()) {
    for (const second of names.slice(i)) {
      const other: Session = { verb: second, end: 'commit' };
      await expectSerial([{ verb, end: 'commit' }, other], orders);
      await expectSerial(
        [{ verb, end: 'rollback' }, other],
        orders.filter((_, n) => n % 4 === 1),
      );
    }
  }
  expect(waited).toBeGreaterThan(100);
  await expectExactBooks(database.db);
});

test('three sessions that run step by step in every 56th order end like one after the other', async () => {
  const orders = ordersOf([3, 3, 3]).filter((_, i) => i % 56 === 9);
  for (const chosen of ['hold release hold', 'settle release batch', 'limit hold next_month', 'top_up batch settle']) {
    const sessions = chosen.split(' ').map((verb): Session => ({ verb, end: 'commit' }));
    await expectSerial(sessions, orders);
  }
  await expectExactBooks(database.db);
});
