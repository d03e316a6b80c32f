import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey } from '../../src/accounts/keys.ts';
import type { Page } from '../../src/dashboard/views/activity.ts';
import type { DeliveryDetailView, DeliveryLineView, SecretView } from '../../src/dashboard/views/webhooks.ts';
import { hasSignature } from '../../src/webhooks/sign.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';

const yaml = `
version: 1
net: { allow: ["127.0.0.0/8"] }
webhooks: { retry_delays: [1h, 1h, 1h, 1h, 1h] }
`;

let test: TestApp;
let receiver: Receiver;
let owner: Someone;
let stranger: Someone;
let key: string;

beforeAll(async () => {
  test = await startTestApp({ yaml });
  receiver = await startReceiver();
  [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
  key = (await createKey(test.app.db, { account_id: owner.account_id, name: 'Own', limit_month: null }, new Date()))
    .text;
});

afterAll(async () => {
  await test.stop();
  await receiver.stop();
});

async function secrets(path = 'secret', who = owner): Promise<SecretView> {
  const { status, json } = await who.post(`${who.base}/webhooks/${path}`);
  expect(status).toBe(200);
  return json as SecretView;
}

async function deliveries(query = '', who = owner): Promise<Page<DeliveryLineView>> {
  const { status, json } = await who.get(`${who.base}/deliveries${query}`);
  expect(status).toBe(200);
  return json as Page<DeliveryLineView>;
}

async function detail(id: string): Promise<DeliveryDetailView> {
  const { status, json } = await owner.get(`${owner.base}/deliveries/${id}`);
  expect(status).toBe(200);
  return json as DeliveryDetailView;
}

async function runTask(webhook_url: string): Promise<void> {
  const input = { prompt: 'x', width: 64, height: 64 };
  const response = await fetch(`${test.url}/v1/generate`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/image', input, webhook_url }),
  });
  expect(response.status).toBe(202);
}

it('the webhook secret is shown only on request, and that is recorded', async () => {
  const { secret } = await secrets();
  expect(secret).toMatch(/^whsec_/);
  const page = await owner.get(`${owner.base}/webhooks`);
  expect(page.json).toEqual({ attempts_max: 6, overlap_until: null });
  expect(page.text + (await owner.get(`${owner.base}/deliveries`)).text).not.toContain(secret);
  const rows = await test.app.db.query<{ action: string; entry: string }>(
    'select action, a::text as entry from audit_entries a where account_id = $1',
    [owner.account_id],
  );
  expect(rows.map(({ action }) => action)).toContain('webhook_secret.reveal');
  expect(rows.map(({ entry }) => entry).join()).not.toContain(secret);
});

it('a test payload is signed with the secret, sent at once, and listed', async () => {
  const { secret } = await secrets();
  const url = `${receiver.url}/test`;
  const sent = await owner.post(`${owner.base}/webhooks/test`, { url });
  expect(sent.json).toMatchObject({ delivered: true, status: 204, error: null });
  const received = await receiver.nth('/test', 1);
  expect(hasSignature(received.body, String(received.headers['x-service-signature']), secret)).toBe(true);
  const line = (await deliveries('?state=delivered')).data.find((each) => each.url === url);
  expect(line).toMatchObject({ state: 'delivered', attempts: 1, last_status: 204, task_id: null });
  const { body, attempt_log: tries } = await detail(line?.id ?? '');
  expect(body).toBe(received.body.toString());
  expect(tries).toMatchObject([{ number: 1, status: 204 }]);
});

it.each(['', 'ftp://example.com', 'http://10.0.0.1/', 'http://user:word@example.com/', 'nonsense', undefined])(
  'a test payload is not sent to %j',
  async (url) => {
    const { status, json } = await owner.post(`${owner.base}/webhooks/test`, { url });
    expect(status).toBe(400);
    expect(json).toMatchObject({ error: { param: 'url' } });
  },
);

it('a rotated secret signs beside the new one', async () => {
  const { secret: old } = await secrets();
  const fresh = await secrets('secret/rotate');
  expect(fresh).toMatchObject({ before: old });
  expect(fresh.secret).not.toBe(old);
  expect(Date.parse(fresh.overlap_until ?? '') - Date.now()).toBeGreaterThan(86_000_000);
  expect((await owner.get(`${owner.base}/webhooks`)).json).toMatchObject({ overlap_until: fresh.overlap_until });
  await owner.post(`${owner.base}/webhooks/test`, { url: `${receiver.url}/rotated` });
  const { headers, body } = await receiver.nth('/rotated', 1);
  expect(String(headers['webhook-signature']).split(' ')).toHaveLength(2);
  expect(hasSignature(body, String(headers['x-service-signature']), fresh.secret)).toBe(true);
});

it('a webhook that fails is listed as retrying and can be sent again by hand', async () => {
  receiver.answer('/down', 500);
  await runTask(`${receiver.url}/down`);
  await receiver.nth('/down', 1);
  const find = async () => (await deliveries('?state=retrying')).data.find(({ url }) => url.endsWith('/down'));
  await expect.poll(find).toMatchObject({ state: 'retrying', attempts: 1, last_status: 500 });
  const line = await find();
  expect(Date.parse(line?.next_at ?? '')).toBeGreaterThan(Date.now());

  receiver.answer('/down', 200);
  const path = `${owner.base}/deliveries/${line?.id}/resend`;
  expect((await owner.post(path)).status).toBe(202);
  const again = await receiver.nth('/down', 2);
  expect(again.body.toString()).toBe((await detail(line?.id ?? '')).body);
  await expect.poll(async () => (await detail(line?.id ?? '')).state).toBe('delivered');
  expect((await detail(line?.id ?? '')).attempt_log.map(({ status }) => status)).toEqual([500, 200]);
});

it('each attempt of a delivery has the headers that were sent, but no signature', async () => {
  await runTask(`${receiver.url}/headers`);
  const { headers } = await receiver.nth('/headers', 1);
  const find = async () =>
    (await deliveries()).data.find(({ url, attempts }) => url.endsWith('/headers') && attempts > 0);
  await expect.poll(find).toMatchObject({ state: 'delivered' });
  const { attempt_log } = await detail((await find())?.id ?? '');
  const { 'x-service-signature': own, 'webhook-signature': standard, ...shown } = attempt_log[0]?.request_headers ?? {};
  expect(Object.keys(shown)).toHaveLength(7);
  expect(headers).toMatchObject(shown);
  expect([own, standard]).toEqual(['sha256=…', 'v1,…']);
});

it('the list of deliveries is paged', async () => {
  const all = (await deliveries('?limit=100')).data.map(({ id }) => id);
  expect(all.length).toBeGreaterThan(2);
  const first = await deliveries('?limit=2');
  const rest = await deliveries(`?limit=100&after=${first.data.at(-1)?.id}`);
  expect([...first.data, ...rest.data].map(({ id }) => id)).toEqual(all);
  expect([first.has_more, rest.has_more]).toEqual([true, false]);
  expect((await owner.get(`${owner.base}/deliveries?after=x`)).status).toBe(400);
  expect((await owner.get(`${owner.base}/deliveries?state=odd`)).status).toBe(400);
});

it.each(['billing', 'viewer'] as const)('a member with the role %s sees deliveries and no secret', async (role) => {
  const member = await memberOf(test, owner, role);
  const { data } = await deliveries('', member);
  const id = data[0]?.id;
  expect((await member.get(`${owner.base}/deliveries/${id}`)).status).toBe(200);
  const paths = ['webhooks/secret', 'webhooks/secret/rotate', 'webhooks/test', `deliveries/${id}/resend`];
  for (const path of paths) {
    const { status, text } = await member.post(`${owner.base}/${path}`, { url: receiver.url });
    expect(status).toBe(403);
    expect(text).not.toContain('whsec_');
  }
});

it('foreign and unknown deliveries get the same response', async () => {
  const id = (await deliveries()).data[0]?.id ?? '';
  const unknown = `${id.slice(0, -4)}0000`;
  const bare = (text: string) => text.replaceAll(/req_\w+/g, '');
  const [foreign, none] = [
    await stranger.get(`${stranger.base}/deliveries/${id}`),
    await stranger.get(`${stranger.base}/deliveries/${unknown}`),
  ];
  expect([foreign.status, bare(foreign.text)]).toEqual([404, bare(none.text)]);
  expect((await stranger.post(`${stranger.base}/deliveries/${id}/resend`)).status).toBe(404);
  expect((await stranger.get(`${owner.base}/deliveries`)).status).toBe(404);
  expect((await stranger.post(`${owner.base}/webhooks/secret`)).status).toBe(404);
  expect((await deliveries('', stranger)).data).toEqual([]);
});
