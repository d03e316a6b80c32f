import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { makePipeline, type Pipeline } from '../../src/http/pipeline.ts';
import { Semaphore } from '../../src/concurrency/semaphore.ts';
import type { App } from '../../src/app.ts';
import { memoryWindows } from '../../src/limits/window.ts';
import { windowsOfOneProcess } from '../helpers/windows.ts';
import { listEndpoints } from '../../src/server.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { setStage, type Stage } from './setup.ts';
import { chunk, completionsStream } from './streams.ts';

/** A stream may go on for minutes: what was asked is done with at its first content. */

let stage: Stage;
let pipeline: Pipeline;
let url: string;

beforeAll(async () => {
  stage = await setStage();
  const { app } = stage.test;
  pipeline = makePipeline<App>({
    app,
    endpoints: listEndpoints(),
    authenticate: (headers) => app.authenticator.authenticate(headers),
    windows: windowsOfOneProcess(),
    address_windows: memoryWindows(),
    limits: () => ({ generate: 60, chat: 600, other: 600 }),
    cors_origins: () => [],
    trusted_proxies: () => [],
    log: app.log,
    body_memory: new Semaphore({ name: 'x', unit: 'bytes', bound: 500_000, key_bound: 'fair' }), // one account has half
    timeouts: { body_memory_ms: 300 },
  });
  const { port } = await pipeline.listen({ host: '127.0.0.1', port: 0 });
  url = `http://127.0.0.1:${port}/v1/chat/completions`;
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(async () => {
  await pipeline.close({ announce_ms: 0, grace_ms: 0 });
  await stage.stop();
});

function ask(signal?: AbortSignal): Promise<Response> {
  const messages = [{ role: 'user', content: 'x'.repeat(200_000) }];
  return fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'acme/oai', stream: true, max_tokens: 10, messages }),
    ...(signal && { signal }),
  });
}

test('a stream that has begun takes no memory from others, and one that has not begun does', async () => {
  const leave = new AbortController();
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'first' })], then: 'hang' });
  const first = await ask(leave.signal);
  expect(first.status).toBe(200);
  stage.upstream.script('gpt-x', 'hang');
  const silent = ask(leave.signal).catch(() => 'left');
  await expect.poll(() => stage.upstream.open()).toBe(2);
  expect((await ask()).status).toBe(429);
  leave.abort();
  await silent;
  await expect.poll(() => stage.upstream.open()).toBe(1); // whose first byte is waited for, without the body
  stage.upstream.script('gpt-x', { stream: completionsStream(['hello']) });
  const last = await ask();
  expect(last.status).toBe(200);
  expect(await last.text()).toContain('[DONE]');
  stage.upstream.letGo();
});
