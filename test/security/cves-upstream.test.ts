import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listEndpoints } from '../../src/server.ts';
import { startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { speak } from '../hostile/speak.ts';

/** Faults of other programs on the way to a provider; SECURITY.md has the table. */

let service: TestApp;
let client: Client;

/** Somewhere that nobody may be sent to. */
let connections = 0;
const trap = createServer((socket) => {
  connections += 1;
  socket.destroy();
});
let trap_url: string;

beforeAll(async () => {
  await new Promise<void>((resolve) => trap.listen(0, '127.0.0.1', resolve));
  trap_url = `http://127.0.0.1:${(trap.address() as AddressInfo).port}`;
  service = await startTestApp();
  client = await service.client();
});
afterAll(async () => {
  await service?.stop();
  trap.close();
});

const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };

test('CVE-2024-6587 no member of a request chooses where it is sent', async () => {
  for (const name of ['api_base', 'base_url', 'api_key', 'provider', 'endpoint', 'url', 'extra_body', 'fallbacks']) {
    const answer = await client.call('POST', '/v1/generate', { ...order, [name]: trap_url });
    expect(answer).toMatchObject({ status: 400, json: { error: { param: name } } });
    const inside = { ...order, input: { ...order.input, [name]: trap_url } };
    expect((await client.call('POST', '/v1/generate', inside)).status).toBe(422);
  }
  expect(connections).toBe(0);
});

test('CVE-2025-66405 no header of a request chooses where it is sent', async () => {
  const names = [
    'x-portkey-custom-host',
    'x-custom-host',
    'x-api-base',
    'x-base-url',
    'x-forwarded-host',
    'x-provider',
  ];
  const headers = Object.fromEntries(names.map((name) => [name, trap_url]));
  const answer = await client.call('POST', '/v1/generate?wait=120', order, headers);
  expect([answer.status, answer.json.status]).toEqual([202, 'succeeded']);
  expect(connections).toBe(0);
});

test('CVE-2026-75871 the Host header of a caller goes nowhere: not to an upstream, not into a link', async () => {
  const body = JSON.stringify(order);
  const lines = ['host: evil.example', `authorization: Bearer ${client.key}`, 'content-type: application/json'];
  const { text } = await speak(Number(new URL(service.url).port), [
    `POST /v1/generate?wait=120 HTTP/1.1\r\n${lines.join('\r\n')}\r\nconnection: close\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  ]);
  expect(text).toContain(`"url":"${service.url}/files/`);
  expect(text).not.toContain('evil.example');
});

test('CVE-2026-19889 the name or the metadata of a model redirects nothing', async () => {
  for (const model of [
    `sandbox/image@${trap_url}`,
    `${trap_url}/sandbox/image`,
    'sandbox/../image',
    'sandbox/image#x',
  ]) {
    expect((await client.call('POST', '/v1/generate', { ...order, model })).status).toBe(404);
  }
  const metadata = { model_endpoint: trap_url, base_url: trap_url };
  const answer = await client.call('POST', '/v1/generate?wait=120', { ...order, metadata });
  expect([answer.json.status, answer.json.metadata]).toEqual(['succeeded', metadata]);
  expect(connections).toBe(0);
});

test('CVE-2025-56520 an address in an input leads nowhere inside, whether the input takes links or not', async () => {
  for (const name of ['image', 'image_url', 'file', 'file_url', 'remote_url', 'video_url']) {
    const input = { ...order.input, [name]: `${trap_url}/a.png` };
    expect((await client.call('POST', '/v1/generate', { ...order, input })).status).toBe(422);
  }
  for (const url of [`${trap_url}/a.png`, 'http://169.254.169.254/a.png', 'http://[::1]/a.png']) {
    const edit = { model: 'sandbox/edit', input: { prompt: 'x', images: [url] } };
    expect((await client.call('POST', '/v1/generate', edit)).status).toBe(422);
  }
  const prompt = { ...order, input: { ...order.input, prompt: `![](${trap_url}/a.png) <img src="${trap_url}">` } };
  expect((await client.call('POST', '/v1/generate?wait=120', prompt)).json.status).toBe('succeeded');
  expect(connections).toBe(0);
});

test('CVE-2026-32096 nobody without a key can send anything in but to sign in, or what Stripe or we have signed', () => {
  const open = listEndpoints().filter((endpoint) => endpoint.public);
  expect(open.length).toBeGreaterThan(3);
  // What upstreams call reads nothing that is sent: test/tasks/events.test.ts. Signing in has tests of its own, that of programs
  // test/api/oauth.test.ts.
  const signed = [
    '/stripe/webhook', // and asked for again at its sender: test/dashboard/billing.test.ts
    '/upload/v1beta/files/{account}/{id}', // for one upload, before its body is read: test/api/gemini/files.test.ts
  ];
  const reading = open.filter(
    ({ ignores_body, path }) => !ignores_body && !/^\/o?auth\//.test(path) && !signed.includes(path),
  );
  expect([...new Set(reading.map(({ method }) => method))]).toEqual(['GET']);
});
