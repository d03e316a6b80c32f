// isolated: it replaces a global of its process
import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { findAccount, rotateWebhookSecret } from '../../src/accounts/accounts.ts';
import { testBody } from '../../src/tasks/task.ts';
import { resend, sendTest } from '../../src/webhooks/manual.ts';
import { hasSignature } from '../../src/webhooks/sign.ts';
import { commandsBeside, medley } from '../cli/medley.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { startDeafHost } from '../helpers/deaf.ts';
import { startReceiver, type Answer, type Received, type Receiver } from '../helpers/receiver.ts';
import {
  attemptsOf,
  deliveryOf,
  finishTask,
  pass,
  patient_yaml,
  setStage,
  until,
  whileClocksStand,
  yaml,
  type Stage,
} from '../webhooks/setup.ts';
import { freePort } from '../helpers/free-port.ts';

/** Specification 6 and what is decided about webhooks: real deliveries to a real receiver. */

const second = 1_000;
const day = 86_400_000;

let real: Stage; // its clock is never moved
let stage: Stage; // its clock is moved, and with it all deliveries that wait

/** The addresses that names resolve to. */
const names = new Map<string, () => string[]>();

const resolve = async (name: string): Promise<string[]> => names.get(name)?.() ?? [];

beforeAll(async () => {
  [real, stage] = await Promise.all([setStage({ resolve }), setStage({ yaml: patient_yaml })]);
});
afterAll(async () => {
  for (const { app, stop } of [real, stage]) {
    await expectExactBooks(app);
    await stop();
  }
});

let paths = 0;

type Delivered = { task: string; path: string; received: Received };

/** Ends a task whose webhook goes to a path of its own, and waits until it is there. */
async function tell(at: Stage, answer: Answer = 204, client = at.client): Promise<Delivered> {
  const path = `/${++paths}`;
  at.receiver.answer(path, answer);
  const task = await finishTask(client, at.receiver.url + path);
  return { task, path, received: await at.receiver.nth(path, 1) };
}

/** Ends a task with output: its webhook and the task of GET. */
async function tellSuccess(at: Stage, metadata: Record<string, string> = {}): Promise<Delivered> {
  const path = `/${++paths}`;
  const body = { model: 'sandbox/image', input: { prompt: 'x', width: 64, height: 64 }, metadata };
  const { json } = await at.client.call('POST', '/v1/generate', { ...body, webhook_url: at.receiver.url + path });
  return { task: json.id, path, received: await at.receiver.nth(path, 1) };
}

/** The attempts of a task's delivery as soon as there are so many. */
async function listed(at: Stage, task: string, count = 1, client = at.client) {
  return attemptsOf(at.app, await deliveryOf(at.app, client, task), count);
}

/** Waits until a task whose webhook nobody receives is final. */
async function final(at: Stage, task: string): Promise<void> {
  const there = () => deliveryOf(at.app, at.client, task).catch(() => false);
  await vi.waitUntil(there, { interval: 20, timeout: 120_000 });
}

/** Sends a delivery again, and answers what came. */
async function again(at: Stage, { task, path }: Delivered, count = 2): Promise<Received> {
  await listed(at, task, count - 1);
  expect(await resend(at.app, await deliveryOf(at.app, at.client, task))).toBe('sent');
  return at.receiver.nth(path, count);
}

const header = ({ headers }: Received, name: string) => String(headers[name]);
const times = (at: Stage, path: string) => at.receiver.received.filter((one) => one.path === path).length;
const hmac = (key: string | Buffer, body: Buffer) => createHmac('sha256', key).update(body).digest('hex');

async function accountOf(at: Stage, client = at.client) {
  const account = await findAccount(at.app.db, client.account_id);
  if (!account) throw new Error('no account');
  return account;
}
const secretOf = async (at: Stage, client = at.client) => (await accountOf(at, client)).webhook_secret;

it('S2.7-3 an account has one webhook secret of its own, which signs its webhooks', async () => {
  const clients = [await real.test.client(), await real.test.client()];
  for (const [i, client] of clients.entries()) {
    for (const { received } of [await tell(real, 204, client), await tell(real, 204, client)]) {
      const signed = clients.map(async (each) => hmac(await secretOf(real, each), received.body));
      const own = (await Promise.all(signed)).map((hex) => header(received, 'x-service-signature') === `sha256=${hex}`);
      expect(own).toEqual([i === 0, i === 1]);
    }
  }
});

it('S5-8 webhook requests are authenticated by signature, not by API key', async () => {
  const { received } = await tell(real);
  expect(header(received, 'x-service-signature')).toMatch(/^sha256=/);
  expect(received.headers).not.toHaveProperty('authorization');
  expect(received.headers).not.toHaveProperty('x-api-key');
  const text = JSON.stringify(received.headers) + received.body.toString();
  for (const secret of [real.client.key, await secretOf(real)]) expect(text).not.toContain(secret);
});

it('S5-9 the webhook secret is separate from API keys: it opens nothing, and no response to a key shows it', async () => {
  const secret = await secretOf(real);
  for (const headers of [{ authorization: `Bearer ${secret}` }, { authorization: undefined, 'x-api-key': secret }]) {
    const plain_headers = Object.fromEntries(
      Object.entries(headers).flatMap(([k, v]) => (v === undefined ? [] : [[k, v]])),
    );
    expect((await fetch(`${real.test.url}/v1/balance`, { headers: plain_headers })).status).toBe(401);
  }
  for (const path of ['/v1/key', '/v1/balance', '/v1/tasks'])
    expect((await real.client.call('GET', path)).text).not.toContain('whsec_');
});

it('S6-1 the only webhook events are those of finished tasks', async () => {
  const { client, receiver } = real;
  const body = { model: 'sandbox/image', input: { prompt: '[[hang]] x' }, webhook_url: `${receiver.url}/only` };
  expect((await client.call('POST', '/v1/estimate', body)).status).toBe(200);
  const { json: task } = await client.call('POST', '/v1/generate', body);
  const status = async () => (await client.call('GET', `/v1/tasks/${task.id}`)).json.status;
  await vi.waitUntil(async () => (await status()) === 'running', { interval: 20, timeout: 120_000 });
  await expect.poll(async () => (await client.call('POST', `/v1/tasks/${task.id}/cancel`)).status).toBe(200);
  expect(header(await receiver.nth('/only', 1), 'x-service-event')).toBe('task.failed');
  await listed(real, task.id);
  expect(times(real, '/only')).toBe(1);
});

it('S6.1-1 a webhook is sent only if webhook_url was set', async () => {
  const { client, app } = real;
  const input = { prompt: '[[fail]] x' };
  const { json: silent } = await client.call('POST', '/v1/generate?wait=120', { model: 'sandbox/image', input });
  expect(silent.status).toBe('failed');
  await expect(deliveryOf(app, client, silent.id)).rejects.toThrow('has no delivery');
  expect((await tell(real)).received.body.toString()).toContain('"failed"');
});

it('S6.1-2 a webhook is an HTTP POST to the webhook_url', async () => {
  const task = await finishTask(real.client, `${real.receiver.url}/hook?token=a%20b`);
  expect(await real.receiver.nth('/hook', 1)).toMatchObject({ method: 'POST', path: '/hook?token=a%20b' });
  await listed(real, task);
});

it('S6.1-3 the body of a webhook is byte for byte the response of GET /v1/tasks/{id}', async () => {
  for (const { task, received } of [await tell(real), await tellSuccess(real)])
    expect(received.body.toString()).toBe((await real.client.call('GET', `/v1/tasks/${task}`)).text);
});

it('S6.1-4 task.succeeded is sent when the task becomes succeeded', async () => {
  const { received } = await tellSuccess(real);
  expect(header(received, 'x-service-event')).toBe('task.succeeded');
  expect(JSON.parse(received.body.toString())).toMatchObject({ status: 'succeeded', output: [{ type: 'image' }] });
});

it('S6.1-5 task.failed is sent when the task becomes failed', async () => {
  const { received } = await tell(real);
  expect(header(received, 'x-service-event')).toBe('task.failed');
  expect(JSON.parse(received.body.toString())).toMatchObject({ status: 'failed', error: { type: 'upstream_error' } });
});

it('S6.2-1 the Content-Type of a webhook is application/json', async () => {
  expect(header((await tell(real)).received, 'content-type')).toBe('application/json');
});

it('S6.2-2 x-service-event is the name of the event', async () => {
  expect((await tell(real)).received.headers).toMatchObject({ 'x-service-event': 'task.failed' });
});

it('S6.2-3 x-service-signature is sha256= and lowercase hex', async () => {
  expect(header((await tell(real)).received, 'x-service-signature')).toMatch(/^sha256=[0-9a-f]{64}$/);
});

it('S6.2-4 x-service-signature is the HMAC-SHA256 of the raw body with the webhook secret', async () => {
  const { received } = await tellSuccess(real);
  expect(header(received, 'x-service-signature')).toBe(`sha256=${hmac(await secretOf(real), received.body)}`);
});

it('S6.3-1 a receiver verifies the signature over the raw bytes as received, whatever they are', async () => {
  const { received } = await tellSuccess(real, { name: 'zażółć 😀 \u2028', 'ключ"': '<&>\\' });
  expect(received.body.toString()).toContain('zażółć 😀');
  expect(header(received, 'x-service-signature')).toBe(`sha256=${hmac(await secretOf(real), received.body)}`);
});

it('S6.3-2 our example receiver compares the whole signature in constant time', async () => {
  const crypto = process.getBuiltinModule('node:crypto');
  const { syncBuiltinESMExports } = process.getBuiltinModule('node:module');
  const compare = vi.spyOn(crypto, 'timingSafeEqual');
  syncBuiltinESMExports();
  try {
    const body = Buffer.from('{}');
    const right = `sha256=${hmac('whsec_AAAA', body)}`;
    const last = right.endsWith('0') ? '1' : '0';
    for (const [signature, same] of [[right, true] as const, [right.slice(0, -1) + last, false] as const]) {
      compare.mockClear();
      expect(hasSignature(body, signature, 'whsec_AAAA')).toBe(same);
      expect(compare).toHaveBeenCalledOnce();
    }
    for (const signature of ['', right.slice('sha256='.length), `${right}0`])
      expect(hasSignature(body, signature, 'whsec_AAAA')).toBe(false);
  } finally {
    compare.mockRestore();
    syncBuiltinESMExports();
  }
});

it('S6.3-4 a body that is parsed and serialized again does not verify, because its bytes differ', async () => {
  const { received } = await tell(real);
  const signature = header(received, 'x-service-signature');
  const written_again = Buffer.from(JSON.stringify(JSON.parse(received.body.toString()), null, 2));
  expect(hasSignature(received.body, signature, await secretOf(real))).toBe(true);
  expect(hasSignature(written_again, signature, await secretOf(real))).toBe(false);
});

const tries_max = 5;

/** Returns the shortest of several times until one is short enough: a machine that stops makes one longer, and none shorter. */
async function shortestOf(enough_ms: number, measure: () => Promise<number>): Promise<number> {
  let shortest_ms = Infinity;
  for (let tries = 0; tries < tries_max && shortest_ms >= enough_ms; tries++)
    shortest_ms = Math.min(shortest_ms, await measure());
  return shortest_ms;
}

it('S6.4-1 the first delivery is sent as soon as the task finishes', async () => {
  const delayOfOne = async () => {
    const { received } = await tell(real);
    return received.at_ms - Date.parse(JSON.parse(received.body.toString()).completed_at);
  };
  expect(await shortestOf(4 * second, delayOfOne)).toBeLessThan(4 * second);
});

it('S6.4-2 a delivery that is not answered with 2xx is retried', async () => {
  const statuses = [400, 401, 404, 410, 429, 500, 503];
  const deliveries = await Promise.all(
    statuses.map(async (status) => ({ status, task: (await tell(real, status)).task })),
  );
  for (const { status, task } of deliveries) {
    expect(await listed(real, task)).toMatchObject([{ status }]);
    expect(await deliveryOf(real.app, real.client, task)).toMatchObject({ state: 'waiting', delivered_at: null });
  }
});

it('S6.4-3 a delivery that is not answered at all is retried', async () => {
  const { client, app } = real;
  const refused = await finishTask(client, 'http://127.0.0.9:9998/');
  await final(real, refused);
  for (const task of [(await tell(real, 'cut')).task, refused]) {
    const [attempt] = await listed(real, task);
    expect(attempt).toMatchObject({ status: null, error: expect.stringMatching(/./) });
    expect(await deliveryOf(app, client, task)).toMatchObject({ state: 'waiting', delivered_at: null });
  }
});

/** Runs `work` while attempts may take no longer than this. */
async function whileHasty(timeout: string, work: () => Promise<void>): Promise<void> {
  const delays = 'retry_delays: [10s, 1m, 5m, 30m, 2h]';
  await stage.test.configure(`${yaml}webhooks: { timeout: ${timeout}, ${delays} }\n`);
  try {
    await work();
  } finally {
    await stage.test.configure(patient_yaml);
  }
}

it('S6.4-4 a delivery that is answered too slowly is retried', () =>
  whileHasty('800ms', async () => {
    const path = `/${++paths}`;
    stage.receiver.answer(path, 'hang');
    const task = await finishTask(stage.client, stage.receiver.url + path);
    await final(stage, task);
    expect(await listed(stage, task)).toMatchObject([{ status: null }]);
    stage.receiver.release(path, 204); // too late
    expect(await deliveryOf(stage.app, stage.client, task)).toMatchObject({ state: 'waiting', delivered_at: null });
    stage.receiver.answer(path, 204);
  }));

const pauses_ms = [10 * second, 60 * second, 300 * second, 1_800 * second, 7_200 * second];
let walked: Promise<Delivered & { pauses: number[] }> | undefined;

/** Returns the schedule of a receiver that always fails: the delay planned after each attempt, until there is none. */
function schedule(): Promise<Delivered & { pauses: number[] }> {
  walked ??= (async () => {
    const delivered = await tell(stage, 500);
    const pauses: number[] = [];
    while (pauses.length < 8) {
      const attempt = (await listed(stage, delivered.task, pauses.length + 1)).at(-1);
      const { next_at } = await deliveryOf(stage.app, stage.client, delivered.task);
      if (!next_at || !attempt) break;
      const pause_ms = next_at.getTime() - attempt.ended_at.getTime();
      pauses.push(pause_ms);
      await pass(stage, pause_ms);
    }
    return { ...delivered, pauses };
  })();
  return walked;
}

it('S6.4-5 the first retry comes 10 seconds after the previous attempt', async () => {
  expect((await schedule()).pauses[0]).toBe(pauses_ms[0]);
});

it('S6.4-6 the second retry comes 1 minute after the previous attempt', async () => {
  expect((await schedule()).pauses[1]).toBe(pauses_ms[1]);
});

it('S6.4-7 the third retry comes 5 minutes after the previous attempt', async () => {
  expect((await schedule()).pauses[2]).toBe(pauses_ms[2]);
});

it('S6.4-8 the fourth retry comes 30 minutes after the previous attempt', async () => {
  expect((await schedule()).pauses[3]).toBe(pauses_ms[3]);
});

it('S6.4-9 the fifth retry comes 2 hours after the previous attempt', async () => {
  expect((await schedule()).pauses[4]).toBe(pauses_ms[4]);
});

it('S6.4-10 a delivery is retried at most 5 times', async () => {
  const { task, path } = await schedule();
  expect(await listed(stage, task, 6)).toHaveLength(6);
  expect(times(stage, path)).toBe(6);
});

it('S6.4-11 a delivery is dropped after its last retry failed', async () => {
  const { task, path } = await schedule();
  expect(await deliveryOf(stage.app, stage.client, task)).toMatchObject({ state: 'dropped', next_at: null });
  await pass(stage, day);
  await again(stage, await tell(stage)); // what was due has been sent before
  expect(times(stage, path)).toBe(6);
});

it('S6.4-12 a task whose delivery is dropped remains available through GET /v1/tasks/{id}', async () => {
  const { task, received } = await schedule();
  expect(await stage.client.call('GET', `/v1/tasks/${task}`)).toMatchObject({
    status: 200,
    text: String(received.body),
  });
});

it('S6.5-2 a retry carries the same task id as the first delivery, so that receivers can deduplicate', async () => {
  const delivered = await tell(stage, 500); // processed, and then it failed
  await listed(stage, delivered.task);
  await pass(stage, 10 * second);
  const retry = await stage.receiver.nth(delivered.path, 2);
  expect(JSON.parse(retry.body.toString()).id).toBe(delivered.task);
  expect(retry.body.equals(delivered.received.body)).toBe(true);
});

it('S6.5-3 output URLs can be downloaded as soon as the webhook arrives', async () => {
  const { output } = JSON.parse((await tellSuccess(real)).received.body.toString());
  const file = await fetch(output[0].url);
  expect(file.status).toBe(200);
  expect((await file.bytes()).length).toBe(output[0].size_bytes);
});

it('D-webhooks-1 x-service-delivery is the id of the delivery', async () => {
  const { task, received } = await tell(real);
  const { id } = await deliveryOf(real.app, real.client, task);
  expect(id).toMatch(/^dlv_[0-9A-Za-z]{26}$/);
  expect(header(received, 'x-service-delivery')).toBe(id);
});

/** Seconds since 1970 in a header of both attempts, the second of them 10 s later. */
async function expectTimesIn(name: string): Promise<void> {
  const delivered = await tell(stage, 500);
  await listed(stage, delivered.task);
  await pass(stage, 10 * second);
  const [first = '', later = ''] = [delivered.received, await stage.receiver.nth(delivered.path, 2)].map((one) =>
    header(one, name),
  );
  for (const text of [first, later]) expect(text).toMatch(/^\d{10}$/);
  const begun_s = (await listed(stage, delivered.task, 2)).map(({ started_at }) => started_at.getTime() / second);
  expect([first, later]).toEqual(begun_s.map((time_s) => String(Math.floor(time_s))));
  expect(Number(later)).toBeLessThanOrEqual(stage.clock.now() / second);
  expect(Number(later) - Number(first)).toBeGreaterThanOrEqual(10);
}

it('D-webhooks-2 x-service-timestamp is the time of the attempt in seconds', () =>
  expectTimesIn('x-service-timestamp'));

it('D-webhooks-3 webhook-id is the id of the delivery and the same at each attempt', async () => {
  const delivered = await tell(real);
  const { id } = await deliveryOf(real.app, real.client, delivered.task);
  expect([delivered.received, await again(real, delivered)].map((one) => header(one, 'webhook-id'))).toEqual([id, id]);
});

it('D-webhooks-4 webhook-timestamp is the time of the attempt in seconds', () => expectTimesIn('webhook-timestamp'));

it('D-webhooks-5 webhook-signature signs id, time and body, so that a replay is detected', async () => {
  const { received } = await tell(real);
  const webhook = new Webhook(await secretOf(real));
  const headers = Object.fromEntries(Object.entries(received.headers).map(([name, value]) => [name, String(value)]));
  expect(webhook.verify(received.body, headers)).toMatchObject({ status: 'failed' });
  const later = { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) + 1) };
  for (const changed of [later, { ...headers, 'webhook-id': 'dlv_other' }])
    expect(() => webhook.verify(received.body, changed)).toThrow('No matching signature found');
});

it('D-webhooks-6 a webhook secret is whsec_ and base64 of 32 bytes', async () => {
  const secrets = [await secretOf(real), await secretOf(real, await real.test.client())];
  for (const secret of secrets) {
    expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(Buffer.from(secret.slice(6), 'base64')).toHaveLength(32);
  }
  expect(secrets[0]).not.toBe(secrets[1]);
});

it('D-webhooks-7 x-service-signature is keyed with the whole text of the secret', async () => {
  const { received } = await tell(real);
  const key = Buffer.from(await secretOf(real), 'utf8');
  expect(header(received, 'x-service-signature')).toBe(`sha256=${hmac(key, received.body)}`);
});

/** webhook-signature by this secret, computed as its specification says. */
function standardSignature(received: Received, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signed = `${header(received, 'webhook-id')}.${header(received, 'webhook-timestamp')}.${received.body.toString()}`;
  return `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
}

it('D-webhooks-8 webhook-signature is keyed with the decoded bytes of the secret', async () => {
  const { received } = await tell(real);
  expect(header(received, 'webhook-signature')).toBe(standardSignature(received, await secretOf(real)));
});

/** A client whose secret was rotated so long ago: the old and the new one. */
async function rotated(ago_ms: number): Promise<{ client: Client; old: string; fresh: string }> {
  const client = await real.test.client();
  const old = await secretOf(real, client);
  const fresh = await rotateWebhookSecret(real.app.db, client.account_id, new Date(real.clock.now() - ago_ms));
  return { client, old, fresh: fresh ?? '' };
}

it('D-webhooks-9 x-service-signature uses the new secret at once after a rotation', async () => {
  const { client, old, fresh } = await rotated(0);
  const { received } = await tell(real, 204, client);
  expect(fresh).not.toBe(old);
  expect(header(received, 'x-service-signature')).toBe(`sha256=${hmac(fresh, received.body)}`);
});

it('D-webhooks-10 webhook-signature carries signatures of both secrets for 24 hours after a rotation', async () => {
  for (const ago_ms of [0, day - 60 * second]) {
    const { client, old, fresh } = await rotated(ago_ms);
    const { received } = await tell(real, 204, client);
    const both = [fresh, old].map((secret) => standardSignature(received, secret));
    expect(header(received, 'webhook-signature')).toBe(both.join(' '));
  }
});

it('D-webhooks-11 webhook-signature carries only that of the new secret 24 hours after a rotation', async () => {
  const { client, fresh } = await rotated(day);
  const { received } = await tell(real, 204, client);
  expect(header(received, 'webhook-signature')).toBe(standardSignature(received, fresh));
});

// These take seconds, so they run beside one another: real time, and operator commands.

/** An operator command starts a process, which a busy machine lets wait. */
const in_a_process = { concurrent: true, timeout: 120_000 };

it('D-webhooks-12 a delivery may take 5 s to connect', { concurrent: true }, async () => {
  const deaf = await startDeafHost('127.0.0.21');
  try {
    const durationOfOne = async () => {
      const task = await finishTask(real.client, deaf.url);
      await final(real, task);
      const [attempt] = await listed(real, task);
      expect(attempt?.status).toBe(null);
      expect(attempt?.duration_ms).toBeGreaterThanOrEqual(4_900);
      return attempt?.duration_ms ?? Infinity;
    };
    expect(await shortestOf(8_000, durationOfOne)).toBeLessThan(8_000);
  } finally {
    await deaf.stop();
  }
});

it('D-webhooks-13 a whole attempt of a delivery may take 10 s', { concurrent: true }, async () => {
  const durationOfOne = async () => {
    const { task } = await tell(real, 'hang');
    const [attempt] = await listed(real, task);
    expect(attempt?.status).toBe(null);
    expect(attempt?.duration_ms).toBeGreaterThanOrEqual(9_900);
    return attempt?.duration_ms ?? Infinity;
  };
  expect(await shortestOf(14_000, durationOfOne)).toBeLessThan(14_000);
});

it('D-webhooks-19 a retry is at most 10 % and 1 s late', { concurrent: true }, async () => {
  const pauseOfOne = async () => {
    let answers = 0;
    const { task, received, path } = await tell(real, () => (answers++ === 0 ? 500 : 204));
    const [first] = await listed(real, task);
    const [, retry] = await listed(real, task, 2);
    expect(times(real, path)).toBe(2);
    const pause_ms = (retry?.started_at.getTime() ?? 0) - (first?.ended_at.getTime() ?? 0);
    expect(pause_ms).toBeGreaterThanOrEqual(10 * second);
    expect(received.at_ms).toBeLessThanOrEqual(first?.ended_at.getTime() ?? 0);
    return pause_ms;
  };
  expect(await shortestOf(12 * second, pauseOfOne)).toBeLessThanOrEqual(12 * second);
});

it('S6.3-3 our example receiver answers 401 to a signature that does not match', in_a_process, async () => {
  const { database_url = '', data_dir } = real.app.config;
  const port = String(await freePort());
  const env = { DATABASE_URL: database_url, MEDLEY_DATA: data_dir };
  const listening = medley(['webhook', 'listen', '--port', port, '--count', '1', '--json'], env);
  const { id } = await deliveryOf(real.app, real.client, (await tell(real)).task);
  const headers = { 'x-service-delivery': id, 'x-service-signature': `sha256=${'0'.repeat(64)}` };
  const forged = () =>
    fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}', headers }).then(({ status }) => status);
  expect(await vi.waitFor(forged, { interval: 50, timeout: 120_000 })).toBe(401);
  expect(JSON.parse((await listening).out)).toMatchObject({ received: [{ delivery: id, verified: false }] });
});

it('D-webhooks-20 attempts of a delivery are listed with time, status and milliseconds', in_a_process, async () => {
  const slow = () => new Promise<number>((done) => setTimeout(() => done(201), 60));
  const { task, received } = await tell(real, slow);
  await listed(real, task);
  const shown = await commandsBeside(real.test).ok('task', 'show', task);
  expect(shown).toMatchObject({ webhook: { attempts: [{ number: 1, status: 201, error: null }] } });
  const [attempt] = await listed(real, task);
  expect(attempt?.duration_ms).toBeGreaterThanOrEqual(55);
  expect(attempt?.started_at.getTime()).toBeLessThanOrEqual(received.at_ms);
  expect(attempt?.ended_at.getTime()).toBeGreaterThanOrEqual(received.at_ms);
});

it('D-webhooks-24 a test delivery can be sent to any permitted URL and to no other', in_a_process, async () => {
  const commands = commandsBeside(real.test);
  const words = ['webhook', 'test', '--account', real.client.account_id, '--url'];
  expect(await commands.fails(2, ...words, 'http://127.0.0.1:22/')).toMatch(/^--url must not use port 22/);
  expect(await commands.ok(...words, `${real.receiver.url}/any`)).toMatchObject({ delivered: true });
});

it('D-webhooks-14 redirects of a receiver are not followed', { concurrent: true }, async () => {
  for (const status of [301, 302, 303, 307, 308]) {
    const { task } = await tell(real, status);
    expect(await listed(real, task)).toMatchObject([{ status }]);
  }
  expect(times(real, '/elsewhere')).toBe(0);
});

it('D-webhooks-15 only a 2xx answer of a receiver is success', { concurrent: true }, async () => {
  for (const status of [200, 201, 204, 299, 300, 304, 307]) {
    const { task } = await tell(real, status);
    await listed(real, task);
    const { state } = await deliveryOf(real.app, real.client, task);
    expect([status, state]).toEqual([status, status < 300 ? 'delivered' : 'waiting']);
  }
});

it(
  "D-webhooks-16 at most 16 kB of a receiver's answer are read, and the rest need not arrive",
  { concurrent: true },
  async () => {
    const durationOfOne = async () => {
      const { task, path } = await tell(real, 'stuck');
      const [attempt] = await listed(real, task);
      expect(attempt).toMatchObject({ status: 200, error: null });
      await until('the connection is let go', () => real.receiver.open(path) === 0);
      return attempt?.duration_ms ?? Infinity;
    };
    expect(await shortestOf(9 * second, durationOfOne)).toBeLessThan(9 * second);
  },
);

it('D-webhooks-17 retry delays count from the end of the previous attempt', async () => {
  const { task, path } = await tell(stage, 'hang');
  await pass(stage, 3 * second);
  stage.receiver.release(path, 500);
  const [attempt] = await listed(stage, task);
  const { next_at } = await deliveryOf(stage.app, stage.client, task);
  const [begun_ms = 0, ended_ms = 0] = [attempt?.started_at.getTime(), attempt?.ended_at.getTime()];
  expect(ended_ms - begun_ms).toBeGreaterThanOrEqual(3 * second);
  expect(next_at?.getTime()).toBe(ended_ms + 10 * second);
  stage.receiver.answer(path, 204);
});

it('D-webhooks-18 a retry is never early', () =>
  whileClocksStand(stage, async () => {
    const { task, path } = await tell(stage, 500);
    await listed(stage, task);
    const other = await tell(stage);
    await listed(stage, other.task);
    await pass(stage, 9 * second);
    await again(stage, other); // what was due has been sent before
    await listed(stage, other.task, 2);
    expect(times(stage, path)).toBe(1);
    await pass(stage, second);
    await stage.receiver.nth(path, 2);
  }));

it('D-webhooks-21 attempts of a delivery are listed with the first 2 kB of the answer', async () => {
  const { task } = await tell(real, 'stuck');
  expect(await listed(real, task)).toMatchObject([{ answer: 'x'.repeat(2_048) }]);
  const short = await tell(real, 503);
  expect(await listed(real, short.task)).toMatchObject([{ answer: 'answer 503' }]);
});

it('D-webhooks-22 a delivery can be sent again with the same bytes', async () => {
  const delivered = await tell(real);
  expect((await again(real, delivered)).body.equals(delivered.received.body)).toBe(true);
});

it('D-webhooks-23 a test delivery is signed and has an empty output', async () => {
  const account = await accountOf(real);
  const body = testBody('USD', new Date(real.clock.now()));
  expect(await sendTest(real.app, account, `${real.receiver.url}/test`, body)).toMatchObject({ delivered: true });
  const received = await real.receiver.nth('/test', 1);
  expect(JSON.parse(received.body.toString())).toMatchObject({ status: 'succeeded', output: [], error: null });
  expect(header(received, 'x-service-signature')).toBe(`sha256=${hmac(account.webhook_secret, received.body)}`);
});

const url = (receiver: Receiver, path: string) => receiver.url + path;

/** A receiver on a host of its own, so that tests do not share its slots. */
async function onHost(last: number, work: (receiver: Receiver) => Promise<void>): Promise<void> {
  const receiver = await startReceiver(`127.0.0.${last}`);
  try {
    await work(receiver);
  } finally {
    await receiver.stop();
  }
}

const finishTasks = (count: number, where: (i: number) => string, client = stage.client) =>
  Promise.all(Array.from({ length: count }, (_, i) => finishTask(client, where(i))));

async function throttledAt(receiver: Receiver): Promise<number> {
  const text = 'select count(*)::int as n from throttled_deliveries where host = $1';
  const rows = await stage.app.db.query<{ n: number }>(text, [new URL(receiver.url).host]);
  return rows[0]?.n ?? 0;
}

/** Waits until so many attempts are being answered and so many deliveries wait for a slot. */
async function expectFlying(receiver: Receiver, path: string, open: number, throttled: number): Promise<void> {
  const reached = async () => receiver.open(path) === open && (await throttledAt(receiver)) === throttled;
  await vi.waitUntil(reached, { interval: 20, timeout: 120_000 });
}

it('D-webhooks-25 at most 4 deliveries are in flight to one URL', () =>
  onHost(11, async (receiver) => {
    receiver.answer('/a', 'hang');
    await finishTasks(6, () => url(receiver, '/a'));
    await expectFlying(receiver, '/a', 4, 2);
    receiver.answer('/a', 204);
    receiver.release('/a', 204);
    await receiver.nth('/a', 6);
    expect(receiver.most('/a')).toBe(4);
  }));

it('D-webhooks-26 URLs that differ only in their query share the 4 deliveries in flight', () =>
  onHost(12, async (receiver) => {
    receiver.answer('/a', 'hang');
    await finishTasks(6, (i) => url(receiver, `/a?task=${i}`));
    await expectFlying(receiver, '/a', 4, 2);
  }));

it('D-webhooks-27 each account has its own 4 deliveries in flight to a URL', () =>
  onHost(13, async (receiver) => {
    receiver.answer('/a', 'hang');
    const other = await stage.test.client();
    await finishTasks(5, () => url(receiver, '/a'));
    await finishTasks(5, () => url(receiver, '/a'), other);
    await expectFlying(receiver, '/a', 8, 2);
  }));

it('D-webhooks-28 at most 64 deliveries are in flight to one host', () =>
  onHost(14, async (receiver) => {
    for (let i = 0; i < 67; i++) receiver.answer(`/${i}`, 'hang');
    await finishTasks(67, (i) => url(receiver, `/${i}`));
    await expectFlying(receiver, '', 64, 3);
  }));

it('D-webhooks-29 the 64 deliveries to a host are shared fairly: an account with few goes before one with many', () =>
  onHost(15, async (receiver) => {
    for (let i = 0; i < 67; i++) receiver.answer(`/${i}`, 'hang');
    await finishTasks(67, (i) => url(receiver, `/${i}`));
    await expectFlying(receiver, '', 64, 3);
    const other = await stage.test.client();
    receiver.answer('/small', 'hang');
    await finishTask(other, url(receiver, '/small'));
    await expectFlying(receiver, '', 64, 4);
    receiver.release(receiver.received[0]?.path ?? '', 204);
    await expectFlying(receiver, '', 64, 3);
    await vi.waitUntil(() => receiver.received.length > 64, { timeout: 120_000 }); // the slot is taken before it is heard
    expect(receiver.received[64]?.path).toBe('/small');
  }));

it('D-webhooks-30 a URL whose last attempt timed out gets 1 delivery at a time', () =>
  onHost(16, (receiver) =>
    whileHasty('600ms', async () => {
      receiver.answer('/a', 'hang');
      const [slow = ''] = await finishTasks(1, () => url(receiver, '/a'));
      await final(stage, slow);
      expect(await listed(stage, slow)).toMatchObject([{ status: null }]);
      await until('the receiver has let go', () => receiver.open('/a') === 0);
      const tasks = await finishTasks(3, () => url(receiver, '/a'));
      for (const task of tasks) {
        await final(stage, task);
        await listed(stage, task); // each in its turn
      }
      expect(receiver.most('/a')).toBe(1);
    }),
  ));

it('D-webhooks-31 first attempts never wait behind retries', () =>
  onHost(17, async (receiver) => {
    receiver.answer('/a', 500);
    const tasks = await finishTasks(6, () => url(receiver, '/a'));
    await receiver.nth('/a', 6);
    for (const task of tasks) await listed(stage, task);
    receiver.answer('/a', 'hang');
    await pass(stage, 10 * second);
    await vi.waitUntil(async () => receiver.open('/a') + (await throttledAt(receiver)) === 6, { timeout: 120_000 });
    const first = await finishTask(stage.client, url(receiver, '/a'));
    await vi.waitUntil(() => receiver.received.at(-1)?.body.toString().includes(first), { timeout: 120_000 });
    expect(receiver.open('/a')).toBe(4);
  }));

/** Ends a task whose webhook goes to a host of this name, and tells of its first attempt. */
async function tellName(name: string): Promise<{ task: string; path: string; status: number | null | undefined }> {
  const { port } = new URL(real.receiver.url);
  const path = `/${name}`;
  const task = await finishTask(real.client, `http://${name}:${port}${path}`);
  await final(real, task);
  const [attempt] = await listed(real, task);
  return { task, path, status: attempt?.status };
}

it('D-address-5 every address that a webhook host resolves to must be permitted', async () => {
  names.set('good.test', () => ['127.0.0.1']);
  names.set('mixed.test', () => ['127.0.0.1', '10.0.0.1']);
  expect(await tellName('good.test')).toMatchObject({ status: 204 });
  const { task, path, status } = await tellName('mixed.test');
  expect([status, times(real, path)]).toEqual([null, 0]);
  expect(await listed(real, task)).toMatchObject([{ error: expect.stringContaining('address') }]);
});

it('D-address-9 a resolved webhook address is pinned, and the name is not resolved again', async () => {
  const answers = [['127.0.0.1'], ['10.0.0.1']];
  names.set('turned.test', () => answers.shift() ?? []);
  expect(await tellName('turned.test')).toMatchObject({ status: 204 });
  expect(answers).toHaveLength(1);
});

it('D-address-10 a webhook address is checked again at each send', async () => {
  names.set('moved.test', () => ['127.0.0.1']);
  const { task, path, status } = await tellName('moved.test');
  expect(status).toBe(204);
  names.set('moved.test', () => ['10.0.0.1']);
  expect(await resend(real.app, await deliveryOf(real.app, real.client, task))).toBe('sent');
  expect(await listed(real, task, 2)).toMatchObject([{ status: 204 }, { status: null }]);
  expect(times(real, path)).toBe(1);
});
