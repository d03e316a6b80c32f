import { afterEach, describe, expect, test } from 'vitest';
import { healthEndpoints, type Check } from '../../src/api/health.ts';
import { type Harness, startHarness, type TestApp } from './harness.ts';

let harness: Harness | undefined;
let now_ms = 0;

async function start(checks: Record<string, Check<TestApp>>): Promise<Harness> {
  now_ms = 0;
  harness = await startHarness(healthEndpoints<TestApp>({ checks, elapsed_ms: () => now_ms }));
  return harness;
}

afterEach(() => harness?.close());

describe('/livez', () => {
  test('is ok without a key, even when nothing else is', async () => {
    const { send } = await start({ database: () => Promise.reject(new Error('gone')) });
    const answer = await send('GET', '/livez', { key: null });
    expect([answer.status, answer.json()]).toEqual([200, { status: 'ok' }]);
  });
});

describe('/readyz', () => {
  test('returns 200 with the name of each check', async () => {
    const { send } = await start({ database: async () => 'ok', migrations: () => 'ok' });
    const answer = await send('GET', '/readyz', { key: null });
    expect(answer.status).toBe(200);
    expect(answer.json()).toEqual({ status: 'ready', checks: { database: 'ok', migrations: 'ok' } });
    expect(answer.headers['cache-control']).toBe('no-store');
  });

  test('returns 503 with the check that failed, in the format of an error, without details', async () => {
    const { send } = await start({
      database: () => Promise.reject(new Error('password of postgres is secret')),
      migrations: () => 'pending',
    });
    const answer = await send('GET', '/readyz', { key: null });
    expect(answer.status).toBe(503);
    expect(answer.text).not.toContain('secret');
    expect(answer.json()).toEqual({
      error: {
        type: 'upstream_error',
        message: 'Not ready: database, migrations.',
        request_id: answer.headers['x-request-id'],
        checks: { database: 'failed', migrations: 'pending' },
      },
    });
  });

  test('returns 503 when a check does not answer', async () => {
    const { send } = await start({ database: () => new Promise(() => {}), migrations: () => 'ok' });
    const answer = await send('GET', '/readyz', { key: null });
    expect(answer.status).toBe(503);
    expect(answer.error()['checks']).toEqual({ database: 'no answer within 2 s', migrations: 'ok' });
  });

  test('runs its checks at most once a second, and again after that', async () => {
    let requests = 0;
    let state = 'ok';
    const { send } = await start({
      database: () => {
        requests += 1;
        return state;
      },
    });
    await Promise.all(Array.from({ length: 20 }, () => send('GET', '/readyz', { key: null })));
    expect(requests).toBe(1);
    state = 'gone';
    now_ms = 999;
    expect((await send('GET', '/readyz', { key: null })).status).toBe(200);
    now_ms = 1_000;
    expect((await send('GET', '/readyz', { key: null })).status).toBe(503);
    expect(requests).toBe(2);
  });

  test('returns 503 at once when the service is about to stop, while everything else is still served', async () => {
    const closing = await start({ database: () => 'ok' });
    expect((await closing.send('GET', '/readyz', { key: null })).status).toBe(200);
    // Long enough for two requests, also where the machine stops in the middle of them.
    const closed = closing.pipeline.close({ announce_ms: 15_000, grace_ms: 0 });
    const answer = await closing.send('GET', '/readyz', { key: null });
    expect(answer.status).toBe(503);
    expect(answer.error()).toMatchObject({ message: 'Not ready: draining.', checks: { draining: expect.any(String) } });
    expect((await closing.send('GET', '/livez', { key: null })).status).toBe(200);
    await closed;
    await expect(closing.send('GET', '/livez', { key: null })).rejects.toThrow(/ECONNREFUSED|closed/);
  });
});
