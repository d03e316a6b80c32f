import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { signal, watchStandstills } from '../queue/engine.ts';

let service: TestApp;
beforeAll(async () => {
  service = await startTestApp({ worker: false });
});
afterAll(() => service.stop());

const tables = { balance: 'balances', 'key’s budget': 'budgets' } as const;
type Row = keyof typeof tables;

/** A call waits no longer for the money of its account. */
const locked_ms_max = 5_000;

/** Somebody else's transaction has a row of the account's money while `work` runs. */
async function whileLocked(client: Client, work: () => Promise<void>, row: Row = 'balance'): Promise<void> {
  const begun = signal();
  const over = signal();
  const locking = service.app.db.tx(async (tx) => {
    await tx.query(`select from ${tables[row]} where account_id = $1 for update`, [client.account_id]);
    begun.resolve();
    await over.promise;
  });
  await begun.promise;
  try {
    await work();
  } finally {
    over.resolve();
    await locking;
  }
}

type Timed = Answered & { took_ms: number };

async function timed(calling: Promise<Answered>): Promise<Timed> {
  const begun_ms = performance.now();
  const answered = await calling;
  return { ...answered, took_ms: performance.now() - begun_ms };
}

let n = 0;
const chat = (client: Client) =>
  timed(
    client.call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hi' }] }),
  );
const create = (client: Client) =>
  timed(client.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: 'a cat' } }));
const createOnce = (client: Client) =>
  timed(
    client.call(
      'POST',
      '/v1/generate',
      { model: 'sandbox/image', input: { prompt: 'a cat' } },
      { 'idempotency-key': `k${n++}` },
    ),
  );

const calls: [string, (client: Client) => Promise<Timed>, number][] = [
  ['chat', chat, 200],
  ['tasks', create, 202],
  ['tasks with an Idempotency-Key', createOnce, 202],
];
const cases = (['balance', 'key’s budget'] as const).flatMap((row) => calls.map((call) => [row, ...call] as const));

test.each(cases)('a locked %s of one account delays no %s of the others', async (row, _, call, status) => {
  const locked = await service.client();
  const others = await Promise.all([1, 2, 3, 4].map(() => service.client()));
  for (const client of [locked, ...others]) expect((await call(client)).status).toBe(status);
  const own: Promise<Timed>[] = [];
  const theirs: Timed[] = [];
  const begun_ms = performance.now();
  using standstills = watchStandstills(service.app.db);
  await whileLocked(
    locked,
    async () => {
      for (let round = 0; round < 6; round++) {
        // More of its own than there are connections: none of them may be in the way.
        for (let i = 0; i < 6; i++) own.push(call(locked));
        theirs.push(...(await Promise.all(others.map(call))));
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    },
    row,
  );
  // Where all that took longer than its calls wait, the first of them are refused.
  const allowed = performance.now() - begun_ms > locked_ms_max ? [status, 503] : [status];
  const its = await Promise.all(own);
  const worst_ms = Math.max(...theirs.map(({ took_ms }) => took_ms));
  expect(theirs.map((each) => each.status)).toEqual(theirs.map(() => status));
  expect(its.map((each) => each.status).filter((each) => !allowed.includes(each))).toEqual([]);
  expect(worst_ms).toBeLessThan(2_000 + standstills.longestMs());
  await expectExactBooks(service.app);
});

test('a task of an account whose balance stays locked gets 503 with Retry-After within a bounded time', async () => {
  const locked = await service.client();
  await whileLocked(locked, async () => {
    const answers = await Promise.all([create(locked), createOnce(locked)]);
    for (const answer of answers) {
      expect(answer.status).toBe(503);
      expect(answer.headers.get('retry-after')).toBe('1');
      expect(answer.took_ms).toBeLessThan(25_000);
    }
  });
  expect((await create(locked)).status).toBe(202);
  await expectExactBooks(service.app);
});

test('a chat call of an account whose balance stays locked is answered within a bounded time and charged once it is free', async () => {
  const locked = await service.client();
  expect((await chat(locked)).status).toBe(200);
  let answers: Timed[] = [];
  await whileLocked(locked, async () => {
    answers = await Promise.all([chat(locked), chat(locked)]);
    for (const { status, took_ms } of answers) {
      expect([200, 503]).toContain(status);
      expect(took_ms).toBeLessThan(25_000);
    }
  });
  const count = 1 + answers.filter(({ status }) => status === 200).length;
  const settled = `select from ledger_entries where account_id = $1 and type = 'settle'`;
  const counted = async () => (await service.app.db.query(settled, [locked.account_id])).length;
  await expect.poll(counted).toBe(count);
  await expect.poll(() => service.app.journal.pending()).toEqual([]);
  await expectExactBooks(service.app);
});
