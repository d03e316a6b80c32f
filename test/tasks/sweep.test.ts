import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createHash } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { App } from '../../src/app.ts';
import { newId } from '../../src/lib/ids.ts';
import { finish } from '../../src/tasks/finish.ts';
import { pollTask } from '../../src/tasks/poll.ts';
import { startTask } from '../../src/tasks/start.ts';
import { rescueTasks, sweepTasks } from '../../src/tasks/sweep.ts';
import { listAttempts, loadTask, type TaskRef } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';
import { testClock } from '../helpers/clock.ts';
import { makePuppet } from '../helpers/puppet.ts';

const yaml = `
version: 1
${limits()}
providers: { once: { adapter: once } }
models:${mediaModel({ id: 'test/once', routes: ['{ id: a, provider: once, upstream_model: a }'] })}
`;
const day_ms = 86_400_000;

describe('the sweep', () => {
  const clock = testClock();
  const once = makePuppet();
  let service: TestApp;
  let app: App;
  let client: Client;

  beforeAll(async () => {
    service = await startTestApp({ yaml, worker: false, adapters: { once: once.adapter }, clock });
    app = service.app;
  });
  afterAll(() => service.stop());
  beforeEach(async () => {
    client = await service.client();
  });
  afterEach(async () => {
    clock.run(Date.now());
    await expectExactBooks(app);
  });

  async function create(): Promise<TaskRef> {
    const { json } = await client.call('POST', '/v1/generate', { model: 'test/once', input: {} });
    return { account_id: client.account_id, task_id: json.id };
  }
  const job = (ref: TaskRef) => ({ id: 'x', queue: 'x', data: ref, attempt: 0, signal: new AbortController().signal });
  async function accepted(): Promise<TaskRef> {
    const ref = await create();
    const begun = startTask(app, job(ref));
    (await once.next('start')).answer({ phase: 'running', ref: 'r', poll_after_ms: 50 });
    await begun;
    return ref;
  }
  async function succeed(ref: TaskRef): Promise<string> {
    const key = `${ref.account_id}/${ref.task_id}/0.png`;
    const item = { type: 'image', content_type: 'image/png', size_bytes: 1, width: 1, height: 1 } as const;
    await app.storage.put(key, Buffer.from('x'), { content_type: 'image/png', size_limit_bytes: 10 });
    await finish(app, ref, { status: 'succeeded', units: { image: '1' }, files: [{ key, item }] });
    return key;
  }
  const jobsOf = async (ref: TaskRef) => {
    const rows = await app.db.query<{ name: string }>('select name from pgboss.job where singleton_key = $1', [
      ref.task_id,
    ]);
    return rows.map(({ name }) => name);
  };

  it("sends a task's missing job again, which is the poll for an accepted run", async () => {
    const [waiting, polled] = [await create(), await accepted()];
    await app.db.query('delete from pgboss.job where singleton_key = any($1)', [[waiting.task_id, polled.task_id]]);
    clock.pass(6_000);
    expect(await rescueTasks(app)).toEqual({ resent: 2, expired: 0 });
    expect([await jobsOf(waiting), await jobsOf(polled)]).toEqual([['task.start'], ['task.poll']]);
    expect((await rescueTasks(app)).resent).toBe(0);
    for (const ref of [waiting, polled]) await fail(ref);
  });

  it('fails a task past its deadline, uncounted, and the poll job stops the run', async () => {
    const ref = await accepted();
    clock.pass(day_ms);
    expect((await rescueTasks(app)).expired).toBe(1);
    const task = await loadTask(app.db, ref);
    expect(task).toMatchObject({ status: 'failed', error_type: 'timeout' });
    const counted = await app.db.query('select 1 from tasks where id = $1 and counts_as_failure', [ref.task_id]);
    expect(counted).toEqual([]);
    const polled = pollTask(app, job(ref));
    (await once.next('cancel')).answer('stopped');
    expect(await polled).toBe('done');
    expect(await listAttempts(app.db, ref)).toMatchObject([{ state: 'canceled', reason: 'past its deadline' }]);
    expect(await pollTask(app, job(ref))).toBe('done');
    expect(once.count('cancel', ref.task_id)).toBe(1);
  });

  it('removes thousands of old tasks at once with what a dead worker left of them', async () => {
    const ref = await create();
    await fail(ref);
    const stray = `${ref.account_id}/${ref.task_id}/0.png`;
    await app.storage.put(stray, Buffer.from('x'), { content_type: 'image/png', size_limit_bytes: 10 });
    const ids = Array.from({ length: 1_200 }, () => newId('task'));
    await app.db.query(
      `insert into tasks (account_id, id, key_id, model, kind, input, metadata, currency, pricing, held_units, estimate,
         status, error_type, body, created_at, completed_at, deadline_at)
       select account_id, new_id, key_id, model, kind, input, metadata, currency, pricing, held_units, 0,
         'failed', error_type, body, created_at, completed_at, deadline_at
         from tasks, unnest($2::text[]) as new_id where id = $1`,
      [ref.task_id, ids],
    );
    // Rows that had no hold would be a finding of the books; here only their number matters.
    clock.pass(90 * day_ms + 60_000);
    expect((await sweepTasks(app)).tasks_removed).toBeGreaterThanOrEqual(1_201);
    expect(await app.storage.stat(stray)).toBeUndefined();
    expect(await app.db.query('select 1 from tasks where id = any($1)', [[ref.task_id, ...ids]])).toEqual([]);
  });

  it('removes at once the files that were copied before their task failed', async () => {
    const ref = await create();
    const stray = `${ref.account_id}/${ref.task_id}/0.png`;
    await app.storage.put(stray, Buffer.from('x'), { content_type: 'image/png', size_limit_bytes: 10 });
    await fail(ref);
    expect(await app.storage.stat(stray)).toBeUndefined();
  });

  it('removes other files although one cannot be removed', async () => {
    const [stuck, fine] = [await create(), await create()];
    const key = await succeed(stuck);
    const fine_key = await succeed(fine);
    const path = pathOf(service, key);
    rmSync(path);
    mkdirSync(join(path, 'folder'), { recursive: true });
    clock.pass(7 * day_ms + 60_000);
    expect((await sweepTasks(app)).files_removed).toBe(1);
    expect(await app.storage.stat(fine_key)).toBeUndefined();
    expect((await loadTask(app.db, stuck))?.files_removed_at).toBeNull();
    rmSync(path, { recursive: true });
    writeFileSync(path, 'x');
    expect((await sweepTasks(app)).files_removed).toBe(1);
  });

  it('keeps the row of a task whose stray files cannot be removed, by which they are found again', async () => {
    const ref = await create();
    const path = pathOf(service, `${ref.account_id}/${ref.task_id}/0.png`);
    await fail(ref);
    mkdirSync(join(path, 'folder'), { recursive: true });
    clock.pass(91 * day_ms);
    await sweepTasks(app);
    expect(await loadTask(app.db, ref)).toBeDefined();
    rmSync(path, { recursive: true });
    writeFileSync(path, 'x');
    await sweepTasks(app);
    expect([await loadTask(app.db, ref), existsSync(path)]).toEqual([undefined, false]);
  });

  async function fail(ref: TaskRef): Promise<void> {
    const ending = { status: 'failed', type: 'internal_error', message: 'x', reason: 'x', counts: false } as const;
    await finish(app, ref, { ...ending, attempt: 'canceled' });
  }
});

/** Returns the path at which disk storage keeps a key. */
function pathOf(service: TestApp, key: string): string {
  const folder = dirname(key);
  const hash = createHash('sha256').update(folder).digest('hex');
  return join(service.app.config.data_dir, 'files', hash.slice(0, 2), hash.slice(2, 4), key);
}
