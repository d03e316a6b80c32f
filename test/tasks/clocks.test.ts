import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { setClock } from '../helpers/wrong-clock.ts';

let test: TestApp;

beforeAll(async () => {
  test = await startTestApp();
});
afterEach(() => setClock(0));
afterAll(() => test.stop());

/** Every time limit of a task is shorter; its run is longer than a machine may stop. */
const ahead_min = 20;

it('a run is not taken for late because the clock of a system steps ahead, and its times are true', async () => {
  const client = await test.client();
  const body = { model: 'sandbox/image', input: { prompt: 'A lighthouse [[delay 12s]]' } };
  const { json } = await client.call('POST', '/v1/generate', body);
  const statusOf = async () => (await client.call('GET', `/v1/tasks/${json.id}`)).json.status;
  await expect.poll(statusOf).toBe('running');
  setClock(ahead_min);
  await expect.poll(statusOf).toMatch(/^(succeeded|failed|canceled)$/); // a busy database answers without a status
  const ended = (await client.call('GET', `/v1/tasks/${json.id}`)).json;
  expect(ended).toMatchObject({ status: 'succeeded', error: null });
  expect(Date.parse(ended.completed_at ?? '') - Date.parse(ended.created_at)).toBeLessThan(60_000);
  await expectExactBooks(test.app);
});
