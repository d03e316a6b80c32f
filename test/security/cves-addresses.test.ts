import { createServer, type AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openGuard, type Guard } from '../../src/net/guard.ts';
import { deliveryOfTask, listDeliveryAttempts } from '../../src/webhooks/delivery.ts';
import { startWorker } from '../../src/worker.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

/** Faults of other programs with addresses that users choose; SECURITY.md has the table. */

/** Inside, on every address of this machine: whoever is connected to it has been tricked. */
let connections = 0;
const trap = createServer((socket) => {
  connections += 1;
  socket.destroy();
});
let port: number;

let service: TestApp;
let client: Client;
let receiver: Receiver;
/** Every name leads inside. */
const guard = openGuard({ resolve: async () => ['127.0.0.1'] });

beforeAll(async () => {
  await new Promise<void>((resolve) => trap.listen(0, resolve));
  port = (trap.address() as AddressInfo).port;
  service = await startTestApp();
  client = await service.client();
  receiver = await startReceiver();
});
afterAll(async () => {
  await service?.stop();
  await receiver?.stop();
  trap.close();
});

const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };
const nothing = { allow: [], allow_private: false };
const times = { connect_timeout_ms: 60_000, timeout_ms: 120_000, answer_bytes_max: 1_000 };

const send = (url: string, rules: Parameters<Guard['send']>[1]['rules'] = nothing) =>
  guard.send(url, { method: 'POST', headers: {}, body: Buffer.from('{}'), rules, ...times });

/** Refused when it is given, refused when it is dialled, and nobody was called. */
async function expectNowhere(hosts: readonly string[]): Promise<void> {
  for (const host of hosts) {
    const url = `http://${host}:${port}/hook`;
    const { status, json } = await client.call('POST', '/v1/generate', { ...order, webhook_url: url });
    expect([status, json.error.param], url).toEqual([422, 'webhook_url']);
    await expect(send(url), url).rejects.toMatchObject({ code: 'address_refused' });
  }
  expect(connections).toBe(0);
}

test('CVE-2026-110719 where nothing is allowed, nothing is: not even localhost', () =>
  expectNowhere(['127.0.0.1', 'localhost', 'LOCALHOST.', 'a.localhost', '[::1]', '10.0.0.1', '192.168.1.1']));

test('CVE-2026-25883 private and link-local addresses, and those of metadata services', () =>
  expectNowhere([
    '10.1.2.3',
    '172.16.0.1',
    '192.168.0.1',
    '169.254.169.254',
    '100.64.0.1',
    '168.63.129.16',
    '[fd00::1]',
  ]));

test('CVE-2025-24354 0.0.0.0 in every spelling', () =>
  expectNowhere(['0.0.0.0', '0', '0x0', '[::]', '0.0.0.0.', '00.0']));

test('CVE-2024-29415 numbers that are addresses in another spelling', () =>
  expectNowhere(['127.1', '2130706433', '017700000001', '127.0.1', '012.1.2.3', '①②⑦.⓪.⓪.①']));

test('CVE-2023-42282 addresses in hexadecimal', () =>
  expectNowhere(['0x7f.1', '0x7f000001', '0x7F.0x0.0x0.0x1', '0xa9fea9fe']));

/** IPv4 inside of IPv6. */
const mapped = ['[::ffff:7f00:1]', '[::ffff:a9fe:a9fe]', '[::ffff:127.0.0.1]', '[0:0:0:0:0:ffff:7f00:0001]'];

test('CVE-2026-31943 IPv4 in IPv6, in the hexadecimal form that the parser makes of it', () => expectNowhere(mapped));

test('CVE-2026-43929 IPv4 in IPv6 by every way of putting it there', () =>
  expectNowhere([
    ...mapped,
    '[::127.0.0.1]',
    '[::ffff:0:127.0.0.1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    '[2001::1]',
  ]));

test('CVE-2025-8267 multicast and other addresses of nobody', () =>
  expectNowhere([
    '224.0.0.1',
    '239.255.255.250',
    '255.255.255.255',
    '240.0.0.1',
    '[ff02::1]',
    '[fec0::1]',
    '192.0.2.1',
  ]));

test('CVE-2026-45400 what is judged is what is dialled, however the URL is meant to be read', async () => {
  const urls = [
    `http://127.0.0.1:${port}\\@example.com/`,
    `http://example.com@127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}#@example.com/`,
    `http://127.0.0.1:${port}?@example.com/`,
    `http:\\\\127.0.0.1:${port}/`,
    `http:127.0.0.1:${port}/`,
    `http://example.com\t.localhost:${port}/`,
    `http://0x7f.1:${port}%2f@example.com/`,
  ];
  for (const url of urls) await expect(send(url), url).rejects.toMatchObject({ code: 'address_refused' });
  // A name may be anything until it is resolved: then each of its addresses counts.
  await expect(send(`http://example.com:${port}/`)).rejects.toMatchObject({ code: 'address_refused' });
  const mixed = openGuard({ resolve: async () => ['93.184.216.34', '127.0.0.1'] });
  const options = { method: 'GET', headers: {}, rules: nothing, ...times } as const;
  await expect(mixed.send(`http://example.com:${port}/`, options)).rejects.toMatchObject({ code: 'address_refused' });
  expect(connections).toBe(0);
});

test('CVE-2026-45401 a redirect is not followed by a webhook, and judged anew by a download', async () => {
  const elsewhere = createServer((socket) =>
    socket.end(
      `HTTP/1.1 302 Found\r\nlocation: http://0.0.0.0:${port}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n`,
    ),
  );
  await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`;
  const rules = { allow: ['127.0.0.1/32'], allow_private: false };
  expect(await send(url, rules)).toMatchObject({ status: 302 });
  const options = { rules, ...times, idle_timeout_ms: 60_000, size_bytes_max: 1_000, redirects_max: 3 };
  await expect(guard.download(url, options)).rejects.toMatchObject({ code: 'address_refused' });
  expect(connections).toBe(0);
  elsewhere.close();
});

const patience = { timeout: 120_000 };

test('CVE-2026-44284 an address that was allowed when it was given is judged again when it is dialled', async () => {
  const allowing = 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n';
  const changing = await startTestApp({ yaml: allowing, worker: false });
  try {
    const caller = await changing.client();
    const body = { ...order, webhook_url: `http://127.0.0.1:${port}/` };
    const { status, json } = await caller.call('POST', '/v1/generate', body);
    expect(status).toBe(202);
    await changing.configure('version: 1\n');
    await startWorker(changing.app); // nothing was done before
    const attempts = async () => {
      const delivery = await deliveryOfTask(changing.app.db, { account_id: caller.account_id, task_id: json.id });
      return delivery ? listDeliveryAttempts(changing.app.db, delivery) : [];
    };
    const [first] = await vi.waitUntil(async () => {
      const list = await attempts();
      return list[0]?.ended_at ? list : undefined;
    }, patience);
    expect(first).toMatchObject({ status: null, error: expect.stringMatching(/private|internet/) });
    expect(connections).toBe(0);
  } finally {
    await changing.stop();
  }
});

test('CVE-2025-6454 a webhook carries our headers and no others: none can be chosen or smuggled in', async () => {
  for (const name of ['webhook_headers', 'headers', 'webhook_secret']) {
    const answer = await client.call('POST', '/v1/generate', { ...order, [name]: { 'x-evil': '1' } });
    expect(answer).toMatchObject({ status: 400, json: { error: { param: name } } });
  }
  const split = { ...order, webhook_url: `${receiver.url}/\r\nx-evil: 1` };
  expect((await client.call('POST', '/v1/generate', split)).status).toBe(422);
  // Not beside the first service: its worker, which allows nothing, might take the delivery.
  const open = await startTestApp({ yaml: 'version: 1\nnet: { allow: ["127.0.0.0/8"] }\n' });
  try {
    const caller = await open.client();
    await caller.call('POST', '/v1/generate', { ...order, webhook_url: `${receiver.url}/hook?a=%0d%0ax-evil:1` });
    const { headers } = await receiver.nth('/hook', 1);
    const own = ['x-service-event', 'x-service-signature', 'x-service-delivery', 'x-service-timestamp'];
    const standard = ['webhook-id', 'webhook-timestamp', 'webhook-signature'];
    const http = ['host', 'connection', 'content-type', 'content-length', 'user-agent'];
    const tested_names = [...own, ...standard, ...http];
    expect(Object.keys(headers).filter((name) => !tested_names.includes(name))).toEqual([]);
    expect(headers.host).toBe(new URL(receiver.url).host);
  } finally {
    await open.stop();
  }
});

test('CVE-2025-62718 no proxy of the environment stands between the judgement and the connection', async () => {
  const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'];
  for (const name of names) vi.stubEnv(name, `http://127.0.0.1:${port}`);
  vi.stubEnv('NODE_USE_ENV_PROXY', '1');
  try {
    const fresh = openGuard();
    const options = {
      method: 'GET',
      headers: {},
      rules: { allow: ['127.0.0.1/32'], allow_private: false },
      ...times,
    } as const;
    expect(await fresh.send(`${receiver.url}/direct`, options)).toMatchObject({ status: 204 });
    await expect(fresh.send(`http://10.0.0.1/`, options)).rejects.toMatchObject({ code: 'address_refused' });
    expect(connections).toBe(0);
  } finally {
    vi.unstubAllEnvs();
  }
});
