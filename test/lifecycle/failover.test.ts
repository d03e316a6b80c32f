import { describe, expect, it, type TestContext } from 'vitest';
import { service_rules } from '../../src/chat/books.ts';
import { openDatabase } from '../../src/db/database.ts';
import { connectionTo } from '../../src/db/servers.ts';
import { checkBooks } from '../../src/money/books.ts';
import { completion, hello, yamlOf } from '../chat/setup.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startChatUpstream } from '../helpers/chat-upstream.ts';
import { startReplicated, type Replicated } from '../helpers/replicated.ts';
import { byNight, depth } from '../helpers/depth.ts';

type Stage = { servers: Replicated; test: TestApp };

async function setStage({ onTestFinished }: TestContext): Promise<Stage> {
  process.env['TEST_UPSTREAM_KEY'] = 'sk-upstream-secret-0123456789';
  const servers = await startReplicated();
  const upstream = await startChatUpstream();
  const usage = { prompt_tokens: 1_000, completion_tokens: 100, total_tokens: 1_100 };
  upstream.script('gpt-x', { json: completion('Hi', usage) });
  const test = await startTestApp({ yaml: yamlOf(upstream), env: { DATABASE_URL: servers.url } });
  onTestFinished(async () => {
    await test.stop();
    await upstream.stop();
    await servers.stop();
  });
  return { servers, test };
}

/** Work that callers were told is done. */
type Acknowledged = { tasks: string[]; chats: number };

/** Calls and tasks, one behind the other, until `signal`. */
async function work(client: Client, done: Acknowledged, signal: AbortSignal): Promise<void> {
  const repeat = async (once: () => Promise<boolean>) => {
    while (!signal.aborted) if (!(await once())) await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const chat = async () => {
    const body = { model: 'acme/oai', max_tokens: 200, messages: hello };
    const { status } = await client.call('POST', '/v1/chat/completions', body);
    if (status === 200) done.chats += 1;
    return status === 200;
  };
  const generate = async () => {
    const body = { model: 'sandbox/image', input: { prompt: 'a' } };
    const { status, json } = await client.call('POST', '/v1/generate', body);
    if (status === 202) done.tasks.push(json.id);
    return status === 202;
  };
  await Promise.all([repeat(chat), repeat(chat), repeat(generate)]);
}

async function readiness({ test }: Stage): Promise<number> {
  return (await fetch(`${test.url}/readyz`)).status;
}

async function statesOf({ test }: Stage, tasks: readonly string[]) {
  return test.app.db.query(
    'select status, count(*)::int as n from tasks where id = any($1) group by status order by status',
    [tasks],
  );
}

async function countCharges({ test }: Stage): Promise<number> {
  const rows = await test.app.db.query<{ n: number }>(
    `select count(*)::int as n from ledger_entries where type = 'settle' and kind = 'chat'`,
  );
  return rows[0]?.n ?? 0;
}

/** Twice what is promised, since the machine may be busy, and as long as it may stand still. */
const back = { timeout: 40_000, interval: 20 };
const soon = { timeout: 120_000 };

/** A stage on which a caller has been at work for a while, until `end`. */
async function setWork(context: TestContext) {
  const stage = await setStage(context);
  const client = await stage.test.client();
  const done: Acknowledged = { tasks: [], chats: 0 };
  const ended = new AbortController();
  const working = work(client, done, ended.signal);
  const end = () => {
    ended.abort();
    return working;
  };
  await expect.poll(() => Math.min(done.chats, done.tasks.length), soon).toBeGreaterThan(20);
  return { stage, client, done, end };
}

describe('a service whose DATABASE_URL names a primary and its standby', () => {
  it.for(depth(['killed'] as const, ['killed', 'frozen'] as const))(
    'finds the standby that is promoted for a primary that was %s, with all that was acknowledged, and exact books',
    { timeout: 300_000 },
    async (how, context) => {
      const { stage, client, done, end } = await setWork(context);
      const { servers, test } = stage;

      await servers.strike(how);
      await expect.poll(() => readiness(stage), soon).toBe(503);
      await servers.promote();
      const before = { chats: done.chats, tasks: done.tasks.length };
      await expect.poll(() => done.tasks.length, back).toBeGreaterThan(before.tasks);
      await expect.poll(() => done.chats, back).toBeGreaterThan(before.chats);
      await expect.poll(() => readiness(stage), back).toBe(200);
      await end();

      await expect
        .poll(() => statesOf(stage, done.tasks), soon)
        .toEqual([{ status: 'succeeded', n: done.tasks.length }]);
      // What was answered during the outage waits in the journal; what nobody was answered may have been charged, too.
      await expect.poll(() => countCharges(stage), soon).toBeGreaterThanOrEqual(done.chats);
      await expect.poll(async () => (await client.call('GET', '/v1/balance')).json.held.amount, soon).toBe('0.00');
      await expectExactBooks(test.app);

      // What starts now passes over the first one, which is gone.
      const db = openDatabase({ connection: connectionTo(servers.url) });
      context.onTestFinished(() => db.close());
      expect(await db.query('select pg_is_in_recovery() as standby')).toEqual([{ standby: false }]);
    },
  );

  byNight(() => {
    it('goes on with what the standby has, where nobody waited for that: what it did not hear never was, and money is exact', async (context) => {
      const { stage, client, done, end } = await setWork(context);
      const { servers, test } = stage;
      await servers.cutOff();
      const lost = await test.client();
      const lost_task = await lost.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: 'a' } });
      expect(lost_task.status).toBe(202);
      const heard = { chats: done.chats, tasks: done.tasks.length };
      await expect
        .poll(() => Math.min(done.chats - heard.chats, done.tasks.length - heard.tasks), soon)
        .toBeGreaterThan(20);

      await servers.strike('killed');
      await expect.poll(() => readiness(stage), soon).toBe(503);
      await servers.promote();
      const before = { chats: done.chats, tasks: done.tasks.length };
      await expect.poll(() => done.tasks.length, back).toBeGreaterThan(before.tasks);
      await expect.poll(() => done.chats, back).toBeGreaterThan(before.chats);
      await end();

      await expect.poll(async () => (await lost.call('GET', '/v1/balance')).status, soon).toBe(401);
      const rows = [{ status: 'succeeded', n: expect.any(Number) }];
      await expect.poll(() => statesOf(stage, done.tasks), soon).toEqual(rows);
      expect((await statesOf(stage, done.tasks))[0]?.['n']).toBeLessThan(done.tasks.length);
      expect(await countCharges(stage)).toBeLessThan(done.chats);
      await expect.poll(async () => (await client.call('GET', '/v1/balance')).json.held.amount, soon).toBe('0.00');
      // A record is written behind its charge: one of the two may have been lost.
      const report = await checkBooks(test.app.db, { full: true, more: service_rules });
      const others = report.findings.filter(
        ({ rule }) => rule !== 'the record of a chat call tells what its hold was settled at',
      );
      expect(others).toEqual([]);
    }, 180_000);
  });

  it('is unavailable while both only read, and says so of each', async ({ onTestFinished }) => {
    const servers = await startReplicated();
    onTestFinished(() => servers.stop());
    await servers.strike('killed');
    const db = openDatabase({ connection: connectionTo(servers.url) });
    onTestFinished(() => db.close());
    await expect(db.query('select 1')).rejects.toThrow(
      /^None of the servers of DATABASE_URL takes writes \(\S+ connect ECONNREFUSED \S+; \S+ only reads, like a standby\)/,
    );
  });
});
