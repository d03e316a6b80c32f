import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventsUrl, readToken } from '../../src/tasks/event-token.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import type { Adapter } from '../../src/providers/provider.ts';
import { newId } from '../../src/lib/ids.ts';
import { sampleImage } from '../storage/samples.ts';
import { limits, mediaModel } from '../helpers/catalog.ts';

const models = `
providers: { slow: { adapter: slow } }
models:${mediaModel({
  id: 'test/slow',
  routes: ['{ provider: slow, upstream_model: a, poll: { max: 1h }, timeout: { start: 1h, total: 2h } }'],
})}
`;
const yaml = `version: 1\n${limits()}\n${models}`;
const public_url = 'https://gateway.example.com/base';

let service: TestApp;
let client: Client;
let local: string;
let png: Buffer;
const urls = new Map<string, string>();
const polls: { task_id: string; at_ms: number }[] = [];
let over = false;
const hour_ms = 3_600_000;

/** Polled every hour, and done as soon as the test says so. */
const slow: Adapter = {
  serves: () => true,
  open: () => ({
    start: async ({ task_id, events_url }) => {
      if (events_url !== undefined) urls.set(task_id, events_url);
      return { phase: 'running', ref: 'a', poll_after_ms: hour_ms };
    },
    cancel: async () => 'stopped',
    poll: async ({ task_id }) => {
      polls.push({ task_id, at_ms: performance.now() });
      return over ? { phase: 'done', files: [{ bytes: png }] } : { phase: 'running', ref: 'a', poll_after_ms: hour_ms };
    },
  }),
};

beforeAll(async () => {
  png = await sampleImage('png', 8, 8);
  service = await startTestApp({ yaml, adapters: { slow } });
  local = service.url;
  await service.configure(`${yaml}server: { base_url: "${public_url}" }\n`);
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

async function start(): Promise<{ id: string; path: string }> {
  const { json } = await client.call('POST', '/v1/generate', { model: 'test/slow', input: {} });
  await expect.poll(() => urls.get(json.id)).toBeDefined();
  await expect
    .poll(async () => (await client.call('GET', `/v1/tasks/${json.id}`)).json.status, { timeout: 120_000 })
    .toBe('running');
  return { id: json.id, path: (urls.get(json.id) ?? '').replace(public_url, '') };
}

const tell = (path: string, init: RequestInit = {}) =>
  fetch(local + path, { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}', ...init });
const pollsOf = (id: string) => polls.filter(({ task_id }) => task_id === id);

/** Nothing comes any more after a time in which a true call would be followed by a poll: that takes a second at most. */
const quiet_ms = 1_500;

it('an upstream that calls back is polled at once instead of after an hour', async () => {
  const { id, path } = await start();
  expect(urls.get(id)).toMatch(/^https:\/\/gateway\.example\.com\/base\/events\/acct_\w+\.task_\w+\.1\.[\w-]{43}$/);
  over = true;
  const answer = await tell(path);
  expect([answer.status, await answer.text()]).toEqual([200, '{}']);
  await expect.poll(async () => (await client.call('GET', `/v1/tasks/${id}`)).json.status).toBe('succeeded');
  expect(pollsOf(id)).toHaveLength(1);
  over = false;
});

it('an upstream that calls back often is polled at most once a second, and once more for the last call', async () => {
  const { id, path } = await start();
  const begun_ms = performance.now();
  while (performance.now() - begun_ms < 1_500 || pollsOf(id).length < 2)
    await Promise.all([tell(path), tell(path), tell(path)]);
  await sleep(quiet_ms);
  await expect.poll(() => performance.now() - (pollsOf(id).at(-1)?.at_ms ?? 0)).toBeGreaterThan(quiet_ms);
  const times = pollsOf(id).map(({ at_ms }) => at_ms);
  // One at once, one a second, one for the last call; a busy machine may begin with one late, and with the next in time.
  const lasted_ms = (times.at(-1) ?? 0) - (times[0] ?? 0);
  expect(times.length).toBeLessThanOrEqual(2 + lasted_ms / 1_000);
});

describe('a callback of an upstream', () => {
  it('is ignored in its body, whatever it is', async () => {
    const { id, path } = await start();
    const headers = { 'content-type': 'text/plain', 'content-encoding': 'gzip' };
    for (const body of ['{"status":"succeeded","output":"x"}', '{', 'a'.repeat(3_000_000), '']) {
      const answer = await tell(path, { body, headers });
      expect([answer.status, await answer.text()]).toEqual([200, '{}']);
    }
    await expect.poll(() => pollsOf(id).length).toBeGreaterThan(0);
    expect((await client.call('GET', `/v1/tasks/${id}`)).json.status).toBe('running');
  });

  it('is ignored with a token that is not ours', async () => {
    const { id, path } = await start();
    const token = path.replace('/events/', '');
    const [account_id = '', , , signature = ''] = token.split('.');
    const wrong = [
      'x',
      '%00',
      token.slice(0, -1) + (token.endsWith('A') ? 'B' : 'A'),
      token.toUpperCase(),
      `${token}.1`,
      token.replace(`${id}.1.`, `${id}.2.`),
      token.replace(`${id}.1.`, `${id}.01.`),
      token.replace(id, newId('task')),
      token.replace(account_id, newId('acct')),
      `${account_id}.${id}.1.${signature.replaceAll(/./g, 'A')}`,
    ];
    for (const each of wrong) {
      expect(readToken(service.app.secret, each)).toBeUndefined();
      const answer = await tell(`/events/${each}`);
      expect([answer.status, await answer.text()]).toEqual([200, '{}']);
    }
    await sleep(quiet_ms);
    expect(pollsOf(id)).toEqual([]);
  });

  it('is refused with another method', async () => {
    const { path } = await start();
    const answer = await fetch(local + path);
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST']);
  });

  it('is ignored for a task that is final', async () => {
    const { id, path } = await start();
    const canceled = await client.call('POST', `/v1/tasks/${id}/cancel`);
    expect(canceled.json.status).toBe('failed');
    over = true;
    await tell(path);
    await sleep(quiet_ms);
    expect(pollsOf(id)).toEqual([]);
    expect((await client.call('GET', `/v1/tasks/${id}`)).text).toBe(canceled.text);
    over = false;
  });
});

describe('the callback address', () => {
  const run = { account_id: newId('acct'), task_id: newId('task'), number: 3 };
  const secret = 'a secret of sixteen';

  it.each([
    'http://example.com',
    'https://localhost',
    'https://127.0.0.1:8080',
    'https://10.0.0.1',
    'https://[::1]',
    'http://127.0.0.1',
  ])('is not sent to an upstream when it cannot be reached: %s', (base_url) => {
    expect(eventsUrl(secret, base_url, run)).toBeUndefined();
  });

  it('names the run', () => {
    const url = eventsUrl(secret, 'https://example.com', run) ?? '';
    expect(readToken(secret, url.replace('https://example.com/events/', ''))).toEqual(run);
    expect(readToken(`${secret}!`, url.replace('https://example.com/events/', ''))).toBeUndefined();
  });
});
