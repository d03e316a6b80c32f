import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

describe('a task on the sandbox', () => {
  let service: TestApp;
  let client: Client;
  /** Runs for 20 s beside the other tests, for somebody else; waited for as long as one may. */
  let hanging: ReturnType<Client['call']>;

  beforeAll(async () => {
    service = await startTestApp();
    client = await service.client();
    const other = await service.client();
    hanging = other.call('POST', '/v1/generate?wait=300', { model: 'sandbox/image', input: { prompt: '[[hang]] x' } });
  });
  afterAll(() => service.stop());
  afterEach(() => expectExactBooks(service.app));

  const generate = (model: string, input: object, query = '?wait=120') =>
    client.call('POST', `/v1/generate${query}`, { model, input });

  it('makes an image with a hold, a run, a file and a charge', async () => {
    const before = (await client.call('GET', '/v1/balance')).json.available.exact;
    const { status, json: task, text } = await generate('sandbox/image', { prompt: 'a red bicycle' });
    expect(status).toBe(202);
    expect(task).toMatchObject({
      status: 'succeeded',
      model: 'sandbox/image',
      cost: { amount: '0.01', currency: 'USD', exact: '0.010000' },
      estimated_cost: { amount: '0.01', currency: 'USD', exact: '0.010000' },
      error: null,
      metadata: {},
    });
    const [item] = task.output;
    const file = Buffer.from(await (await fetch(item?.url ?? '')).arrayBuffer());
    const { width, height, format } = await sharp(file).metadata();
    expect({ width, height, format, size_bytes: file.length }).toEqual({
      width: item?.width,
      height: item?.height,
      format: 'png',
      size_bytes: item?.size_bytes,
    });
    expect((await client.call('GET', `/v1/tasks/${task.id}`)).text).toBe(text);
    const after = (await client.call('GET', '/v1/balance')).json.available.exact;
    expect(Number(before) - Number(after)).toBeCloseTo(0.01, 6);
  });

  it('makes a video and is charged for its measured length', async () => {
    const { json: task } = await generate('sandbox/video', { prompt: 'waves', duration: 2 });
    expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.040000' } });
    expect(task.output).toMatchObject([{ type: 'video', duration: 2, content_type: 'video/mp4' }]);
    expect(task.started_at).not.toBeNull();
  });

  it('makes audio', async () => {
    const { json: task } = await generate('sandbox/audio', { prompt: 'a short melody', duration: 2 });
    expect(task).toMatchObject({ status: 'succeeded', cost: { exact: '0.020000' } });
    expect(task.output).toMatchObject([{ type: 'audio', duration: 2, content_type: 'audio/wav' }]);
  });

  it('is queued at once, then running, then succeeded', async () => {
    const { json: queued } = await generate('sandbox/image', { prompt: '[[delay 12s]] x' }, '');
    expect(queued).toMatchObject({
      status: 'queued',
      output: [],
      error: null,
      completed_at: null,
      started_at: null,
      cost: { amount: '0.00' },
    });
    const statusNow = async () => (await client.call('GET', `/v1/tasks/${queued.id}`)).json.status;
    await expect.poll(statusNow, { timeout: 120_000, interval: 50 }).toBe('running');
    await expect.poll(statusNow, { timeout: 120_000, interval: 50 }).toBe('succeeded');
  });

  it.each([
    ['[[fail]] x', 'upstream_error', true],
    ['[[moderate]] x', 'content_policy_violation', true],
    ['[[fail before start]] x', 'upstream_error', false],
  ])('fails on %s with %s and costs nothing', async (prompt, type, started) => {
    const before = (await client.call('GET', '/v1/balance')).json.available.exact;
    const { status, json: task } = await generate('sandbox/image', { prompt });
    expect(status).toBe(202);
    expect(task).toMatchObject({ status: 'failed', error: { type }, cost: { exact: '0.000000' }, output: [] });
    expect(task.started_at !== null).toBe(started);
    expect((await client.call('GET', '/v1/balance')).json.available.exact).toBe(before);
  });

  it('goes to the second route of sandbox/failover and fails on sandbox/down', async () => {
    expect((await generate('sandbox/failover', { prompt: 'x' })).json.status).toBe('succeeded');
    for (let i = 0; i < 8; i++) {
      expect(await generate('sandbox/down', { prompt: 'x' })).toMatchObject({
        status: 202,
        json: { status: 'failed', error: { type: 'upstream_error' } },
      });
    }
  });

  it('fails with a hanging run after 20 seconds', async () => {
    const { json: task } = await hanging;
    expect(task).toMatchObject({ status: 'failed', error: { type: 'timeout' } });
    const ran_ms = Date.parse(task.completed_at ?? '') - Date.parse(task.started_at ?? '');
    expect(ran_ms).toBeGreaterThanOrEqual(20_000);
    expect(ran_ms).toBeLessThan(60_000); // by its model, it may run for five minutes
  });

  it('is returned in its current state when the wait ends first', async () => {
    const started_ms = performance.now();
    const { status, json: task } = await generate('sandbox/image', { prompt: '[[delay 1h]] x' }, '?wait=1');
    expect(status).toBe(202);
    expect(['queued', 'running']).toContain(task.status);
    expect(performance.now() - started_ms).toBeGreaterThanOrEqual(1_000);
  });
});
