// isolated: it moves the monotonic clock of its process
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { openAttempt } from '../../src/tasks/attempts.ts';
import { startWorker } from '../../src/worker.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { elapse } from '../helpers/clock.ts';
import { scripted, startUpstream, type Behaviour, type Upstream } from '../helpers/upstream.ts';

/** Specification 3: states and transitions, on an upstream that does as it is told. Two failures pause an account. */

/** A model that takes `n`, and makes as many images. */
const counted = {
  schema: '{ type: object, additionalProperties: false, properties: { n: { type: integer, default: 1 } } }',
  more: ['estimate: { image: $input.n }'],
};
const pair = ['a', 'b'].map((id) => `{ id: ${id}, provider: one, upstream_model: pair-${id} }`);

const yaml = (url: string) => `
version: 1
${limits({ failed_per_24h: 2 })}
providers:
  one: { adapter: scripted, base_url: "${url}", allow_private: true }
models:${mediaModel({ id: 'test/pair', ...counted, routes: pair })}${mediaModel({
  id: 'test/bold',
  ...counted,
  routes: [
    '{ id: a, provider: one, upstream_model: pair-a, on_ambiguous_submit: failover }',
    '{ id: b, provider: one, upstream_model: pair-b }',
  ],
})}${mediaModel({ id: 'test/probed', ...counted, routes: pair })}${mediaModel({
  id: 'test/hasty',
  ...counted,
  routes: ['{ id: a, provider: one, upstream_model: pair-a, timeout: { total: 500ms } }'],
})}${mediaModel({
  id: 'test/brief',
  ...counted,
  routes: ['{ id: a, provider: one, upstream_model: pair-a, timeout: { start: 2s } }'],
})}${mediaModel({
  id: 'test/film',
  kind: 'video',
  schema: counted.schema,
  price: ['{ unit: second, amount: "0.01" }'],
  more: ['estimate: { second: 1 }'],
  routes: ['{ id: a, provider: one, upstream_model: pair-a }'],
})}
`;

let upstream: Upstream;
let service: TestApp;
let idle: TestApp;
let client: Client;

beforeAll(async () => {
  const shape = { width: 64, height: 48, channels: 3, background: '#c33' } as const;
  upstream = await startUpstream(await sharp({ create: shape }).png().toBuffer());
  service = await startTestApp({ yaml: yaml(upstream.url), adapters: { scripted } });
  idle = await startTestApp({ yaml: yaml(upstream.url), adapters: { scripted }, worker: false });
});
afterAll(async () => {
  await service.stop();
  await idle.stop();
  await upstream.close();
});
beforeEach(async () => {
  client = await service.client();
  await service.app.db.query('delete from route_health');
  elapse(1_100); // what a node knows of routes is at most a second old
  upstream.stoppable = true;
  routes(['done'], ['done']);
});
afterEach(async () => {
  await expectExactBooks(service.app);
  await expectExactBooks(idle.app);
});

function routes(a: Behaviour[], b: Behaviour[]): void {
  upstream.script('pair-a', ...a);
  upstream.script('pair-b', ...b);
}

const generate = (input: object = {}, wait = 120, model = 'test/pair', by = client): Promise<Answered> =>
  by.call('POST', `/v1/generate?wait=${wait}`, { model, input });
const get = async (id: string, by = client) => (await by.call('GET', `/v1/tasks/${id}`)).json;
const cancel = (id: string, by = client): Promise<Answered> => by.call('POST', `/v1/tasks/${id}/cancel`);
/** Returns how often the run of a task that was submitted once was asked to stop. */
const cancelsOf = (id: string) => {
  const job = `job-${upstream.submits.findIndex(({ task_id }) => task_id === id) + 1}`;
  return upstream.cancels.filter((each) => each === job).length;
};
const submitsOf = (id: string) => upstream.submits.filter(({ task_id }) => task_id === id).map(({ route }) => route);
const reaches = (id: string, status: string) =>
  vi.waitUntil(async () => (await get(id)).status === status, { interval: 20, timeout: 120_000 });

async function money(by = client): Promise<{ available: string; held: string }> {
  const { json } = await by.call('GET', '/v1/balance');
  return { available: json.available.exact, held: json.held.exact };
}

/** Lists the ledger's movements for a task, newest first. */
async function movements(id: string, by = client): Promise<string[]> {
  const { json } = await by.call('GET', '/v1/balance/transactions');
  return json.data.filter((entry) => entry.reference_id === id).map((entry) => entry.type);
}

/** Returns true if `fail` twice pauses the account. */
async function countsTowardPause(fail: () => Promise<unknown>, by = client): Promise<boolean> {
  await fail();
  await fail();
  const { status } = await generate({}, 0, 'test/pair', by);
  expect([202, 429]).toContain(status);
  return status === 429;
}

it('S3-1 succeeded and failed are final states, and nothing changes them', async () => {
  routes(['run forever'], ['done']);
  const { json: running } = await generate({}, 0);
  await reaches(running.id, 'running');
  await expectOneEnding(service, client, running.id);
  const waiting = await idle.client(); // nobody has begun with its task
  const { json: queued } = await generate({}, 0, 'test/pair', waiting);
  await expectOneEnding(idle, waiting, queued.id);
});

/** Four cancels at once, which all saw the task unfinished: the first ends it. */
async function expectOneEnding({ app }: TestApp, by: Client, id: string): Promise<void> {
  const racing = await app.db.tx(async (tx) => {
    await tx.query('select from tasks where id = $1 for update', [id]);
    const cancels = Array.from({ length: 4 }, () => cancel(id, by));
    const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
    // One waits for the row; the others of the account wait for that one, and take no connection meanwhile.
    await vi.waitUntil(async () => (await app.db.query(waiting)).length >= 1, { interval: 10, timeout: 120_000 });
    return cancels;
  });
  const answers = await Promise.all(racing);
  expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409, 409, 409]);
  const winner = answers.find(({ status }) => status === 200);
  expect((await by.call('GET', `/v1/tasks/${id}`)).text).toBe(winner?.text);
}

it('S3-2 a task whose run produces output becomes succeeded, from queued or running', async () => {
  expect((await generate()).json.status).toBe('succeeded');
  routes(['run forever'], ['done']);
  const { json: task } = await generate({}, 0);
  await reaches(task.id, 'running');
  upstream.endAll();
  await reaches(task.id, 'succeeded');
  expect((await get(task.id)).status).toBe('succeeded');
});

it('S3-3 a task that succeeds is charged its real cost against the hold', async () => {
  const { json: task } = await generate({ n: 3 });
  expect(task).toMatchObject({ estimated_cost: { exact: '0.090000' }, cost: { exact: '0.030000' } });
  expect(await money()).toEqual({ available: '99.970000', held: '0.000000' });
});

it('S3-4 a task that succeeds has its output filled', async () => {
  expect((await generate()).json.output).toMatchObject([{ type: 'image', width: 64, height: 48 }]);
});

it('S3-5 a task that succeeds has completed_at set', async () => {
  routes(['run'], ['done']);
  const { json: task } = await generate();
  expect(Date.parse(task.completed_at ?? '')).toBeGreaterThan(Date.parse(task.started_at ?? ''));
});

it('S3-6 a task whose run starts and fails becomes failed with an error', async () => {
  routes(['run then fail'], ['done']);
  const { json: task } = await generate();
  expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error', message: 'The run failed.' } });
  expect(task.started_at).not.toBeNull();
});

it('S3-7 the hold of a task that fails is released', async () => {
  routes(['run then fail'], ['done']);
  const { json: task } = await generate();
  expect(await movements(task.id)).toEqual(['release', 'hold']);
  expect(await money()).toEqual({ available: '100.000000', held: '0.000000' });
});

it('S3-8 the cost.amount of a task that fails is zero', async () => {
  routes(['run then fail'], ['done']);
  expect((await generate()).json.cost).toEqual({ amount: '0.00', currency: 'USD', exact: '0.000000' });
});

it('S3-9 a task that fails counts toward the limit of failed generations', async () => {
  routes(['run then fail'], ['done']);
  expect(await countsTowardPause(() => generate())).toBe(true);
});

it('S3-10 a task whose route fails before starting goes to the next route and does not fail', async () => {
  routes(['refuse'], ['done']);
  const { json: task } = await generate();
  expect(task).toMatchObject({ status: 'succeeded', error: null });
  expect(submitsOf(task.id)).toEqual(['pair-a', 'pair-b']);
});

/** The jobs of the queue that are about this task. */
async function jobsOf(task_id: string): Promise<number> {
  const jobs = await service.app.db.query(`select from pgboss.job where data ->> 'task_id' = $1`, [task_id]);
  return jobs.length;
}

it('S7.3-3 a failed task is not retried in a loop', async () => {
  routes(['run then fail'], ['done']);
  const { json: task } = await generate();
  await expect.poll(() => jobsOf(task.id)).toBe(0);
  expect(submitsOf(task.id)).toEqual(['pair-a']);
  expect((await get(task.id)).status).toBe('failed');
});

it('D-task-4 a new task is queued', async () => {
  const by = await idle.client();
  const { json: task } = await generate({}, 0, 'test/pair', by);
  expect([task.status, (await get(task.id, by)).status]).toEqual(['queued', 'queued']);
});

it('D-task-5 a task is running when its upstream has started, not when it has only accepted', async () => {
  routes(['queue'], ['done']);
  const before = upstream.polls.length;
  const { json: waiting } = await generate({}, 0);
  await vi.waitUntil(() => upstream.polls.length >= before + 3, { interval: 20, timeout: 120_000 });
  expect(await get(waiting.id)).toMatchObject({ status: 'queued', started_at: null });
  await cancel(waiting.id);
  routes(['run forever'], ['done']);
  const { json: started } = await generate({}, 0);
  await reaches(started.id, 'running');
  expect((await get(started.id)).started_at).not.toBeNull();
  expect((await cancel(started.id)).status).toBe(200);
});

const errorOf = async (answer: Promise<Answered>) => (await answer).json.error;

it('D-task-14 error.type is upstream_error when the provider fails or returns no valid output', async () => {
  expect(await errorOf(generate({}, 120, 'test/film'))).toMatchObject({ type: 'upstream_error' });
});

it('D-task-15 error.type is timeout when the run takes too long', async () => {
  routes(['run forever'], ['done']);
  expect(await errorOf(generate({}, 120, 'test/hasty'))).toMatchObject({ type: 'timeout' });
});

it('D-task-16 error.type is content_policy_violation when the content is refused', async () => {
  const body = { model: 'sandbox/image', input: { prompt: '[[moderate]] x' } };
  const answer = client.call('POST', '/v1/generate?wait=120', body);
  expect(await errorOf(answer)).toMatchObject({ type: 'content_policy_violation' });
});

it('D-task-17 error.type is invalid_request when the provider refuses the input', async () => {
  routes(['reject input'], ['done']);
  expect(await errorOf(generate())).toEqual({ type: 'invalid_request', message: 'that prompt will not do' });
});

it('D-task-18 error.type is canceled when the caller cancels the task', async () => {
  routes(['run forever'], ['done']);
  const { json: task } = await generate({}, 0);
  await reaches(task.id, 'running');
  expect(await errorOf(cancel(task.id))).toMatchObject({ type: 'canceled' });
});

it('D-task-19 error.type is internal_error when the fault is ours', async () => {
  const by = await idle.client();
  const { json: task } = await generate({}, 0, 'test/pair', by);
  const node = await idle.beside({ yaml: 'version: 1\n' }); // the model was taken out of the configuration
  await startWorker(node.app);
  await vi.waitUntil(async () => (await get(task.id, by)).status === 'failed', { timeout: 120_000 });
  await node.stop();
  expect((await get(task.id, by)).error).toMatchObject({ type: 'internal_error' });
});

it('D-noroute-1 a task that no route starts becomes failed with upstream_error', async () => {
  routes(['refuse'], ['refuse']);
  const { status, json: task } = await generate();
  expect(status).toBe(202);
  expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, started_at: null });
});

it('D-noroute-2 a task that no route starts is refunded in full', async () => {
  routes(['refuse'], ['refuse']);
  await generate();
  expect(await money()).toEqual({ available: '100.000000', held: '0.000000' });
});

it('D-noroute-3 a task that no route starts does not count toward the 25 failures', async () => {
  routes(['refuse'], ['refuse']);
  expect(await countsTowardPause(() => generate())).toBe(false);
});

it('D-fail-1 a task that starts and fails counts toward the 25 failures, also when its output is invalid', async () => {
  expect(await countsTowardPause(() => generate({}, 120, 'test/film'))).toBe(true);
});

it('D-fail-2 a task that is cancelled before its start does not count toward the 25 failures', async () => {
  const by = await idle.client();
  const fail = async () => cancel((await generate({}, 0, 'test/pair', by)).json.id, by);
  expect(await countsTowardPause(fail, by)).toBe(false);
});

it('D-fail-3 a task with an ambiguous submit does not count toward the 25 failures', async () => {
  routes(['cut'], ['done']);
  expect(await countsTowardPause(() => generate())).toBe(false);
});

it('D-fail-4 a task whose worker dies while submitting is not submitted again and does not count toward the 25 failures', async () => {
  const { app } = idle;
  const by = await idle.client();
  const orphan = async () => {
    const { json: task } = await generate({}, 0, 'test/brief', by);
    const ref = { account_id: by.account_id, task_id: task.id };
    const [route] = app.catalog.current.models.get('test/brief')?.routes ?? [];
    if (route) await openAttempt(app, ref, { number: 1, name: 'test/brief#a', route }, undefined);
    return task.id;
  };
  const ids = [await orphan(), await orphan()];
  const node = await idle.beside({ yaml: yaml(upstream.url), adapters: { scripted } });
  await startWorker(node.app);
  for (const id of ids) await vi.waitUntil(async () => (await get(id, by)).completed_at, { timeout: 120_000 });
  await node.stop();
  for (const id of ids) {
    expect(await get(id, by)).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
    expect(submitsOf(id)).toEqual([]);
  }
  expect((await generate({}, 0, 'test/pair', by)).status).toBe(202);
});

it('D-cancel-1 a cancel before the start returns 200, and the task is failed, canceled and refunded', async () => {
  const by = await idle.client();
  const { json: task } = await generate({}, 0, 'test/pair', by);
  const answer = await cancel(task.id, by);
  expect(answer).toMatchObject({ status: 200, json: { id: task.id, status: 'failed', error: { type: 'canceled' } } });
  expect(await money(by)).toEqual({ available: '100.000000', held: '0.000000' });
});

it('D-cancel-2 a cancel of a running task returns 200 when its upstream confirms that it stopped unbilled', async () => {
  routes(['run forever'], ['done']);
  const { json: task } = await generate({}, 0);
  await reaches(task.id, 'running');
  expect(await cancel(task.id)).toMatchObject({ status: 200, json: { status: 'failed', error: { type: 'canceled' } } });
  expect(cancelsOf(task.id)).toBe(1);
  expect(await money()).toEqual({ available: '100.000000', held: '0.000000' });
});

it('D-cancel-3 a cancel of a final task gets 409 with the code conflict', async () => {
  const { json: task } = await generate();
  expect(await cancel(task.id)).toMatchObject({
    status: 409,
    json: { error: { type: 'invalid_request', code: 'conflict' } },
  });
  expect((await get(task.id)).status).toBe('succeeded');
});

it('D-cancel-4 a cancel of a task that its upstream bills anyway gets 409, and the task goes on', async () => {
  routes(['run forever'], ['done']);
  upstream.stoppable = false;
  const { json: task } = await generate({}, 0);
  await reaches(task.id, 'running');
  expect(await cancel(task.id)).toMatchObject({ status: 409, json: { error: { code: 'conflict' } } });
  expect((await get(task.id)).status).toBe('running');
  upstream.stoppable = true;
  expect((await cancel(task.id)).status).toBe(200);
});

it('D-cancel-5 a cancel after the start counts toward the 25 failures', async () => {
  routes(['run forever'], ['done']);
  const stop = async () => {
    const { json: task } = await generate({}, 0);
    await reaches(task.id, 'running');
    expect((await cancel(task.id)).status).toBe(200);
  };
  expect(await countsTowardPause(stop)).toBe(true);
});

it('D-ambiguous-1 a submit without an answer fails the task by default, refunds it and tries no other route', async () => {
  routes(['cut'], ['done']);
  const { json: task } = await generate();
  expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
  expect(submitsOf(task.id)).toEqual(['pair-a']);
  expect(await money()).toEqual({ available: '100.000000', held: '0.000000' });
});

it('D-ambiguous-2 an ambiguous submit is recorded for the operator', async () => {
  routes(['cut'], ['done']);
  const { json: task } = await generate();
  const attempts = await service.app.db.query('select state from attempts where task_id = $1', [task.id]);
  expect(attempts).toEqual([{ state: 'ambiguous' }]);
});

it('D-ambiguous-3 an ambiguous submit goes to the next route when the operator chose that for the route', async () => {
  routes(['cut'], ['done']);
  const { json: task } = await generate({}, 120, 'test/bold');
  expect(task.status).toBe('succeeded');
  expect(submitsOf(task.id)).toEqual(['pair-a', 'pair-b']);
});

/** Writes down that both routes of test/probed are not to be used for `pause_ms`, as a breaker does. */
async function openCircuits(cause: 'upstream_error' | 'timeout', pause_ms: number, at = service): Promise<void> {
  for (const id of ['a', 'b']) {
    await at.app.db.query(
      'insert into route_health (route, cause, openings, opened_at, retry_at) values ($1, $2, 1, $3, $4)',
      [`test/probed#${id}`, cause, new Date(), new Date(Date.now() + pause_ms)],
    );
  }
  elapse(1_100);
}

it('D-circuit-1 a model whose circuits are all open gets 502 upstream_error, and nothing is created or held', async () => {
  await openCircuits('upstream_error', 30_000);
  expect(await generate({}, 0, 'test/probed')).toMatchObject({
    status: 502,
    json: { error: { type: 'upstream_error' } },
  });
  expect(await money()).toEqual({ available: '100.000000', held: '0.000000' });
  expect((await client.call('GET', '/v1/tasks')).json.data).toEqual([]);
});

it('D-circuit-2 a model whose circuits are all open after timeouts gets 504 timeout', async () => {
  await openCircuits('timeout', 30_000);
  expect(await generate({}, 0, 'test/probed')).toMatchObject({ status: 504, json: { error: { type: 'timeout' } } });
});

it('D-circuit-3 a half-open route lets one task through, so that a model always recovers', async () => {
  const by = await idle.client(); // a probe goes on until there is a worker
  await openCircuits('upstream_error', -1_000, idle);
  const answers = await Promise.all(Array.from({ length: 6 }, () => generate({}, 0, 'test/probed', by)));
  const statuses = answers.map(({ status }) => status).toSorted();
  expect(statuses.slice(0, 2)).toEqual([202, 202]);
  expect(statuses.slice(-1)).toEqual([502]);
  const node = await idle.beside({ yaml: yaml(upstream.url), adapters: { scripted } });
  await startWorker(node.app);
  const probes = answers.filter(({ status }) => status === 202).map(({ json }) => json.id);
  for (const id of probes) await expect.poll(async () => (await get(id, by)).status).toBe('succeeded');
  await idle.app.db.query('delete from route_health where route = $1', ['test/probed#b']);
  elapse(1_100);
  expect((await generate({}, 120, 'test/probed', by)).json.status).toBe('succeeded');
  expect(await idle.app.db.query('select 1 from route_health')).toEqual([]);
  await node.stop();
});

it('D-circuit-4 failures that a sandbox directive causes open no circuit', async () => {
  const by = await service.client();
  for (let i = 0; i < 6; i++) {
    const body = { model: 'sandbox/image', input: { prompt: '[[fail before start]] x' } };
    const refused = await by.call('POST', '/v1/generate?wait=120', body);
    expect(refused).toMatchObject({ status: 202, json: { status: 'failed' } });
  }
  expect(await service.app.db.query('select 1 from route_health')).toEqual([]);
  const fine = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
  expect((await by.call('POST', '/v1/generate?wait=120', fine)).json.status).toBe('succeeded');
});
