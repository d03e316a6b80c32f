import { expect, onTestFinished, test } from 'vitest';
import { rotateKey } from '../../src/accounts/keys.ts';
import { expectExactBooks, startTestApp } from '../helpers/app.ts';
import { testClock } from '../helpers/clock.ts';

test('both keys of a rotation show and use one budget, so that a new key is no new month', async () => {
  const clock = testClock();
  clock.stop(Date.now()); // it stays the same month
  const service = await startTestApp({ worker: false, clock });
  onTestFinished(() => service.stop());
  const { app, url } = service;
  const client = await service.client({ limit: '0.05', credit: '10.00' });
  const rotated = await rotateKey(
    app.db,
    client.key_id,
    { overlap_ms: 86_400_000, limits: false },
    new Date(app.clock.now()),
  );
  const keys = [client.key, rotated?.text ?? ''];
  const get = async (path: string, key: string) =>
    (await fetch(url + path, { headers: { authorization: `Bearer ${key}` } })).json();
  const chat = (key: string, max_tokens: number) =>
    fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'sandbox/chat',
        max_tokens,
        messages: [{ role: 'user', content: `[[tokens ${max_tokens}]]` }],
      }),
    });
  for (const key of keys) expect((await chat(key, 5_000)).status).toBe(200);
  for (const key of keys) {
    await expect
      .poll(() => get('/v1/key', key))
      .toMatchObject({ spent: { amount: '0.04' }, spend_limit: { amount: '0.05' } });
    expect(await get('/v1/balance', key)).toMatchObject({ key: { spent: { amount: '0.04' } } });
  }
  expect((await chat(keys[0] ?? '', 5_000)).status).toBe(200); // with what is left, which both may use
  for (const key of keys) expect((await chat(key, 5_000)).status).toBe(403);
  await expectExactBooks(app);
});
