// isolated: it moves the monotonic clock of its process, and sign-ins are counted in its process
import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { deleteKey, newKeyText } from '../../src/accounts/keys.ts';
import { keys_channel } from '../../src/app/channels.ts';
import { toBase62 } from '../../src/lib/ids.ts';
import { setLimit } from '../../src/money/ledger.ts';
import { listEndpoints } from '../../src/server.ts';
import { expectExactBooks, startTestApp, type Answered, type Client, type TestApp } from '../helpers/app.ts';
import { limits } from '../helpers/catalog.ts';
import { memberOf, ownerOfNew } from '../dashboard/people.ts';
import { elapse, stopElapsing } from '../helpers/clock.ts';

/** Specification 5: authentication, on two nodes of one service. */

const yaml = `
version: 1
${limits({ generate_per_minute: 3 })}
`;

let service: TestApp;
let node: TestApp;
let client: Client;

beforeAll(async () => {
  service = await startTestApp({ yaml, worker: false });
  node = await service.beside({ yaml });
});
afterAll(async () => {
  await node.stop();
  await service.stop();
});
beforeEach(async () => {
  client = await service.client();
});
afterEach(() => expectExactBooks(service.app));

const order = { model: 'sandbox/image', input: { prompt: 'x', width: 16, height: 16 } };

/** A request with exactly these headers. */
async function ask(method: string, path: string, headers: Record<string, string>, at = service): Promise<Answered> {
  const body = method === 'POST' ? JSON.stringify(order) : null;
  const type = body === null ? undefined : { 'content-type': 'application/json' };
  const response = await fetch(at.url + path, { method, headers: { ...type, ...headers }, body });
  const text = await response.text();
  return { status: response.status, headers: response.headers, text, json: text === '' ? {} : JSON.parse(text) };
}

const bearer = (key: string) => ({ authorization: `Bearer ${key}` });
const unauthenticated = { status: 401, json: { error: { type: 'authentication_error' } } };

/** Every path below /v1 with something in its parameters. */
const paths = listEndpoints()
  .filter(({ path }) => path.startsWith('/v1/'))
  .map(({ method, path }) => ({ method, path: path.replace('{+id}', 'sandbox/image').replace('{id}', 'task_1') }));

/** Statuses of a request whose key is accepted: windows are its own, and forms are asked for after it. */
const let_in = [200, 202, 204, 400, 404, 405, 415, 429];

it('S4-2 every endpoint requires an API key', async () => {
  expect(paths.length).toBeGreaterThanOrEqual(15);
  for (const { method, path } of paths) {
    const is_googles = path.startsWith('/v1beta/') || (method === 'POST' && path.startsWith('/v1/models/'));
    const expected = is_googles ? { status: 401, json: { error: { status: 'UNAUTHENTICATED' } } } : unauthenticated;
    expect(await ask(method, path, {}), path).toMatchObject(expected);
  }
});

it('S5-1 every endpoint accepts the key in the header Authorization: Bearer', async () => {
  for (const { method, path } of paths) {
    const { status } = await ask(method, path, bearer(client.key));
    expect(let_in, path).toContain(status);
  }
});

it('S5-2 a request without a key gets 401 authentication_error', async () => {
  for (const headers of [{}, { authorization: '' }, { authorization: 'Bearer' }, { authorization: 'Bearer ' }]) {
    expect(await ask('GET', '/v1/balance', headers)).toMatchObject(unauthenticated);
  }
});

it('S5-3 a request with a malformed key gets 401 authentication_error', async () => {
  const { key } = client;
  const other_end = key.endsWith('0') ? '1' : '0';
  const malformed = ['x', key.slice(1), key.slice(0, -1), `${key}0`, key.slice(0, -1) + other_end, key.toUpperCase()];
  for (const text of malformed) expect(await ask('GET', '/v1/balance', bearer(text))).toMatchObject(unauthenticated);
  for (const scheme of ['Basic', 'Token', 'Bearer:']) {
    const authorization = `${scheme} ${key}`;
    expect(await ask('GET', '/v1/balance', { authorization })).toMatchObject(unauthenticated);
  }
});

it('S5-4 a request with a well-formed key that nobody has gets 401 authentication_error', async () => {
  expect(await ask('GET', '/v1/balance', bearer(newKeyText()))).toMatchObject(unauthenticated);
});

it('S5-5 a request with a deleted key gets 401 authentication_error', async () => {
  await deleteKey(service.app.db, client.key_id, new Date());
  expect(await ask('GET', '/v1/balance', bearer(client.key))).toMatchObject(unauthenticated);
});

it('S5-6 a request with a key whose monthly spend limit is reached gets 403 permission_error', async () => {
  const limited = await service.client({ limit: '0.01' });
  expect((await ask('POST', '/v1/generate', bearer(limited.key))).status).toBe(202);
  expect(await ask('POST', '/v1/generate', bearer(limited.key))).toMatchObject({
    status: 403,
    json: { error: { type: 'permission_error' } },
  });
});

it('S5-7 request limits are counted per key', async () => {
  const second = await service.client({ account_id: client.account_id });
  const statuses: number[] = [];
  stopElapsing(true); // the window of the first three does not go on
  for (let i = 0; i < 4; i++) statuses.push((await client.call('POST', '/v1/generate', order)).status);
  expect(statuses).toEqual([202, 202, 202, 429]);
  expect((await second.call('POST', '/v1/generate', order)).status).toBe(202);
  stopElapsing(false);
});

it('D-auth-1 the scheme Bearer is accepted in upper and lower case', async () => {
  for (const scheme of ['bearer', 'BEARER', 'Bearer', 'bEARER']) {
    expect((await ask('GET', '/v1/balance', { authorization: `${scheme} ${client.key}` })).status).toBe(200);
  }
});

it('D-auth-2 the header x-api-key is accepted on every path', async () => {
  for (const { method, path } of paths) {
    const { status } = await ask(method, path, { 'x-api-key': client.key });
    expect(let_in, path).toContain(status);
  }
});

it('D-auth-3 an unknown path below /v1 gets 401 without a key', async () => {
  for (const [method, path] of [
    ['GET', '/v1/nothing'],
    ['GET', '/v1/'],
    ['PUT', '/v1/balance'],
    ['GET', '/v1/generate'],
    ['GET', '/v1/messages/x'],
  ] as const) {
    expect(await ask(method, path, {})).toMatchObject(unauthenticated);
    expect([404, 405]).toContain((await ask(method, path, bearer(client.key))).status);
  }
});

it('D-auth-4 the header Authorization alone decides when it is present', async () => {
  const stale = { 'x-api-key': 'mdl_stale' };
  expect((await ask('GET', '/v1/balance', { ...bearer(client.key), ...stale })).status).toBe(200);
  for (const authorization of ['Basic x', 'Bearer', '', `Bearer ${newKeyText()}`]) {
    const headers = { authorization, 'x-api-key': client.key };
    expect(await ask('GET', '/v1/balance', headers), authorization).toMatchObject(unauthenticated);
  }
});

it('D-auth-5 the headers anthropic-version and anthropic-beta are accepted', async () => {
  const headers = { 'x-api-key': client.key, 'anthropic-version': '2023-06-01', 'anthropic-beta': 'a-2025,b-2026' };
  expect((await ask('GET', '/v1/models', headers)).status).toBe(200);
  const plain = await ask('POST', '/v1/messages', { 'x-api-key': client.key });
  expect(await ask('POST', '/v1/messages', headers)).toMatchObject({
    status: plain.status,
    json: { error: { type: plain.json.error.type, message: plain.json.error.message } },
  });
});

it('D-keys-1 an API key is mdl_, 30 random base62 characters and 6 characters of their CRC32', async () => {
  const texts = [client.key, ...Array.from({ length: 50 }, () => newKeyText())];
  expect(new Set(texts).size).toBe(51);
  for (const text of texts) {
    expect(text).toMatch(/^mdl_[0-9A-Za-z]{36}$/);
    expect(text.slice(34)).toBe(toBase62(crc32(text.slice(4, 34)), 6));
  }
});

it('D-keys-2 only the SHA-256, the beginning and the last four characters of a key are stored', async () => {
  const [row] = await service.app.db.query<Record<string, unknown>>('select * from api_keys where id = $1', [
    client.key_id,
  ]);
  expect(row?.['hash']).toEqual(createHash('sha256').update(client.key).digest());
  expect([row?.['prefix'], row?.['last_four']]).toEqual([client.key.slice(0, 8), client.key.slice(-4)]);
  for (const value of Object.values(row ?? {})) expect(String(value)).not.toContain(client.key.slice(8));
});

it('D-keys-3 a key is shown once, and no response repeats it', async () => {
  for (const { method, path } of paths) {
    const { text } = await ask(method, path, bearer(client.key));
    expect(text, path).not.toContain(client.key.slice(8, 34));
  }
});

it('D-keys-4 every node refuses a key at once after its deletion', async () => {
  stopElapsing(true); // nothing that a node remembers grows old
  for (const at of [service, node]) expect((await ask('GET', '/v1/key', bearer(client.key), at)).status).toBe(200);
  await deleteKey(service.app.db, client.key_id, new Date());
  service.app.notifier.notify(keys_channel, 'all');
  const statuses = async () =>
    Promise.all([service, node].map(async (at) => (await ask('GET', '/v1/key', bearer(client.key), at)).status));
  await expect.poll(statuses, { interval: 10 }).toEqual([401, 401]);
  stopElapsing(false);
});

it('D-keys-5 no node caches a key for longer than a second', async () => {
  expect((await ask('GET', '/v1/key', bearer(client.key), node)).status).toBe(200);
  await deleteKey(service.app.db, client.key_id, new Date());
  elapse(1_000);
  expect(await ask('GET', '/v1/key', bearer(client.key), node)).toMatchObject(unauthenticated);
});

it('D-keys-6 a new limit of a key applies on every node at once', async () => {
  expect((await ask('POST', '/v1/generate', bearer(client.key), node)).status).toBe(202);
  expect(await setLimit(service.app.db, client.key_id, 10_000n)).toBe(true);
  expect((await ask('POST', '/v1/generate', bearer(client.key), node)).status).toBe(403);
  expect((await ask('GET', '/v1/key', bearer(client.key), node)).json).toMatchObject({
    spend_limit: { exact: '0.010000' },
  });
});

it('S5-10 the dashboard shows the webhook secret to members who may see it', async () => {
  const owner = await ownerOfNew(service);
  const { status, json } = await owner.post(`${owner.base}/webhooks/secret`);
  const [row] = await service.app.db.query<{ secret: string }>(
    'select webhook_secret as secret from accounts where id = $1',
    [owner.account_id],
  );
  expect(status).toBe(200);
  expect(json).toMatchObject({ secret: row?.secret, before: null });
  expect(row?.secret).toMatch(/^whsec_/);
  const viewer = await memberOf(service, owner, 'viewer');
  expect((await viewer.post(`${owner.base}/webhooks/secret`)).status).toBe(403);
});
