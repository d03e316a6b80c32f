import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAttempts } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { mediaModel, required_prompt } from '../helpers/catalog.ts';
import { rereadRoutes } from '../helpers/routes.ts';
import { scripted, startUpstream, type Upstream } from '../helpers/upstream.ts';

/** A model with two routes to two upstream models of a real HTTP server, and one with a single route. */
const yaml = (url: string) => `
version: 1
providers:
  one: { adapter: scripted, base_url: "${url}", allow_private: true }
  two: { adapter: scripted, base_url: "${url}", allow_private: true }
  dead: { adapter: scripted, base_url: "http://127.0.0.1:9", allow_private: true }
models:${mediaModel({
  id: 'test/pair',
  schema: required_prompt,
  routes: ['{ id: a, provider: one, upstream_model: pair-a }', '{ id: b, provider: two, upstream_model: pair-b }'],
})}${mediaModel({
  id: 'test/brief',
  schema: required_prompt,
  routes: [
    '{ id: a, provider: one, upstream_model: pair-a, timeout: { start: 2s } }',
    '{ id: b, provider: two, upstream_model: pair-b }',
  ],
})}${mediaModel({
  id: 'test/risky',
  schema: required_prompt,
  routes: [
    '{ id: a, provider: one, upstream_model: risky-a, on_ambiguous_submit: failover }',
    '{ id: b, provider: two, upstream_model: risky-b }',
  ],
})}${mediaModel({
  id: 'test/dead',
  schema: required_prompt,
  routes: ['{ id: dead, provider: dead, upstream_model: dead }'],
})}${mediaModel({
  id: 'test/slow',
  schema: required_prompt,
  routes: ['{ id: a, provider: one, upstream_model: slow-a, timeout: { start: 1s, total: 3s } }'],
})}
`;

describe('a task with several routes', () => {
  let upstream: Upstream;
  let service: TestApp;
  let client: Client;

  beforeAll(async () => {
    const png = await sharp({ create: { width: 64, height: 48, channels: 3, background: '#c33' } })
      .png()
      .toBuffer();
    upstream = await startUpstream(png);
    service = await startTestApp({ yaml: yaml(upstream.url), adapters: { scripted } });
  });
  afterAll(async () => {
    await service.stop();
    await upstream.close();
  });
  beforeEach(async () => {
    client = await service.client();
    await service.app.db.query('delete from route_health');
    upstream.stoppable = true;
    for (const route of ['pair-a', 'pair-b', 'risky-a', 'risky-b', 'slow-a']) upstream.script(route, 'done');
  });
  afterEach(() => expectExactBooks(service.app));

  const generate = (model: string, wait = 120): Promise<Answered> =>
    client.call('POST', `/v1/generate?wait=${wait}`, { model, input: { prompt: 'x' } });
  const submitsOf = (task_id: string) =>
    upstream.submits.filter((submit) => submit.task_id === task_id).map((submit) => submit.route);
  const available = async () => (await client.call('GET', '/v1/balance')).json.available.exact;

  it('uses the first route that starts and is charged what was measured', async () => {
    const { json: task } = await generate('test/pair');
    expect(task).toMatchObject({ status: 'succeeded', cost: { amount: '0.03' }, error: null });
    expect(task.output).toMatchObject([{ type: 'image', width: 64, height: 48, content_type: 'image/png' }]);
    expect(submitsOf(task.id)).toEqual(['pair-a']);
    expect(await available()).toBe('99.970000');
  });

  it('goes to the next route when one refuses before the start', async () => {
    upstream.script('pair-a', 'refuse');
    const { json: task } = await generate('test/pair');
    expect(task.status).toBe('succeeded');
    expect(submitsOf(task.id)).toEqual(['pair-a', 'pair-b']);
  });

  it('goes to the next route when one does not start in time and confirms that it stopped', async () => {
    upstream.script('pair-a', 'queue');
    const { json: task } = await generate('test/brief');
    expect(task.status).toBe('succeeded');
    expect(submitsOf(task.id)).toEqual(['pair-a', 'pair-b']);
  });

  it('goes to the next route when an accepted run is dropped before its start', async () => {
    upstream.script('pair-a', 'drop');
    const { json: task } = await generate('test/pair');
    expect(task).toMatchObject({ status: 'succeeded', cost: { amount: '0.03' } });
    expect(submitsOf(task.id)).toEqual(['pair-a', 'pair-b']);
    const attempts = await listAttempts(service.app.db, { account_id: client.account_id, task_id: task.id });
    expect(attempts).toMatchObject([
      { state: 'not_started', reason: 'unavailable', message: 'the queue was closed' },
      { state: 'done' },
    ]);
    expect(await available()).toBe('99.970000');
  });

  it('fails when the last route drops its run before the start, refunded and not counted', async () => {
    upstream.script('pair-a', 'refuse');
    upstream.script('pair-b', 'drop');
    const { json: task } = await generate('test/pair');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { amount: '0.00' } });
    expect(submitsOf(task.id)).toEqual(['pair-a', 'pair-b']);
    const [row] = await service.app.db.query<{ counts_as_failure: boolean }>(
      'select counts_as_failure from tasks where id = $1',
      [task.id],
    );
    expect(row?.counts_as_failure).toBe(false);
  });

  it('stays failed when a run that was seen running is reported as never started', async () => {
    upstream.script('pair-a', 'run then drop');
    const { json: task } = await generate('test/pair');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { amount: '0.00' } });
    expect(submitsOf(task.id)).toEqual(['pair-a']);
  });

  it('fails with a refund when a queued run cannot be stopped unbilled', async () => {
    upstream.script('pair-a', 'queue');
    upstream.stoppable = false;
    const { json: task } = await generate('test/brief');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'timeout' }, cost: { exact: '0.000000' } });
    expect(submitsOf(task.id)).toEqual(['pair-a']);
    expect(await available()).toBe('100.000000');
  });

  it('never goes to the next route after the start', async () => {
    upstream.script('pair-a', 'run then fail');
    const { json: task } = await generate('test/pair');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
    expect(task.started_at).not.toBeNull();
    expect(submitsOf(task.id)).toEqual(['pair-a']);
    expect(await countedFailures()).toBe(1);
  });

  it('fails when the response to its submit is lost, refunded and not counted, and never submits again', async () => {
    upstream.script('pair-a', 'cut');
    const { json: task } = await generate('test/pair');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
    expect(submitsOf(task.id)).toEqual(['pair-a']);
    expect(await countedFailures()).toBe(0);
    expect(await available()).toBe('100.000000');
  });

  it('goes to the next route after a lost response when the operator chose that', async () => {
    upstream.script('risky-a', 'cut');
    const { json: task } = await generate('test/risky');
    expect(task.status).toBe('succeeded');
    expect(submitsOf(task.id)).toEqual(['risky-a', 'risky-b']);
  });

  it('treats a submit without a response in time as ambiguous', async () => {
    upstream.script('slow-a', 'hang');
    const { json: task } = await generate('test/slow');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
    expect(submitsOf(task.id)).toEqual(['slow-a']);
  });

  it('fails when its run exceeds the time limit', async () => {
    upstream.script('slow-a', 'run forever');
    const { json: task } = await generate('test/slow');
    expect(task).toMatchObject({ status: 'failed', error: { type: 'timeout' }, cost: { exact: '0.000000' } });
    expect(upstream.cancels.length).toBeGreaterThan(0);
    expect(await countedFailures()).toBe(1);
  });

  it('reports what is wrong with the input, tries no other route and blames none', async () => {
    upstream.script('pair-a', 'reject input');
    for (let i = 0; i < 6; i++) {
      const { json: task } = await generate('test/pair');
      expect(task).toMatchObject({
        status: 'failed',
        error: { type: 'invalid_request', message: 'that prompt will not do' },
      });
      expect(submitsOf(task.id)).toEqual(['pair-a']);
    }
    upstream.script('pair-a', 'done');
    const { json: task } = await generate('test/pair');
    expect(submitsOf(task.id)).toEqual(['pair-a']);
  });

  it('fails when no route starts, refunded and not counted', async () => {
    const { status, json: task } = await generate('test/dead');
    expect(status).toBe(202);
    expect(task).toMatchObject({ status: 'failed', error: { type: 'upstream_error' }, cost: { exact: '0.000000' } });
    expect(await countedFailures()).toBe(0);
  });

  it('skips a route that always refuses, and one probe closes its circuit', async () => {
    upstream.script('pair-a', 'no key');
    await generate('test/pair');
    upstream.script('pair-a', 'done');
    const { json: skipped } = await generate('test/pair');
    expect(submitsOf(skipped.id)).toEqual(['pair-b']);
    await service.app.db.query(`update route_health set retry_at = now() - interval '1 second'`);
    await rereadRoutes(service.app);
    const { json: probe } = await generate('test/pair');
    expect(submitsOf(probe.id)).toEqual(['pair-a']);
    const { json: healed } = await generate('test/pair');
    expect(submitsOf(healed.id)).toEqual(['pair-a']);
  });

  it('is refused with 502 and not created while every circuit of the model is open', async () => {
    for (let i = 0; i < 5; i++) await generate('test/dead');
    await service.app.db.query(`update route_health set retry_at = now() + interval '1 hour'`); // not 10 s
    await rereadRoutes(service.app);
    const refused = await generate('test/dead');
    expect(refused).toMatchObject({ status: 502, json: { error: { type: 'upstream_error' } } });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(await available()).toBe('100.000000');
    await service.app.db.query(`update route_health set cause = 'timeout'`);
    await rereadRoutes(service.app);
    expect(await generate('test/dead')).toMatchObject({ status: 504, json: { error: { type: 'timeout' } } });
    await service.app.db.query(`update route_health set retry_at = now() - interval '1 second'`);
    await rereadRoutes(service.app);
    const both = await Promise.all([generate('test/dead', 0), generate('test/dead', 0)]);
    const [admitted, other = 0] = both.map((answer) => answer.status).toSorted();
    expect(admitted).toBe(202);
    expect([502, 504]).toContain(other); // 502 once the probe has failed: its error is another one
    await expect
      .poll(async () => (await service.app.db.query('select 1 from tasks where completed_at is null')).length)
      .toBe(0);
  });

  async function countedFailures(): Promise<number> {
    const rows = await service.app.db.query('select 1 from tasks where account_id = $1 and counts_as_failure', [
      client.account_id,
    ]);
    return rows.length;
  }
});
