import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { commandsBeside, type Commands } from './medley.ts';

let service: TestApp;
let commands: Commands;
let client: Client;

beforeAll(async () => {
  service = await startTestApp();
  commands = commandsBeside(service);
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

async function generate(model: string, prompt: string, wait = 30, by = client): Promise<string> {
  const { status, json } = await by.call('POST', `/v1/generate?wait=${wait}`, { model, input: { prompt } });
  expect(status).toBe(202);
  return json.id;
}

describe('task list', () => {
  it('lists the newest tasks of all accounts, of one, or in one status', async () => {
    const other = await service.client();
    const done = await generate('sandbox/image', 'x');
    const failed = await generate('sandbox/image', '[[fail]]');
    const foreign = await generate('sandbox/image', 'x', 30, other);
    const ids = async (...words: string[]) => (await commands.ok('task', 'list', ...words)).tasks.map(({ id }) => id);
    expect((await ids()).slice(0, 3)).toEqual([foreign, failed, done]);
    expect(await ids('--account', other.account_id)).toEqual([foreign]);
    expect(await ids('--account', client.account_id, '--status', 'failed')).toEqual([failed]);
    const { out } = await commands.text('task', 'list', '--account', other.account_id);
    expect(out).toMatch(new RegExp(`^${foreign} +${other.account_id} +sandbox/image +succeeded +0.010000 +USD `, 'm'));
  });

  it('refuses an unknown status, number and account', async () => {
    expect(await commands.fails(2, 'task', 'list', '--status', 'done')).toContain('queued, running, succeeded, failed');
    expect(await commands.fails(1, 'task', 'list', '--account', 'acct_x')).toContain('There is no account "acct_x"');
  });
});

describe('task show', () => {
  it('prints the money and every attempt', async () => {
    const id = await generate('sandbox/failover', 'x');
    const shown = await commands.ok('task', 'show', id);
    expect(shown).toMatchObject({ id, status: 'succeeded', estimate: '0.010000', cost: '0.010000', error: null });
    expect(shown.attempts).toMatchObject([
      { number: 1, route: 'sandbox/failover#broken', provider: 'sandbox', state: 'not_started', reason: 'refused' },
      { number: 2, route: 'sandbox/failover#good', provider: 'sandbox', state: 'done', reason: null },
    ]);
    const { out } = await commands.text('task', 'show', id);
    expect(out).toContain('attempt 1     sandbox/failover#broken by sandbox: not_started (refused)\n');
    expect(await commands.fails(1, 'task', 'show', 'task_x')).toBe('There is no task "task_x".');
  });
});

describe('task fail', () => {
  it('ends a hanging task once, refunded and not counted as a failure', async () => {
    const id = await generate('sandbox/image', '[[delay 1h]]', 0);
    await expect.poll(async () => (await client.call('GET', `/v1/tasks/${id}`)).json.status).toBe('running');
    const before = (await client.call('GET', '/v1/balance')).json;
    expect(before.held.exact).toBe('0.010000');
    expect(await commands.ok('task', 'fail', id, '--reason', 'stuck upstream')).toMatchObject({
      id,
      status: 'failed',
      cost: '0.000000',
    });
    const { json } = await client.call('GET', `/v1/tasks/${id}`);
    expect(json).toMatchObject({ status: 'failed', error: { type: 'internal_error' }, cost: { exact: '0.000000' } });
    expect((await client.call('GET', '/v1/balance')).json).toMatchObject({
      held: { exact: '0.000000' },
      balance: { exact: before.balance.exact },
    });
    const counted = await service.app.db.query('select 1 from tasks where id = $1 and counts_as_failure', [id]);
    expect(counted).toEqual([]);
    // The worker stops the run upstream when it would have asked for it the next time.
    const attempts = async () => (await commands.ok('task', 'show', id)).attempts;
    await expect
      .poll(attempts, { timeout: 120_000 })
      .toMatchObject([{ state: 'canceled', reason: 'operator: stuck upstream' }]);
    expect(await commands.fails(1, 'task', 'fail', id, '--reason', 'again')).toBe(`${id} is failed already.`);
  });

  it('wakes callers that wait for the task', async () => {
    const waiting = client.call('POST', '/v1/generate?wait=60', {
      model: 'sandbox/image',
      input: { prompt: '[[delay 1h]]' },
      metadata: { test: 'waiting' },
    });
    const listed = async () => (await client.call('GET', '/v1/tasks?metadata[test]=waiting')).json.data[0]?.id;
    await expect.poll(listed).toBeDefined();
    await commands.ok('task', 'fail', (await listed()) ?? '', '--reason', 'r');
    expect((await waiting).json.status).toBe('failed');
  });

  it('needs a reason', async () => {
    expect(await commands.fails(2, 'task', 'fail', 'task_x', '--reason', '')).toContain('--reason');
  });
});
