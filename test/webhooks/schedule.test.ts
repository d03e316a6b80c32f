import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { findAccount, rotateWebhookSecret } from '../../src/accounts/accounts.ts';
import { testBody } from '../../src/tasks/task.ts';
import { resend, sendTest } from '../../src/webhooks/manual.ts';
import { findDelivery } from '../../src/webhooks/delivery.ts';
import { hasSignature } from '../../src/webhooks/sign.ts';
import { expectExactBooks } from '../helpers/app.ts';
import type { Received } from '../helpers/receiver.ts';
import {
  attemptsOf,
  deliveryOf,
  finishTask,
  pass,
  patient_yaml,
  setStage,
  until,
  whileClocksStand,
  type Stage,
} from './setup.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage({ yaml: patient_yaml });
});
afterEach(() => expectExactBooks(stage.app));
afterAll(() => stage.stop());

const minute = 60_000;
const delays_ms = [10_000, minute, 5 * minute, 30 * minute, 120 * minute];

function header(received: Received, name: string): string {
  return String(received.headers[name]);
}

async function accountOf({ app, client }: Stage) {
  const account = await findAccount(app.db, client.account_id);
  if (!account) throw new Error('no account');
  return account;
}

test('a finished task is delivered with the headers of the specification and the exact bytes of GET', async () => {
  const { client, receiver, app } = stage;
  const id = await finishTask(client, `${receiver.url}/first?token=1`);
  const received = await receiver.nth('/first', 1);
  expect(received.path).toBe('/first?token=1');
  expect(header(received, 'content-type')).toBe('application/json');
  expect(header(received, 'x-service-event')).toBe('task.failed');
  const account = await accountOf(stage);
  expect(hasSignature(received.body, header(received, 'x-service-signature'), account.webhook_secret)).toBe(true);
  expect(
    new Webhook(account.webhook_secret).verify(received.body, received.headers as Record<string, string>),
  ).toMatchObject({ id });
  const got = await client.call('GET', `/v1/tasks/${id}`);
  expect(received.body.toString()).toBe(got.text);
  const delivery = await deliveryOf(app, client, id);
  expect(header(received, 'x-service-delivery')).toBe(delivery.id);
  expect(header(received, 'webhook-id')).toBe(delivery.id);
  const [attempt] = await attemptsOf(app, delivery, 1);
  expect(attempt).toMatchObject({ number: 1, status: 204, error: null });
  expect(await deliveryOf(app, client, id)).toMatchObject({ state: 'delivered', attempts: 1, next_at: null });
});

test('a success is delivered as task.succeeded with its output', async () => {
  const { client, receiver } = stage;
  const input = { prompt: 'x', width: 64, height: 64 };
  await client.call('POST', '/v1/generate?wait=120', {
    model: 'sandbox/image',
    input,
    webhook_url: `${receiver.url}/good`,
  });
  const received = await receiver.nth('/good', 1);
  expect(header(received, 'x-service-event')).toBe('task.succeeded');
  expect(JSON.parse(received.body.toString())).toMatchObject({
    status: 'succeeded',
    output: [{ type: 'image', width: 64 }],
  });
});

test('a task without a webhook_url has no delivery', async () => {
  const { client, app } = stage;
  const input = { prompt: '[[fail]] x' };
  const { json } = await client.call('POST', '/v1/generate?wait=120', { model: 'sandbox/image', input });
  expect(json.status).toBe('failed');
  await expect(deliveryOf(app, client, json.id)).rejects.toThrow('has no delivery');
});

test('a receiver that fails gets the same bytes again after 10 s, 1 min, 5 min, 30 min and 2 h, and then the delivery is dropped', () =>
  whileClocksStand(stage, async () => {
    const { client, receiver, app } = stage;
    receiver.answer('/broken', 500);
    const id = await finishTask(client, `${receiver.url}/broken`);
    await receiver.nth('/broken', 1);
    const delivery = await deliveryOf(app, client, id);
    for (const [i, delay_ms] of delays_ms.entries()) {
      const attempt = (await attemptsOf(app, delivery, i + 1)).at(-1);
      const { next_at, state } = await deliveryOf(app, client, id);
      expect(state).toBe('waiting');
      expect((next_at?.getTime() ?? 0) - (attempt?.ended_at.getTime() ?? 0)).toBe(delay_ms);
      await pass(stage, delay_ms - 1_000);
      await new Promise((resolve) => setTimeout(resolve, 100)); // time enough for one that came too early
      expect(await attemptsOf(app, delivery, 0)).toHaveLength(i + 1);
      await pass(stage, 1_000);
      await receiver.nth('/broken', i + 2);
    }
    await attemptsOf(app, delivery, 6);
    expect(await deliveryOf(app, client, id)).toMatchObject({ state: 'dropped', attempts: 6, next_at: null });
    await pass(stage, 24 * 60 * minute);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const sent = receiver.received.filter((one) => one.path === '/broken');
    expect(sent).toHaveLength(6);
    expect(new Set(sent.map((one) => one.body.toString())).size).toBe(1);
    expect(sent[0]?.body.toString()).toBe((await client.call('GET', `/v1/tasks/${id}`)).text);
    expect(new Set(sent.map((one) => header(one, 'webhook-id'))).size).toBe(1);
  }));

test('every answer but 2xx is a failure, redirects are not followed, and the answer is stored for people', async () => {
  const { client, receiver, app } = stage;
  for (const status of [199, 300, 301, 307, 400, 404, 410, 429, 500, 503]) {
    if (status === 199) continue; // no server can send it as a final answer
    receiver.answer(`/status/${status}`, status);
    const id = await finishTask(client, `${receiver.url}/status/${status}`);
    await receiver.nth(`/status/${status}`, 1);
    const delivery = await deliveryOf(app, client, id);
    const [attempt] = await attemptsOf(app, delivery, 1);
    expect(attempt).toMatchObject({ status, error: null, answer: `answer ${status}` });
    expect(await deliveryOf(app, client, id)).toMatchObject({ state: 'waiting' });
  }
});

test('200, 201 and 299 are success, a cut connection is a failure with its reason, and an endless answer is read to 16 kB', async () => {
  const { client, receiver, app } = stage;
  for (const status of [200, 201, 299]) {
    receiver.answer(`/fine/${status}`, status);
    const id = await finishTask(client, `${receiver.url}/fine/${status}`);
    await receiver.nth(`/fine/${status}`, 1);
    await attemptsOf(app, await deliveryOf(app, client, id), 1);
    expect((await deliveryOf(app, client, id)).state).toBe('delivered');
  }
  receiver.answer('/cut', 'cut');
  const cut = await finishTask(client, `${receiver.url}/cut`);
  await receiver.nth('/cut', 1);
  const [attempt] = await attemptsOf(app, await deliveryOf(app, client, cut), 1);
  expect(attempt).toMatchObject({ status: null, answer: null });
  expect(attempt?.error).toMatch(/connection/i);
  receiver.answer('/endless', 'endless');
  const endless = await finishTask(client, `${receiver.url}/endless`);
  await receiver.nth('/endless', 1);
  const [long] = await attemptsOf(app, await deliveryOf(app, client, endless), 1);
  expect(long).toMatchObject({ status: 200, answer: 'x'.repeat(2_048) });
  expect(long?.duration_ms).toBeLessThan(120_000); // of five minutes
  await until('the endless answer is let go', () => receiver.open('/endless') === 0);
});

test('a delivery that is sent again has the same bytes at once, whatever its state, and its schedule is unchanged', async () => {
  const { client, receiver, app } = stage;
  const id = await finishTask(client, `${receiver.url}/again`);
  await receiver.nth('/again', 1);
  const delivery = await deliveryOf(app, client, id);
  await attemptsOf(app, delivery, 1);
  expect(await resend(app, delivery)).toBe('sent');
  const second = await receiver.nth('/again', 2);
  expect(second.body.equals((await receiver.nth('/again', 1)).body)).toBe(true);
  await attemptsOf(app, delivery, 2);
  receiver.answer('/again', 500);
  expect(await resend(app, delivery)).toBe('sent');
  await attemptsOf(app, delivery, 3);
  expect(await deliveryOf(app, client, id)).toMatchObject({ state: 'delivered', attempts: 3 }); // it had arrived

  receiver.answer('/waiting', 500);
  const other = await finishTask(client, `${receiver.url}/waiting`);
  await receiver.nth('/waiting', 1);
  const waiting = await deliveryOf(app, client, other);
  await attemptsOf(app, waiting, 1);
  expect(await resend(app, waiting)).toBe('sent');
  const [, manual] = await attemptsOf(app, waiting, 2);
  const after = await deliveryOf(app, client, other);
  expect(after.state).toBe('waiting');
  expect((after.next_at?.getTime() ?? 0) - (manual?.ended_at.getTime() ?? 0)).toBe(10_000); // still the first delay
  expect(await resend(app, { ...waiting, id: 'dlv_none' })).toBe('missing');
});

test('a delivery that is in flight is not sent a second time by hand', async () => {
  const { client, receiver, app } = stage;
  receiver.answer('/busy', 'hang');
  const id = await finishTask(client, `${receiver.url}/busy`);
  await receiver.nth('/busy', 1);
  const delivery = await deliveryOf(app, client, id);
  expect(await resend(app, delivery)).toBe('busy');
  receiver.release('/busy', 204);
  await attemptsOf(app, delivery, 1);
});

test('a test payload is a signed finished task without output and is sent once', async () => {
  const { receiver, app, clock } = stage;
  receiver.answer('/test', 503);
  const account = await accountOf(stage);
  const body = testBody('USD', new Date(clock.now()));
  const sent = await sendTest(app, account, `${receiver.url}/test`, body);
  expect(sent).toMatchObject({ status: 503, delivered: false, answer: 'answer 503' });
  const received = await receiver.nth('/test', 1);
  expect(JSON.parse(received.body.toString())).toMatchObject({ status: 'succeeded', output: [], error: null });
  expect(hasSignature(received.body, header(received, 'x-service-signature'), account.webhook_secret)).toBe(true);
  expect(await findDelivery(app.db, sent.id)).toMatchObject({ state: 'dropped', attempts: 1, task_id: null });
  receiver.answer('/test', 204);
  expect(await sendTest(app, account, `${receiver.url}/test`, body)).toMatchObject({ delivered: true });
});

test('a new secret signs from the next attempt on, and the standard signature carries both for 24 hours', async () => {
  const { client, receiver, app, clock } = stage;
  const { webhook_secret: old } = await accountOf(stage);
  const fresh = (await rotateWebhookSecret(app.db, client.account_id, new Date(clock.now()))) ?? '';
  expect(fresh).not.toBe(old);
  await finishTask(client, `${receiver.url}/rotated`);
  const during = await receiver.nth('/rotated', 1);
  expect(hasSignature(during.body, header(during, 'x-service-signature'), fresh)).toBe(true);
  expect(hasSignature(during.body, header(during, 'x-service-signature'), old)).toBe(false);
  expect(header(during, 'webhook-signature').split(' ')).toHaveLength(2);
  await pass(stage, 24 * 60 * minute);
  await finishTask(client, `${receiver.url}/rotated`);
  const later = await receiver.nth('/rotated', 2);
  expect(header(later, 'webhook-signature').split(' ')).toHaveLength(1);
  expect(hasSignature(later.body, header(later, 'x-service-signature'), fresh)).toBe(true);
});
