// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadTask } from '../../src/tasks/task.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { limits, mediaModel, optional_prompt } from '../helpers/catalog.ts';
import { elapse } from '../helpers/clock.ts';

const models = [
  mediaModel({ id: 'test/open', schema: optional_prompt, price: '0.04', routes: ['{ id: only, provider: sandbox }'] }),
  mediaModel({ id: 'test/free', schema: optional_prompt, price: [], routes: ['{ provider: sandbox }'] }),
];

const yaml = `
version: 1
${limits()}
models:${models.join('')}
`;

describe('creating a task', () => {
  let service: TestApp;
  let client: Client;

  beforeAll(async () => {
    service = await startTestApp({ yaml });
  });
  afterAll(() => service.stop());
  beforeEach(async () => {
    await service.app.db.query('delete from route_health');
    elapse(1_001);
    client = await service.client();
  });
  afterEach(() => expectExactBooks(service.app));

  const body = { model: 'test/open', input: { prompt: 'x' } };

  async function openRoute(retry_in_ms: number): Promise<void> {
    await service.app.db.query(
      `insert into route_health (route, cause, openings, opened_at, retry_at) values ('test/open#only', 'upstream_error', 1, $1, $2)`,
      [new Date(), new Date(Date.now() + retry_in_ms)],
    );
    elapse(1_001);
  }

  it('leaves the probe of a half-open route unused when the caller cannot pay', async () => {
    const poor = await service.client({ credit: '0.01' });
    await openRoute(-1);
    for (let i = 0; i < 3; i++) expect((await poor.call('POST', '/v1/generate', body)).status).toBe(402);
    const { status, json } = await client.call('POST', '/v1/generate?wait=120', body);
    expect({ status, state: json.status }).toEqual({ status: 202, state: 'succeeded' });
    expect(await service.app.db.query('select 1 from route_health')).toEqual([]); // healed
  });

  it('returns the task of a repeated Idempotency-Key while no route is usable', async () => {
    const headers = { 'idempotency-key': 'k1' };
    const first = await client.call('POST', '/v1/generate?wait=120', body, headers);
    await openRoute(60_000);
    const again = await client.call('POST', '/v1/generate?wait=120', body, headers);
    expect(again).toMatchObject({ status: 202, text: first.text });
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect((await client.call('POST', '/v1/generate', { ...body, metadata: { a: 'b' } }, headers)).status).toBe(422);
    expect((await client.call('POST', '/v1/generate', body)).status).toBe(502);
    expect((await client.call('POST', '/v1/generate', body, { 'idempotency-key': 'k2' })).status).toBe(502);
  });

  it('does not wait for a task that is already final', async () => {
    const headers = { 'idempotency-key': 'k1' };
    await client.call('POST', '/v1/generate?wait=120', body, headers);
    const begun_ms = performance.now();
    await client.call('POST', '/v1/generate?wait=300', body, headers);
    expect(performance.now() - begun_ms).toBeLessThan(120_000);
  });

  it('needs no money for a model without a price', async () => {
    const broke = await service.client({ credit: '0' });
    const { status, json } = await broke.call('POST', '/v1/generate?wait=120', { ...body, model: 'test/free' });
    expect(status).toBe(202);
    expect(json).toMatchObject({ status: 'succeeded', cost: { amount: '0.00', exact: '0.000000' } });
  });

  it('stores its input apart: tasks are read and listed without it, which may have megabytes', async () => {
    const { json } = await client.call('POST', '/v1/generate', { ...body, input: { prompt: 'x'.repeat(1_000_000) } });
    const task = await loadTask(service.app.db, { account_id: client.account_id, task_id: json.id });
    expect(JSON.stringify({ ...task, estimate: 0, cost: 0 }).length).toBeLessThan(2_000);
  });
});
