import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { assert } from '../../src/lib/assert.ts';
import { openAttempt } from '../../src/tasks/attempts.ts';
import { serveWaiting } from '../../src/tasks/sweep.ts';
import { waitingOf } from '../../src/tasks/waiting.ts';
import { commandsBeside } from '../cli/medley.ts';
import { ownerOfNew } from '../dashboard/people.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { depth } from '../helpers/depth.ts';
import { startCrowdedBfl, type Crowd } from '../providers/imitations/bfl.ts';
import type { Imitation } from '../providers/imitations/imitation.ts';

/** Tasks of a provider that takes only so many runs at once. */

const active_max = 24;
const refuses = { status: 429, json: { detail: 'Too many active tasks' } };
const crowd: Crowd = { refuses, most_active: 0, accepted: 0 };
let bfl: Imitation;
let other: Imitation;
let service: TestApp;

type FileOptions = { provider?: string; waiting_tasks?: number };

const route = (provider: string) =>
  `{ provider: ${provider}, upstream_model: flux-2-pro, poll: { first: 20ms, max: 50ms }, timeout: { start: 5m } }`;

const fileOf = ({ provider = '', waiting_tasks = 1000 }: FileOptions = {}) => `
version: 1
sandbox: false
${limits({ waiting_tasks })}
providers:
  crowded: { adapter: bfl, base_url: "${bfl.url}", api_key: env:TEST_FULL_KEY, allow_private: true ${provider} }
  other: { adapter: bfl, base_url: "${other.url}", api_key: env:TEST_FULL_KEY, allow_private: true }
models:${mediaModel({ id: 'test/one', routes: [route('crowded')] })}
${mediaModel({ id: 'test/other', routes: [route('crowded')] })}
${mediaModel({ id: 'test/two', routes: [route('crowded'), route('other')] })}
`;

beforeAll(async () => {
  process.env['TEST_FULL_KEY'] = 'a-key';
  bfl = await startCrowdedBfl(active_max, crowd);
  other = await startCrowdedBfl(active_max, { refuses, most_active: 0, accepted: 0 });
  service = await startTestApp({ yaml: fileOf() });
});
beforeEach(async () => {
  await service.app.db.query('delete from full_routes');
  Object.assign(crowd, { refuses, most_active: 0, accepted: 0 });
  bfl.requests.length = 0;
  other.requests.length = 0;
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
  await bfl.stop();
  await other.stop();
});

async function create(client: Client, model = 'test/one'): Promise<string> {
  const created = await client.call('POST', '/v1/generate', { model, input: {} });
  expect(created.status, created.text).toBe(202);
  return created.json.id;
}

async function untilFinal(client: Client, id: string) {
  await vi.waitUntil(async () => (await client.call('GET', `/v1/tasks/${id}`)).json.completed_at, {
    timeout: 120_000,
    interval: 50,
  });
  return (await client.call('GET', `/v1/tasks/${id}`)).json;
}

async function untilWaits(id: string): Promise<void> {
  const waits = () =>
    service.app.db.query('select 1 from throttled_tasks where task_id = $1 and promoted_at is null', [id]);
  await vi.waitUntil(async () => (await waits()).length > 0, { timeout: 120_000, interval: 20 });
}

/** Returns the time since when a task waits, or of its end if it has not waited. */
async function waitsSince(id: string): Promise<Date> {
  const look = () =>
    service.app.db.query<{ since: Date }>(
      `select coalesce(k.since, t.completed_at) as since from tasks t left join throttled_tasks k on k.task_id = t.id
        where t.id = $1 and (k.since is not null or t.completed_at is not null)`,
      [id],
    );
  const options = { timeout: 120_000, interval: 10 };
  const [row] = await vi.waitUntil(async () => {
    const rows = await look();
    return rows.length > 0 && rows;
  }, options);
  return row?.since ?? new Date(0);
}

/** It may wait no longer. Returns for how long it could have waited since its creation. */
async function giveUp(id: string): Promise<number | undefined> {
  const { db } = service.app;
  const rows = await db.query<{ wait_ms: number }>(
    `select extract(epoch from k.give_up_at - t.created_at)::float8 * 1000 as wait_ms
       from throttled_tasks k join tasks t on t.id = k.task_id where k.task_id = $1`,
    [id],
  );
  await db.query('update throttled_tasks set give_up_at = now() where task_id = $1', [id]);
  await serveWaiting(service.app);
  return rows[0]?.wait_ms;
}

/** Every route of the crowded provider answers so to the next submits. */
function refuseNext(count: number, reply: Crowd['refuses'] = refuses): void {
  bfl.instead('submit', ...Array.from({ length: count }, () => reply));
}

async function attemptsOf(id: string): Promise<string[]> {
  const rows = await service.app.db.query<{ outcome: string }>(
    `select state || coalesce(' ' || reason, '') as outcome from attempts where task_id = $1 order by number`,
    [id],
  );
  return rows.map(({ outcome }) => outcome);
}

/** The upstream has said to this task that it is full; it may have been asked again since. */
async function untilRefused(id: string): Promise<void> {
  await expect.poll(() => attemptsOf(id)).toContain('not_started full');
}

describe('tasks of three accounts at once at a provider with 24 runs', () => {
  const each = depth(25, 167);
  const ways: [string, boolean][] = [
    ['its published limit is known', true],
    ['it says itself that it is full', false],
  ];
  it.each(ways)(
    'all succeed, none starts twice, and none waits more than twice the mean: %s',
    async (_, is_known) => {
      const yaml = fileOf({ provider: is_known ? '' : ', max_active: 1000' });
      await service.configure(yaml);
      const node = await service.beside({ yaml, worker: true }); // its runs count, too
      const clients = [await service.client(), await service.client(), await service.client()];
      const ids = await Promise.all(
        clients.map((client) => Promise.all(Array.from({ length: each }, () => create(client)))),
      );
      const account_ids = clients.map(({ account_id }) => account_id);
      const count = async (condition: string) => {
        const rows = await service.app.db.query<{ count: bigint }>(
          `select count(*) as count from tasks where account_id = any($1) and ${condition}`,
          [account_ids],
        );
        return Number(rows[0]?.count);
      };
      await vi.waitUntil(async () => (await count('completed_at is null')) === 0, { timeout: 230_000, interval: 100 });
      expect(await count(`status = 'succeeded'`)).toBe(3 * each);
      expect(crowd.accepted).toBe(ids.flat().length);
      // A busy machine ends runs as fast as it begins them.
      expect(crowd.most_active).toBeLessThanOrEqual(active_max);
      expect(crowd.most_active).toBeGreaterThan(active_max / 2);
      const refused = bfl.requestsFor('submit').length - crowd.accepted;
      expect(refused === 0).toBe(is_known);
      const waits = await service.app.db.query<{ wait_ms: number }>(
        `select avg(extract(epoch from a.created_at - t.created_at))::float8 * 1000 as wait_ms
         from tasks t join attempts a on a.account_id = t.account_id and a.task_id = t.id and a.state = 'done'
        where t.account_id = any($1) group by t.account_id`,
        [account_ids],
      );
      const mean_ms = waits.reduce((sum, { wait_ms }) => sum + wait_ms, 0) / waits.length;
      for (const { wait_ms } of waits) expect(wait_ms).toBeLessThan(2 * mean_ms);
      expect(await service.app.db.query('select from throttled_tasks')).toEqual([]);
      await node.stop();
    },
    240_000,
  );
});

it('a provider with one run at a time serves accounts in turn: who waits with many keeps nobody else waiting', async () => {
  await service.configure(fileOf({ provider: ', max_active: 1' }));
  const [busy, patient] = [await service.client(), await service.client()];
  const ids: string[] = [];
  while (ids.length < 20) ids.push(await create(busy));
  await untilWaits(ids.at(-1) ?? '');
  const id = await create(patient);
  const since = await waitsSince(id); // its start came when a worker took it
  expect((await untilFinal(patient, id)).status).toBe('succeeded');
  const rows = await service.app.db.query(
    `select from attempts a, attempts own where a.account_id = $1 and own.task_id = $2 and own.state = 'done'
        and a.created_at > $3 and a.created_at < own.created_at`,
    [busy.account_id, id, since],
  );
  expect(rows.length).toBeLessThanOrEqual(1); // one that was promoted before
  for (const each of ids) await untilFinal(busy, each);
});

describe('a task whose upstream is full', () => {
  it('waits for as long as Retry-After says, starts then, and is created meanwhile without an error', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(1, { ...refuses, headers: { 'retry-after': '2' } });
    const first = await create(client);
    await untilRefused(first);
    const second = await create(client);
    for (const id of [first, second]) expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
    expect(await attemptsOf(first)).toEqual(['not_started full', 'done']);
    expect(await attemptsOf(second)).toEqual(['done']);
    const rows = await service.app.db.query<{ pause_ms: number }>(
      `select extract(epoch from max(created_at) - min(ended_at))::float8 * 1000 as pause_ms from attempts where task_id = $1`,
      [first],
    );
    expect(rows[0]?.pause_ms).toBeGreaterThanOrEqual(1_900);
    expect(await service.app.db.query('select from route_health')).toEqual([]);
  });

  it('is asked again without Retry-After, by one task at a time', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(2);
    const ids = [await create(client)];
    await untilRefused(ids[0] ?? '');
    ids.push(await create(client), await create(client));
    for (const id of ids) expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
    expect(bfl.requestsFor('submit')).toHaveLength(5);
  });

  it('takes the next route at once, if that has room', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(1, { ...refuses, headers: { 'retry-after': '300' } });
    const id = await create(client, 'test/two');
    expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
    expect(await attemptsOf(id)).toEqual(['not_started full', 'done']);
    expect(other.requestsFor('submit')).toHaveLength(1);
  });

  it('is told by 503 with Retry-After too', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(1, { status: 503, headers: { 'retry-after': '1' } });
    const id = await create(client);
    expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
    expect(await attemptsOf(id)).toEqual(['not_started full', 'done']);
  });

  it('fails after its start timeout, refunded and not counted', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(1, { ...refuses, headers: { 'retry-after': '300' } });
    const id = await create(client);
    await untilWaits(id);
    expect(await giveUp(id)).toBe(300_000);
    expect(await untilFinal(client, id)).toMatchObject({ status: 'failed', error: { type: 'timeout' } });
    const [task] = await service.app.db.query('select cost, counts_as_failure from tasks where id = $1', [id]);
    expect(task).toEqual({ cost: 0n, counts_as_failure: false });
    expect((await client.call('GET', '/v1/balance')).json).toMatchObject({ held: { exact: '0.000000' } });
    expect(bfl.requestsFor('submit')).toHaveLength(1);
  });

  it('shows the words of its upstream to operators, and not to callers', async () => {
    await service.configure(fileOf());
    const owner = await ownerOfNew(service, 'Burnt');
    const client = await service.client({ account_id: owner.account_id });
    const failed = { id: 'x', status: 'Error', error: 'gpu_lost', message: 'Node 7 caught fire' };
    bfl.instead('poll', { json: failed });
    const id = await create(client);
    const task = await untilFinal(client, id);
    expect(task.error.message).toBe('The model provider could not finish the run.');
    const { out } = await commandsBeside(service).text('task', 'show', id);
    expect(out).toContain('gpu_lost: Node 7 caught fire');
    const page = async () => (await owner.get(`${owner.base}/tasks/${id}`)).text;
    expect(await page()).not.toContain('caught fire');
    await service.app.db.query('update auth."user" set "isOperator" = true where id = $1', [owner.user_id]);
    expect(await page()).toContain('gpu_lost: Node 7 caught fire');
  });

  it('can be canceled while it waits', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(1, { ...refuses, headers: { 'retry-after': '300' } });
    const id = await create(client);
    await untilWaits(id);
    const canceled = await client.call('POST', `/v1/tasks/${id}/cancel`, {});
    expect(canceled, canceled.text).toMatchObject({ status: 200, json: { error: { type: 'canceled' } } });
    expect(await service.app.db.query('select from throttled_tasks')).toEqual([]);
  });

  it('has a job again when the one that it was promoted with is lost', async () => {
    await service.configure(fileOf());
    const client = await service.client();
    refuseNext(1, { ...refuses, headers: { 'retry-after': '300' } });
    const id = await create(client);
    await untilWaits(id);
    const { db } = service.app;
    await expect.poll(() => service.app.engine.liveKeys([id])).toEqual(new Set()); // its job ends after the task waits
    await db.query('update throttled_tasks set promoted_at = now() where task_id = $1', [id]);
    await db.query(`update tasks set created_at = created_at - interval '1 minute' where id = $1`, [id]);
    expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
  });
});

describe('a limit of an operator', () => {
  it('counts the run of a node that died until it is given up, and then gives its place to a task that waits', async () => {
    await service.configure(fileOf({ provider: ', max_active: 1' }));
    const client = await service.client();
    const { app } = service;
    const dead = await service.beside({ yaml: fileOf({ provider: ', max_active: 1' }) });
    refuseNext(1, { ...refuses, headers: { 'retry-after': '300' } });
    const lost = await create(client, 'test/other');
    await untilWaits(lost);
    const [only] = app.catalog.current.models.get('test/other')?.routes ?? [];
    assert(only, 'the model has a route');
    const ref = { account_id: client.account_id, task_id: lost };
    await app.db.query('update throttled_tasks set promoted_at = now() where task_id = $1', [lost]);
    await openAttempt(dead.app, ref, { number: 2, name: 'test/other#crowded', route: only }, { max_active: 1 });
    await dead.stop();
    const id = await create(client);
    await untilWaits(id);
    const [waiting] = await waitingOf(
      app.db,
      { account_id: client.account_id, task_id: id },
      app.catalog.current.providers,
      new Date(app.clock.now()),
    );
    expect(waiting?.reason).toBe('waits for Black Forest Labs: 1 of 1 active');
    // It has no more time for its answer.
    await app.db.query(`update attempts set created_at = created_at - interval '1 hour' where task_id = $1`, [lost]);
    expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
    expect(await attemptsOf(lost)).toEqual(['not_started full', 'ambiguous the worker was lost while submitting']);
  });

  it('keeps further tasks from being started within a minute, and says so', async () => {
    await service.configure(fileOf({ provider: ', per_minute: 2' }));
    const client = await service.client();
    await service.app.db.query(`update attempts set created_at = created_at - interval '1 hour'`);
    const ids = [await create(client), await create(client)];
    for (const id of ids) await untilFinal(client, id);
    // That minute lasts until the end of the test.
    await service.app.db.query(
      `update attempts set created_at = created_at + interval '1 hour' where task_id = any ($1)`,
      [ids],
    );
    const third = await create(client);
    await untilWaits(third);
    const fourth = await create(client);
    await untilWaits(fourth);
    const { db, clock, catalog } = service.app;
    const waiting = (task_id: string) =>
      waitingOf(db, { account_id: client.account_id, task_id }, catalog.current.providers, new Date(clock.now()));
    const reason = 'waits for Black Forest Labs: 2 of 2 starts in the last minute';
    expect(await waiting(third)).toEqual([{ provider: 'Black Forest Labs', place: 1, reason }]);
    expect(await waiting(fourth)).toEqual([{ provider: 'Black Forest Labs', place: 2, reason }]);
    const { out } = await commandsBeside(service).text('task', 'show', fourth);
    expect(out).toContain(`place 2       ${reason}`);
    await db.query(`update attempts set created_at = created_at - interval '2 hours'`);
    for (const id of [third, fourth]) expect(await untilFinal(client, id)).toMatchObject({ status: 'succeeded' });
    expect(await waiting(fourth)).toEqual([]);
  });

  it('gives 429 for more waiting tasks of an account than it allows, and to that account alone', async () => {
    await service.configure(fileOf({ waiting_tasks: 2 }));
    const client = await service.client();
    refuseNext(1, { ...refuses, headers: { 'retry-after': '300' } });
    const ids: string[] = [];
    for (const _ of [1, 2]) {
      const id = await create(client);
      await untilWaits(id);
      ids.push(id);
    }
    const refused = () => client.call('POST', '/v1/generate', { model: 'test/one', input: {} });
    await vi.waitUntil(async () => (await refused()).status === 429, { timeout: 120_000, interval: 200 });
    const answer = await refused();
    expect(answer.json.error).toMatchObject({ type: 'rate_limit' });
    expect(answer.headers.get('retry-after')).toBe('10');
    const stranger = await service.client();
    const id = await create(stranger, 'test/two');
    expect(await untilFinal(stranger, id)).toMatchObject({ status: 'succeeded' });
    for (const one of ids) await giveUp(one);
    for (const one of ids) expect(await untilFinal(client, one)).toMatchObject({ status: 'failed' });
  });
});
