import { afterAll, beforeAll, expect, test } from 'vitest';
import { listEndpoints } from '../../src/server.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';

/** Faults of other programs between two customers; SECURITY.md has the table, tenants.test.ts the matrix. */

let service: TestApp;
let owner: Client;
let other: Client;
beforeAll(async () => {
  service = await startTestApp();
  [owner, other] = [await service.client(), await service.client()];
});
afterAll(() => service?.stop());

const order = (prompt: string) => ({ model: 'sandbox/image', input: { prompt, width: 16, height: 16 } });

test('CVE-2026-47101 no request with a key makes a key or changes the rights of one', async () => {
  const writes = listEndpoints().filter(({ method, session }) => method !== 'GET' && session === undefined);
  const named = writes.filter(({ path }) => /key|account|limit|balance/.test(path)).map(({ path }) => path);
  expect(named).toEqual(['/upload/v1beta/files/{account}/{id}']); // the account's id, and nothing of it changes
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE']) {
    const { status } = await owner.call(method, '/v1/key', { spend_limit: null, allowed_routes: ['*'] });
    expect(status).toBe(405);
  }
});

test('CVE-2026-30886 the bytes of a file belong to its account, as its record does', async () => {
  const [mine, theirs] = [
    await owner.call('POST', '/v1/generate?wait=60', order('mine')),
    await other.call('POST', '/v1/generate?wait=60', order('theirs')),
  ].map(({ json }) => new URL(json.output[0]?.url ?? ''));
  expect((await fetch(theirs ?? '')).status).toBe(200);
  expect((await fetch(`${theirs?.origin}${theirs?.pathname}${mine?.search}`)).status).toBe(404);
  const headers = { authorization: `Bearer ${owner.key}` };
  expect((await fetch(`${theirs?.origin}${theirs?.pathname}`, { headers })).status).toBe(404);
});

test('CVE-2026-45349 an id in a body or a header is somebody’s own, too', async () => {
  const key = { 'idempotency-key': 'one-and-the-same' };
  const theirs = await other.call('POST', '/v1/generate', order('x'), key);
  const mine = await owner.call('POST', '/v1/generate', order('x'), key);
  expect([mine.status, mine.headers.get('idempotency-replayed')]).toEqual([202, 'false']);
  expect(mine.json.id).not.toBe(theirs.json.id);
  const named = await owner.call('POST', '/v1/generate', { ...order('x'), id: theirs.json.id });
  expect(named.status).toBe(400);
});

test('CVE-2026-31950 whoever waits for a task or looks at one under way must own it', async () => {
  const running = await other.call('POST', '/v1/generate', order('[[delay 5s]]'));
  for (const path of ['', '/cancel', '/links']) {
    const answer = await owner.call(path === '' ? 'GET' : 'POST', `/v1/tasks/${running.json.id}${path}`);
    expect(answer.status).toBe(404);
  }
  expect((await other.call('GET', `/v1/tasks/${running.json.id}`)).json.status).not.toBe('failed');
});
