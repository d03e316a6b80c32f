import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cancelTask } from '../../src/tasks/cancel.ts';
import { finish, type Completion } from '../../src/tasks/finish.ts';
import { loadTask } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';

const yaml = `
version: 1
${limits({ chat_per_minute: 100_000, failed_per_24h: 100_000 })}
`;

/** The service without a worker, so that every hold stays open until the test ends it. */
describe('POST /v1/generate under attack', () => {
  let service: TestApp;
  const connections = new Agent({ connections: 64 });

  beforeAll(async () => {
    service = await startTestApp({ yaml, worker: false });
  });
  afterAll(async () => {
    await connections.close();
    await service.stop();
  });
  afterEach(() => expectExactBooks(service.app));

  const body = JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x' } });

  /** A machine that has no time for a request says so, and is asked again. */
  async function statusOf(url: string, client: Client): Promise<number> {
    for (;;) {
      const { statusCode, body: answer } = await request(`${url}/v1/generate`, {
        method: 'POST',
        dispatcher: connections,
        headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
        body,
      });
      await answer.dump();
      if (statusCode !== 503) return statusCode;
      await sleep(100);
    }
  }

  /** Sends `count` requests per client, all of them at once, and counts the statuses of their answers. */
  async function fireAll(clients: Client[], count: number, urls = [service.url]): Promise<Map<number, number>[]> {
    const counts = clients.map(() => new Map<number, number>());
    const shots = Array.from({ length: count }, (_, i) =>
      clients.map(async (client, c) => {
        const status = await statusOf(urls[(c + i) % urls.length] ?? service.url, client);
        counts[c]?.set(status, (counts[c]?.get(status) ?? 0) + 1);
      }),
    );
    await Promise.all(shots.flat());
    return counts;
  }

  async function fire(client: Client, count: number): Promise<Map<number, number> | undefined> {
    return (await fireAll([client], count))[0];
  }

  const total = (counts: Map<number, number>[], status: number) =>
    counts.reduce((sum, each) => sum + (each.get(status) ?? 0), 0);

  it('accepts exactly as many tasks as the balance covers when 20 times as many arrive at once', async () => {
    const tasks = 25;
    const client = await service.client({ credit: '0.25' });
    expect(await fire(client, 20 * tasks)).toEqual(
      new Map([
        [202, tasks],
        [402, 19 * tasks],
      ]),
    );
    const { json } = await client.call('GET', '/v1/balance');
    expect(json).toMatchObject({ available: { exact: '0.000000' }, held: { exact: '0.250000' } });
  });

  it("accepts exactly as many tasks as the key's monthly limit covers when 20 times as many arrive at once", async () => {
    const tasks = 25;
    const client = await service.client({ credit: '100', limit: '0.25' });
    expect(await fire(client, 20 * tasks)).toEqual(
      new Map([
        [202, tasks],
        [403, 19 * tasks],
      ]),
    );
    const { json } = await client.call('GET', '/v1/balance');
    expect(json).toMatchObject({ held: { exact: '0.250000' }, key: { remaining: { exact: '0.000000' } } });
  });

  it('accepts exactly as many tasks as the balance covers over ten keys', async () => {
    const tasks = 25;
    const first = await service.client({ credit: '0.25' });
    const more = Array.from({ length: 9 }, () => service.client({ account_id: first.account_id }));
    const counts = await fireAll([first, ...(await Promise.all(more))], 2 * tasks);
    expect({ accepted: total(counts, 202), refused: total(counts, 402) }).toEqual({ accepted: 25, refused: 475 });
    expect((await first.call('GET', '/v1/balance')).json).toMatchObject({
      available: { exact: '0.000000' },
      held: { exact: '0.250000' },
    });
  });

  it('takes nothing for refused tasks from those that are accepted at the same moment', async () => {
    const rich = await service.client({ credit: '100' });
    const clients = [
      rich,
      await service.client({ credit: '0' }),
      await service.client({ credit: '0.07' }),
      await service.client({ credit: '100', limit: '0.09' }),
      await service.client({ account_id: rich.account_id, limit: '0.05' }),
    ];
    const counts = await fireAll(clients, 100);
    expect(counts.map((each) => Object.fromEntries(each))).toEqual([
      { 202: 100 },
      { 402: 100 },
      { 202: 7, 402: 93 },
      { 202: 9, 403: 91 },
      { 202: 5, 403: 95 },
    ]);
    expect((await rich.call('GET', '/v1/balance')).json.held.exact).toBe('1.050000');
  });

  it('accepts exactly what the balances cover on two nodes that serve the same accounts', async () => {
    const other = await service.beside({ yaml });
    const clients = await Promise.all(Array.from({ length: 8 }, (_, i) => service.client({ credit: `0.${i + 10}` })));
    const counts = await fireAll(clients, 100, [service.url, other.url]);
    expect(counts.map((each) => Object.fromEntries(each))).toEqual(
      clients.map((_, i) => ({ 202: i + 10, 402: 90 - i })),
    );
    await other.stop();
  });

  it('gives each of 100 tasks one outcome when ten things race to end it', async () => {
    const client = await service.client();
    const { app } = service;
    const ids = await Promise.all(
      Array.from({ length: 100 }, async () => (await client.call('POST', '/v1/generate', body)).json.id),
    );
    const item = { type: 'image', content_type: 'image/png', size_bytes: 1, width: 1, height: 1 } as const;
    const key = `${client.account_id}/${ids[0]}/0.png`;
    const succeeded: Completion = { status: 'succeeded', units: { image: '1' }, files: [{ key, item }] };
    const failed: Completion = {
      status: 'failed',
      type: 'upstream_error',
      message: 'x',
      counts: true,
      attempt: 'failed',
      reason: 'x',
    };
    let wins = 0;
    for (const task_id of ids) {
      const ref = { account_id: client.account_id, task_id };
      const racers = Array.from({ length: 10 }, (_, i) =>
        i % 3 === 0
          ? cancelTask(app, ref).then(
              () => 'finished',
              () => 'final',
            )
          : finish(app, ref, i % 3 === 1 ? succeeded : failed),
      );
      const outcomes = await Promise.all(racers);
      wins += outcomes.filter((outcome) => outcome === 'finished').length;
      const task = await loadTask(app.db, ref);
      expect(task?.completed_at).toBeInstanceOf(Date);
      expect(JSON.parse(task?.body ?? '')).toMatchObject({
        status: task?.status,
        cost: { exact: task?.status === 'succeeded' ? '0.010000' : '0.000000' },
      });
    }
    expect(wins).toBe(100);
    const entries = await app.db.query(`select 1 from ledger_entries where account_id = $1 and event = 'close'`, [
      client.account_id,
    ]);
    expect(entries.length).toBe(100);
  });

  it.each([
    ['n', -1],
    ['n', 0],
    ['n', 1e308],
    ['n', '1e9'],
    ['n', 2 ** 63],
    ['n', null],
    ['n', []],
    ['n', 1.5],
    ['width', -1],
    ['width', 0],
    ['width', 1e308],
    ['width', '1e9'],
    ['width', 2 ** 63],
    ['width', null],
  ])('refuses an image with %s = %j and names the field', async (field, value) => {
    const client = await service.client();
    const answer = await client.call('POST', '/v1/generate', {
      model: 'sandbox/image',
      input: { prompt: 'x', [field]: value },
    });
    expect(answer).toMatchObject({ status: 422, json: { error: { type: 'invalid_request' } } });
    expect(answer.json.error.message).toContain(`input.${field}`);
    expect((await client.call('GET', '/v1/balance')).json.held.exact).toBe('0.000000');
  });

  it.each([-1, 0, 1e308, 2 ** 63, '1e9', null, {}, true])(
    'refuses a video with duration = %j and names the field',
    async (duration) => {
      const client = await service.client();
      const answer = await client.call('POST', '/v1/generate', {
        model: 'sandbox/video',
        input: { prompt: 'x', duration },
      });
      expect(answer).toMatchObject({ status: 422, json: { error: { type: 'invalid_request' } } });
      expect(answer.json.error.message).toContain('input.duration');
    },
  );

  it.each(['NaN', 'Infinity', '-Infinity', '1e99999', '01', '0x10', '1_000'])(
    'refuses duration %s, which is not JSON or not a number',
    async (text) => {
      const client = await service.client();
      const answer = await client.call(
        'POST',
        '/v1/generate',
        `{"model":"sandbox/video","input":{"prompt":"x","duration":${text}}}`,
      );
      expect([400, 422]).toContain(answer.status);
      expect(answer.json.error.type).toBe('invalid_request');
    },
  );
});
