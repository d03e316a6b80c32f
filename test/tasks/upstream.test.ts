// isolated: it moves the monotonic clock of its process
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../src/app.ts';
import type { Outcome } from '../../src/queue/queue.ts';
import { InputRefused, NotStarted, type RunState } from '../../src/providers/provider.ts';
import { StorageFull, type Storage } from '../../src/storage/storage.ts';
import { finish } from '../../src/tasks/finish.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { listAttempts, loadTask, type TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { elapse, testClock } from '../helpers/clock.ts';
import { makePuppet } from '../helpers/puppet.ts';

const yaml = (provider = 'once') => `
version: 1
${limits()}
providers: { ${provider}: { adapter: once } }
models:${mediaModel({
  id: 'test/once',
  routes: [
    `{ id: a, provider: ${provider}, upstream_model: a, poll: { max: 7s }, timeout: { start: 60s, total: 2m } }`,
  ],
})}
`;

/** Faults of an upstream, or of our own storage, that nobody hopes for. */
describe('a task with a faulty upstream', () => {
  const clock = testClock();
  const once = makePuppet();
  let service: TestApp;
  let client: Client;
  let image: Buffer;

  beforeAll(async () => {
    image = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#c33' } })
      .png()
      .toBuffer();
    service = await startTestApp({ yaml: yaml(), worker: false, adapters: { once: once.adapter }, clock });
  });
  afterAll(() => service.stop());
  beforeEach(async () => {
    client = await service.client();
  });
  afterEach(async () => {
    await service.app.db.query('delete from route_health');
    await expectExactBooks(service.app);
  });

  const { signal } = new AbortController();
  const job = (ref: TaskRef, attempt = 0) => ({ id: 'x', queue: 'x', data: ref, attempt, signal });

  async function create(): Promise<TaskRef> {
    const { json } = await client.call('POST', '/v1/generate', { model: 'test/once', input: {} });
    return { account_id: client.account_id, task_id: json.id };
  }
  /** The task and how its first job ends when the submit is answered so. */
  async function submitted(answer: RunState | Error, app = service.app): Promise<{ ref: TaskRef; outcome: Outcome }> {
    const ref = await create();
    const begun = startTask(app, job(ref));
    const call = await once.next('start');
    if (answer instanceof Error) call.fail(answer);
    else call.answer(answer);
    return { ref, outcome: await begun };
  }
  const running = (poll_after_ms: number): RunState => ({ phase: 'running', ref: 'r', poll_after_ms });
  const done = (...files: Buffer[]): RunState => ({ phase: 'done', files: files.map((bytes) => ({ bytes })) });
  const taskOf = (ref: TaskRef) => loadTask(service.app.db, ref);
  const filesOf = (ref: TaskRef) => service.app.storage.list(ref.account_id, ref.task_id);
  async function counted(ref: TaskRef): Promise<boolean> {
    const rows = await service.app.db.query('select 1 from tasks where id = $1 and counts_as_failure', [ref.task_id]);
    return rows.length === 1;
  }
  async function fail(ref: TaskRef): Promise<void> {
    const ending = { status: 'failed', type: 'internal_error', message: 'x', reason: 'x', counts: false } as const;
    await finish(service.app, ref, { ...ending, attempt: 'canceled' });
  }

  const words = `${'x'.repeat(10)}\0${'y'.repeat(1_000_000)}`;

  it.each([
    ['a failed run', { phase: 'failed', type: 'upstream_error', message: words } as const],
    ['a refused input', new InputRefused('invalid_request', words)],
    ['a refusal', new NotStarted('refused', words, { simulated: true })],
    ['a broken connection', new Error(words)],
  ])('ends despite %s with a NUL and a megabyte of text', async (_what, answer) => {
    const { ref, outcome } = await submitted(answer);
    expect(outcome).toBe('done');
    const task = await taskOf(ref);
    expect(task?.status).toBe('failed');
    expect(task?.error_message?.length).toBeLessThanOrEqual(2_000);
    const [attempt] = await listAttempts(service.app.db, ref);
    expect(attempt?.message).not.toContain('\0');
  });

  it.each([
    [Number.NaN, 7_000],
    [Number.POSITIVE_INFINITY, 7_000],
    [1e12, 7_000],
    [-5, 20],
    [0, 20],
    [1_500.7, 1_501],
  ])('is polled again after %s ms as after %s ms', async (wanted_ms, kept_ms) => {
    const before_ms = service.app.clock.now();
    const { ref } = await submitted(running(wanted_ms));
    const after_ms = service.app.clock.now();
    const rows = await service.app.db.query<{ start_after: Date }>(
      `select start_after from pgboss.job where singleton_key = $1 and name = 'task.poll'`,
      [ref.task_id],
    );
    const accepted_ms = (rows[0]?.start_after.getTime() ?? 0) - kept_ms;
    expect(accepted_ms).toBeGreaterThanOrEqual(before_ms - 10);
    expect(accepted_ms).toBeLessThanOrEqual(after_ms + 10);
    const polled = pollTask(service.app, job(ref));
    (await once.next('poll')).answer(running(wanted_ms));
    expect(await polled).toEqual({ again_after_ms: kept_ms });
    await fail(ref);
  });

  it.each([
    ['no file', () => []],
    ['an empty file', () => [Buffer.alloc(0)]],
    ['a text', () => [Buffer.from('<html>Bad gateway</html>')]],
    ['half a picture', () => [image.subarray(0, image.length / 2)]],
    ['seventeen pictures', () => Array.from({ length: 17 }, () => image)],
    ['a picture and then a text', () => [image, Buffer.from('oops')]],
  ])('fails with %s as output, refunded and counted, and nothing is stored', async (_what, files) => {
    const { ref } = await submitted(done(...files()));
    expect(await taskOf(ref)).toMatchObject({ status: 'failed', error_type: 'upstream_error', cost: 0n });
    expect(await counted(ref)).toBe(true);
    expect(await filesOf(ref)).toEqual([]);
  });

  it('is charged its hold for more output than was held for, and the rest is booked as a loss', async () => {
    const { ref } = await submitted(done(image, image, image));
    expect(await taskOf(ref)).toMatchObject({ status: 'succeeded', cost: 30_000n });
    const entries = await service.app.db.query(
      `select available, held, revenue, loss from ledger_entries where ref = $1 and event = 'close'`,
      [ref.task_id],
    );
    expect(entries).toEqual([{ available: 0n, held: -30_000n, revenue: 90_000n, loss: -60_000n }]);
  });

  /** The service with a storage that fails `times` times. */
  function full(times: number, onFailure = () => {}): App {
    let left = times;
    const put: Storage['put'] = async (key, bytes, options) => {
      if (left === 0) return service.app.storage.put(key, bytes, options);
      left -= 1;
      onFailure();
      throw new StorageFull('No space is left for files.');
    };
    return { ...service.app, storage: { ...service.app.storage, put } };
  }

  it('keeps a result that is returned only once in memory while storage is full for a moment', async () => {
    const { ref } = await submitted(done(image), full(1));
    expect(await taskOf(ref)).toMatchObject({ status: 'succeeded' });
    expect(once.count('start', ref.task_id)).toBe(1);
  });

  it('fails when storage stays full, refunded and not counted', async () => {
    const app = full(
      Infinity,
      () => elapse(901_000), // of patience
    );
    const { ref } = await submitted(done(image), app);
    expect(await taskOf(ref)).toMatchObject({ status: 'failed', error_type: 'internal_error' });
    expect(await counted(ref)).toBe(false);
  });

  it('requests the result of a polled run again when storage was full', async () => {
    const { ref } = await submitted(running(50));
    const polled = pollTask(full(1), job(ref));
    (await once.next('poll')).answer(done(image));
    expect(await polled).toEqual({ again_after_ms: 5_000 });
    const again = pollTask(service.app, job(ref));
    (await once.next('poll')).answer(done(image));
    expect(await again).toBe('done');
    expect(await taskOf(ref)).toMatchObject({ status: 'succeeded' });
  });

  it('goes on by the route that it began with, whatever the catalogue becomes', async () => {
    const { ref } = await submitted(running(50));
    await service.configure(`${yaml('other')}\n    hidden: true`);
    expect(await pollTask(service.app, job(ref))).toEqual({ again_after_ms: 7_000 });
    await service.configure(`version: 1\nproviders: { once: { adapter: once } }\n`);
    const polled = pollTask(service.app, job(ref));
    const call = await once.next('poll');
    expect(call.model).toBe('a');
    call.answer(done(image));
    await polled;
    await service.configure(yaml());
    expect(await taskOf(ref)).toMatchObject({ status: 'succeeded' });
  });

  it('fails by our own fault, not counted, when its provider stays unreachable until its time is over', async () => {
    const { ref } = await submitted(running(50));
    await service.configure('version: 1\n');
    clock.pass(120_001);
    expect(await pollTask(service.app, job(ref))).toBe('done');
    await service.configure(yaml());
    expect(await taskOf(ref)).toMatchObject({ status: 'failed', error_type: 'internal_error' });
    expect(await counted(ref)).toBe(false);
  });

  it('is not late when it is first seen running after the limit for its start', async () => {
    const { ref } = await submitted({ phase: 'waiting', ref: 'r', poll_after_ms: 50 });
    clock.pass(61_000);
    const polled = pollTask(service.app, job(ref));
    (await once.next('poll')).answer(running(50));
    expect(await polled).toEqual({ again_after_ms: 50 });
    expect(await taskOf(ref)).toMatchObject({ status: 'running' });
    await fail(ref);
  });

  it.each([true, false])('does not count against its route when a directive makes it late (%s)', async (simulated) => {
    const runs = [];
    for (let i = 0; i < 5; i++) runs.push((await submitted(running(50))).ref);
    clock.pass(121_000);
    for (const ref of runs) {
      const polled = pollTask(service.app, job(ref));
      (await once.next('poll')).answer({ phase: 'running', ref: 'r', poll_after_ms: 50, simulated });
      (await once.next('cancel')).answer('stopped');
      await polled;
      expect(await taskOf(ref)).toMatchObject({ status: 'failed', error_type: 'timeout' });
    }
    expect((await service.app.db.query('select 1 from route_health')).length).toBe(simulated ? 0 : 1);
  });

  it('gives its run up and stops it after ten failed polls', async () => {
    const { ref } = await submitted(running(50));
    const given_up = pollTask(service.app, job(ref, 10));
    const stop = await once.next('cancel');
    expect(stop.is_given_up).toBe(true);
    stop.answer('stopped');
    expect(await given_up).toBe('done');
    expect(await taskOf(ref)).toMatchObject({ status: 'failed', error_type: 'internal_error' });
    expect(await counted(ref)).toBe(false);
  });
});
