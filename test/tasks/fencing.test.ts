// isolated: it moves the monotonic clock of its process, and it arms failpoints of its process
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Outcome } from '../../src/queue/queue.ts';
import { atFailpoint } from '../../src/lib/failpoint.ts';
import { NotStarted, type RunState } from '../../src/providers/provider.ts';
import { cancelTask } from '../../src/tasks/cancel.ts';
import { finish } from '../../src/tasks/finish.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { listAttempts, loadTask, type TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { elapse, testClock } from '../helpers/clock.ts';
import { makePuppet } from '../helpers/puppet.ts';

const yaml = `
version: 1
${limits()}
providers:
  once: { adapter: once }
  again: { adapter: again }
models:${mediaModel({
  id: 'test/once',
  schema: optional_prompt,
  routes: [
    '{ id: a, provider: once, upstream_model: once-a, timeout: { start: 60s, total: 2m } }',
    '{ id: b, provider: once, upstream_model: once-b, timeout: { start: 60s, total: 2m } }',
  ],
})}${mediaModel({
  id: 'test/bold',
  schema: optional_prompt,
  routes: [
    '{ id: a, provider: once, upstream_model: bold-a, on_ambiguous_submit: failover, timeout: { start: 60s, total: 2m } }',
    '{ id: b, provider: once, upstream_model: bold-b, timeout: { start: 60s, total: 2m } }',
  ],
})}${mediaModel({
  id: 'test/again',
  schema: optional_prompt,
  routes: ['{ id: a, provider: again, upstream_model: again-a, timeout: { start: 60s, total: 2m } }'],
})}
`;

/** Two workers at the same task, step by step: every job here is begun by hand. */
describe('two workers on one task', () => {
  const clock = testClock();
  const once = makePuppet();
  const again = makePuppet({ idempotent: true });
  let service: TestApp;
  let client: Client;
  let image: Buffer;

  beforeAll(async () => {
    image = await sharp({ create: { width: 8, height: 8, channels: 3, background: '#c33' } })
      .png()
      .toBuffer();
    const adapters = { once: once.adapter, again: again.adapter };
    service = await startTestApp({ yaml, worker: false, adapters, clock });
    clock.stop(Date.now()); // times are exact, however slow this machine is
    client = await service.client();
  });
  afterAll(() => service.stop());
  afterEach(async () => {
    for (const name of ['task.opened', 'task.stored'] as const) atFailpoint(name);
    await service.app.db.query('delete from route_health');
    await expectExactBooks(service.app);
  });

  const job = (ref: TaskRef) => ({ id: 'x', queue: 'x', data: ref, attempt: 0, signal: new AbortController().signal });
  const start = (ref: TaskRef): Promise<Outcome> => startTask(service.app, job(ref));
  const poll = (ref: TaskRef): Promise<Outcome> => pollTask(service.app, job(ref));
  const running = (ref: string, poll_after_ms = 50): RunState => ({ phase: 'running', ref, poll_after_ms });
  const done = (): RunState => ({ phase: 'done', files: [{ bytes: image }] });

  async function create(model: string): Promise<TaskRef> {
    const { status, json } = await client.call('POST', '/v1/generate', { model, input: { prompt: 'x' } });
    expect(status).toBe(202);
    return { account_id: client.account_id, task_id: json.id };
  }
  const stateOf = async (ref: TaskRef) => {
    const task = await loadTask(service.app.db, ref);
    const attempts = await listAttempts(service.app.db, ref);
    return { status: task?.status, error: task?.error_type, attempts: attempts.map((attempt) => attempt.state) };
  };
  const filesOf = (ref: TaskRef) => service.app.storage.list(ref.account_id, ref.task_id);

  it('wait for each other while the first may still be submitting, and its late response is used', async () => {
    const ref = await create('test/once');
    const first = start(ref);
    const call = await once.next('start');
    const second = await start(ref);
    expect(second).toEqual({ again_after_ms: 60_000 });
    call.answer(running('r1'));
    expect(await first).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'running', error: null, attempts: ['accepted'] });
    expect(once.count('start', ref.task_id)).toBe(1);
    expect(await start(ref)).toBe('done');
    await cancelAndStop(ref);
  });

  it('leave a run that was accepted alone, however often the job was tried', async () => {
    const ref = await create('test/once');
    const first = start(ref);
    (await once.next('start')).answer(running('r'));
    await first;
    expect(await startTask(service.app, { ...job(ref), attempt: 10 })).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'running', error: null, attempts: ['accepted'] });
    await cancelAndStop(ref);
  });

  it('close no route for what the upstream says of their input alone', async () => {
    for (let i = 0; i < 6; i++) {
      const ref = await create('test/once');
      const started = start(ref);
      for (const _ of ['a', 'b'])
        (await once.next('start')).fail(new NotStarted('refused', 'no such field', { is_not_route_fault: true }));
      expect(await started).toBe('done');
      expect(await stateOf(ref)).toMatchObject({ status: 'failed', attempts: ['not_started', 'not_started'] });
    }
    expect(await service.app.db.query('select from route_health')).toEqual([]);
  });

  it('treat a submit without a response in time as ambiguous, and stop the run that it started after all', async () => {
    const ref = await create('test/once');
    const first = start(ref);
    const call = await once.next('start');
    clock.pass(61_001);
    expect(await start(ref)).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'failed', error: 'upstream_error', attempts: ['ambiguous'] });
    call.answer(running('late'));
    const stop = await once.next('cancel');
    expect(stop.ref).toBe('late');
    stop.answer('stopped');
    expect(await first).toBe('done');
    expect(await stateOf(ref)).toMatchObject({ status: 'failed', attempts: ['ambiguous'] });
  });

  it('discard a result that comes too late', async () => {
    const ref = await create('test/once');
    const first = start(ref);
    const call = await once.next('start');
    clock.pass(61_001);
    await start(ref);
    call.answer(done());
    expect(await first).toBe('done');
    expect(await stateOf(ref)).toMatchObject({ status: 'failed', attempts: ['ambiguous'] });
    expect(await filesOf(ref)).toEqual([]);
  });

  it('submit once when the first was delayed before its submit for longer than the limit', async () => {
    const ref = await create('test/bold');
    atFailpoint('task.opened', async () => {
      atFailpoint('task.opened');
      elapse(61_001);
      clock.pass(61_001);
      const second = start(ref); // takes the try for lost, and goes to the second route
      (await once.next('start')).answer(running('b'));
      await second;
    });
    expect(await start(ref)).toBe('done');
    expect(once.calls.filter((call) => call.task_id === ref.task_id).map((call) => call.model)).toEqual(['bold-b']);
    expect(await stateOf(ref)).toMatchObject({ status: 'running', attempts: ['ambiguous', 'accepted'] });
    await cancelAndStop(ref);
  });

  it('go to the next route when one alone is delayed for longer than the limit', async () => {
    const ref = await create('test/once');
    atFailpoint('task.opened', () => {
      atFailpoint('task.opened');
      elapse(61_001);
    });
    const first = start(ref);
    const call = await once.next('start');
    expect(call.model).toBe('once-b');
    call.answer(running('b'));
    await first;
    expect(await stateOf(ref)).toMatchObject({ status: 'running', attempts: ['not_started', 'accepted'] });
    expect(await service.app.db.query('select 1 from route_health')).toEqual([]);
    await cancelAndStop(ref);
  });

  it('repeat an idempotent submit, and the first stops nothing', async () => {
    const ref = await create('test/again');
    const first = start(ref);
    const call_1 = await again.next('start');
    const second = start(ref);
    const call_2 = await again.next('start');
    call_2.answer(running('r'));
    expect(await second).toBe('done');
    call_1.answer(running('r'));
    expect(await first).toBe('done');
    expect(again.count('cancel', ref.task_id)).toBe(0);
    expect(await stateOf(ref)).toMatchObject({ status: 'running', attempts: ['accepted'] });
    const jobs = await service.app.db.query(
      `select 1 from pgboss.job where name = 'task.poll' and singleton_key = $1`,
      [ref.task_id],
    );
    expect(jobs.length).toBe(1);
    const cancel = cancelTask(service.app, ref);
    (await again.next('cancel')).answer('stopped');
    await cancel;
  });

  it('repeat an idempotent submit whose response was lost', async () => {
    const ref = await create('test/again');
    const first = start(ref);
    (await again.next('start')).fail(new Error('socket hang up'));
    expect(await first).toEqual({ again_after_ms: 1_000 });
    const second = start(ref);
    (await again.next('start')).answer(done());
    expect(await second).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'succeeded', error: null, attempts: ['done'] });
  });

  it('repeat an idempotent submit no longer than it may take', async () => {
    const ref = await create('test/again');
    for (const outcome of [{ again_after_ms: 1_000 }, { again_after_ms: 1_000 }, 'done']) {
      const begun = start(ref);
      (await again.next('start')).fail(new Error('socket hang up'));
      expect(await begun).toEqual(outcome);
      clock.pass(30_000);
    }
    expect(await stateOf(ref)).toEqual({ status: 'failed', error: 'upstream_error', attempts: ['ambiguous'] });
  });

  it('go on once with a run that is dropped before its start, however often they learn of it', async () => {
    const ref = await create('test/once');
    const begun = start(ref);
    (await once.next('start')).answer({ phase: 'waiting', ref: 'a', poll_after_ms: 50 });
    await begun;
    const dropped = new NotStarted('unavailable', 'the queue was closed', { simulated: true });
    const first = poll(ref);
    const late = await once.next('poll');
    const second = poll(ref);
    (await once.next('poll')).fail(dropped);
    expect(await second).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'queued', error: null, attempts: ['not_started'] });
    const next = start(ref);
    const call = await once.next('start');
    expect(call.model).toBe('once-b');
    call.answer(running('b'));
    await next;
    late.fail(dropped);
    expect(await first).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'running', error: null, attempts: ['not_started', 'accepted'] });
    expect(once.count('cancel', ref.task_id)).toBe(0);
    await cancelAndStop(ref);
  });

  it('end nothing but the own attempt with a late poll', async () => {
    const ref = await create('test/once');
    const begun = start(ref);
    (await once.next('start')).answer({ phase: 'waiting', ref: 'a', poll_after_ms: 50 });
    await begun;
    const first = poll(ref);
    const call_1 = await once.next('poll');
    clock.pass(60_001);
    const second = poll(ref);
    (await once.next('poll')).answer({ phase: 'waiting', ref: 'a', poll_after_ms: 50 });
    (await once.next('cancel')).answer('stopped'); // it did not start in time
    expect(await second).toBe('done');
    const next_route = start(ref);
    (await once.next('start')).answer(running('b'));
    await next_route;
    call_1.answer({ phase: 'failed', type: 'upstream_error', message: 'was stopped' });
    expect(await first).toBe('done');
    expect(await stateOf(ref)).toEqual({ status: 'running', error: null, attempts: ['not_started', 'accepted'] });
    await cancelAndStop(ref);
  });

  it('do not restore an old reference with a late poll', async () => {
    const ref = await create('test/once');
    const begun = start(ref);
    (await once.next('start')).answer(running('r1'));
    await begun;
    const first = poll(ref);
    const call_1 = await once.next('poll');
    const second = poll(ref);
    (await once.next('poll')).answer(running('r2'));
    await second;
    call_1.answer(running('r1-again'));
    await first;
    expect((await listAttempts(service.app.db, ref))[0]?.run_ref).toBe('"r2"');
    await cancelAndStop(ref);
  });

  it('end nothing with a cancel that finds a newer attempt', async () => {
    const ref = await create('test/once');
    const first = start(ref);
    const call = await once.next('start');
    const canceled = { status: 'failed', type: 'canceled', message: 'x', counts: false, attempt: 'canceled' } as const;
    expect(await finish(service.app, ref, { ...canceled, reason: 'x' }, { attempt: 'none' })).toBe('taken');
    await expect(cancelTask(service.app, ref)).rejects.toMatchObject({ kind: 'conflict' });
    call.answer(running('r'));
    await first;
    await cancelAndStop(ref);
  });

  it('count a cancelled task as started if it starts while its upstream is asked to stop', async () => {
    const ref = await create('test/once');
    const begun = start(ref);
    (await once.next('start')).answer({ phase: 'waiting', ref: 'a', poll_after_ms: 50 });
    await begun;
    const cancel = cancelTask(service.app, ref);
    const stop = await once.next('cancel');
    const polled = poll(ref);
    (await once.next('poll')).answer(running('a'));
    await polled;
    stop.answer('stopped');
    await cancel;
    const rows = await service.app.db.query('select counts_as_failure from tasks where id = $1', [ref.task_id]);
    expect(rows).toEqual([{ counts_as_failure: true }]);
  });

  it('leave no files when a cancel wins against the worker that has stored the output', async () => {
    const ref = await create('test/once');
    const begun = start(ref);
    (await once.next('start')).answer(running('r'));
    await begun;
    atFailpoint('task.stored', async () => {
      expect(await filesOf(ref)).toHaveLength(1);
      await cancelAndStop(ref);
    });
    const polled = poll(ref);
    (await once.next('poll')).answer(done());
    expect(await polled).toBe('done');
    expect(await stateOf(ref)).toMatchObject({ status: 'failed', error: 'canceled' });
    expect(await filesOf(ref)).toEqual([]);
  });

  it('keep the files of the worker that finishes first', async () => {
    const ref = await create('test/once');
    const begun = start(ref);
    (await once.next('start')).answer(running('r'));
    await begun;
    const polls = [poll(ref), poll(ref)];
    const calls = [await once.next('poll'), await once.next('poll')]; // both before the first is answered
    for (const call of calls) call.answer(done());
    expect(await Promise.all(polls)).toEqual(['done', 'done']);
    expect(await stateOf(ref)).toMatchObject({ status: 'succeeded' });
    expect(await filesOf(ref)).toHaveLength(1);
  });

  async function cancelAndStop(ref: TaskRef): Promise<void> {
    const cancel = cancelTask(service.app, ref);
    (await once.next('cancel')).answer('stopped');
    await cancel;
  }
});
