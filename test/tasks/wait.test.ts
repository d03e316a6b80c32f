import { afterAll, beforeAll, expect, it } from 'vitest';
import { openListener } from '../../src/db/notify.ts';
import { connectionTo } from '../../src/db/servers.ts';
import { finish } from '../../src/tasks/finish.ts';
import { makeUntilFinal, type UntilFinal } from '../../src/tasks/wait.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { startMuteProxy, type MuteProxy } from '../helpers/mute-proxy.ts';

/** Waits of a node whose LISTEN connection is refused, while its other connections work. */

let service: TestApp;
let proxy: MuteProxy;
let untilFinal: UntilFinal;
const closers: (() => unknown)[] = [];
const { signal } = new AbortController();

beforeAll(async () => {
  service = await startTestApp({ worker: false });
  proxy = await startMuteProxy(service.app.config.database_url ?? '');
  proxy.refuse(true);
  const listener = openListener({ ...service.app.db, connection: connectionTo(proxy.url) });
  const onStop = (close: () => void) => void closers.unshift(close);
  closers.push(() => listener.close());
  untilFinal = makeUntilFinal({ db: service.app.db, listener, onStop });
});
afterAll(async () => {
  await expectExactBooks(service.app);
  for (const close of closers) await close();
  await service.stop();
  await proxy.stop();
});

it('a wait ends in its time, be it the first of the node', async () => {
  const begun_at_ms = performance.now();
  await untilFinal({ account_id: 'acct_none', task_id: 'task_none' }, 50, signal);
  expect(performance.now() - begun_at_ms).toBeGreaterThanOrEqual(49);
});

it('a wait ends with its task', async () => {
  const client = await service.client();
  const { json } = await client.call('POST', '/v1/generate', { model: 'sandbox/image', input: { prompt: 'x' } });
  const ref = { account_id: client.account_id, task_id: json.id };
  const waited = untilFinal(ref, 600_000, signal);
  const ending = { status: 'failed', type: 'internal_error', message: 'x', reason: 'x', counts: false } as const;
  expect(await finish(service.app, ref, { ...ending, attempt: 'canceled' })).toBe('finished');
  await waited;
});
