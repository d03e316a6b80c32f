import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { removeOldDeviceLogins } from '../../src/accounts/sign-in/device-logins.ts';
import { isKeyText } from '../../src/accounts/keys.ts';
import type { DeviceLoginView } from '../../src/dashboard/views/device-login.ts';
import { memberOf, ownerOfNew, okBody, type Someone } from '../dashboard/people.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import { testClock, type TestClock } from '../helpers/clock.ts';

let test: TestApp;
let second: TestApp;
let owner: Someone;
let clock: TestClock;

beforeAll(async () => {
  clock = testClock();
  test = await startTestApp({ worker: false, clock });
  second = await test.beside({ clock });
  owner = await ownerOfNew(test);
});

afterAll(async () => {
  await second.stop();
  await test.stop();
});

type Codes = {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  expires_in: number;
  interval: number;
};
type Token = {
  access_token: string;
  scope: string;
  account: { id: string; name: string };
  key: { id: string; name: string };
  expires_in?: number;
};
type Reply<T> = { status: number; headers: Headers; json: T & { error?: string; error_description?: string } };

async function send<T>(path: string, fields: Record<string, string>, at = test.url): Promise<Reply<T>> {
  const response = await fetch(at + path, { method: 'POST', body: new URLSearchParams(fields) });
  return { status: response.status, headers: response.headers, json: (await response.json()) as Reply<T>['json'] };
}

async function begin(fields: Record<string, string> = {}): Promise<Codes> {
  const begun = await send<Codes>('/oauth/device_authorization', {
    client_id: 'medley',
    device_name: 'box',
    ...fields,
  });
  expect(begun, JSON.stringify(begun.json)).toMatchObject({ status: 200, json: { expires_in: 600, interval: 5 } });
  return begun.json;
}

const grant_type = 'urn:ietf:params:oauth:grant-type:device_code';
const poll = ({ device_code }: Codes, fields: Record<string, string> = {}, at = test.url) =>
  send<Token>('/oauth/token', { grant_type, device_code, client_id: 'medley', ...fields }, at);

const approve = (code: string, more: object = {}, by = owner) =>
  by.post(`${by.base}/device-login`, { code, name: 'medley on box', ...more });

const callWith = async (key: string, at = test.url) =>
  (await fetch(`${at}/v1/key`, { headers: { authorization: `Bearer ${key}` } })).status;

describe('the device authorization grant', () => {
  it('gives one key, once, to the program whose code a person confirms, on any node', async () => {
    const codes = await begin();
    expect(codes.user_code).toMatch(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/);
    expect(codes.verification_uri_complete).toBe(`${codes.verification_uri}?code=${codes.user_code}`);
    expect(await poll(codes)).toMatchObject({ status: 400, json: { error: 'authorization_pending' } });

    const typed = codes.user_code.toLowerCase().replace('-', ' ');
    const view = okBody<DeviceLoginView>(await owner.post('/dash/device-login', { code: typed }));
    expect(view).toMatchObject({ client: 'medley', device: 'box', is_same_address: true, scopes: null });
    okBody(await approve(typed, { limit: '2.50', expires_at: '7d' }));
    expect((await approve(codes.user_code)).status).toBe(404);

    clock.pass(6_000);
    const { status, json, headers } = await poll(codes, {}, second.url);
    expect(status, JSON.stringify(json)).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(isKeyText(json.access_token)).toBe(true);
    expect(json).toMatchObject({ scope: 'chat media read', account: { id: owner.account_id, name: 'Own' } });
    expect(json.expires_in).toBeGreaterThan(6 * 86_400);
    expect([await callWith(json.access_token), await callWith(json.access_token, second.url)]).toEqual([200, 200]);
    expect(await poll(codes)).toMatchObject({ status: 400, json: { error: 'invalid_grant' } });

    const keys = okBody<{ data: { id: string; name: string; limit: { exact: string } }[] }>(
      await owner.get(`${owner.base}/keys`),
    );
    const key = keys.data.find(({ id }) => id === json.key.id);
    expect(key).toMatchObject({ name: 'medley on box', limit: { exact: '2.500000' } });
  });

  it('writes down who gave the key to which program', async () => {
    const entries = await test.app.db.query<{ action: string; user_id: string; details: object }>(
      `select action, user_id, details from audit_entries where account_id = $1 and action like any ($2) order by id`,
      [owner.account_id, ['key.create', 'device_login.%']],
    );
    expect(entries).toMatchObject([
      { action: 'device_login.approve', user_id: owner.user_id, details: { limit: '2.500000' } },
      { action: 'key.create', user_id: owner.user_id, details: { client: 'medley', device: 'box' } },
    ]);
  });

  it('stores neither code as it is', async () => {
    const codes = await begin();
    const rows = await test.app.db.query('select r::text as text from device_logins r');
    const text = JSON.stringify(rows);
    expect(rows.length).toBeGreaterThan(0);
    for (const code of [codes.device_code, codes.user_code, codes.user_code.replace('-', '')])
      expect(text).not.toContain(code);
  });

  it('says slow_down to a program that asks more often than it may, and grows its interval', async () => {
    clock.stop(clock.now());
    const codes = await begin();
    expect((await poll(codes)).json.error).toBe('authorization_pending');
    expect((await poll(codes)).json.error).toBe('slow_down');
    clock.pass(6_000); // the interval is 10 s now
    expect((await poll(codes)).json.error).toBe('slow_down');
    clock.pass(16_000);
    expect((await poll(codes)).json.error).toBe('authorization_pending');
    clock.run(clock.now());
  });

  it('says expired_token after ten minutes, and nobody can give a key any more', async () => {
    const codes = await begin();
    clock.pass(601_000);
    expect((await approve(codes.user_code)).status).toBe(404);
    expect((await poll(codes)).json.error).toBe('expired_token');
    clock.pass(600_000);
    await removeOldDeviceLogins(test.app.db, new Date(clock.now()));
    expect((await poll(codes)).json.error).toBe('invalid_grant');
    expect(await test.app.db.query('select from device_logins')).toEqual([]);
    clock.run(Date.now());
  });

  it('says access_denied when the person refused', async () => {
    const codes = await begin();
    okBody(await owner.post('/dash/device-login/deny', { code: codes.user_code }));
    expect((await poll(codes)).json.error).toBe('access_denied');
    expect((await poll(codes)).json.error).toBe('invalid_grant');
  });

  it('says access_denied when the person has lost the right meanwhile', async () => {
    const developer = await memberOf(test, owner, 'developer');
    const codes = await begin();
    okBody(await approve(codes.user_code, {}, developer));
    await test.app.db.query(`update auth.member set role = 'viewer' where "userId" = $1`, [developer.user_id]);
    expect((await poll(codes)).json.error).toBe('access_denied');
  });

  it('gives a key only by people who may make keys', async () => {
    const viewer = await memberOf(test, owner, 'viewer');
    const codes = await begin();
    expect((await approve(codes.user_code, {}, viewer)).status).toBe(403);
    const stranger = await ownerOfNew(test, 'Other');
    const elsewhere = await stranger.post(`${owner.base}/device-login`, { code: codes.user_code, name: 'x' });
    expect(elsewhere.status).toBe(404);
    expect((await poll(codes)).json.error).toBe('authorization_pending');
  });

  it('gives no more scopes than the program has asked for', async () => {
    const codes = await begin({ scope: 'read chat' });
    okBody(await approve(codes.user_code));
    const { json } = await poll(codes);
    expect(json.scope).toBe('chat read');
    const generate = await fetch(`${test.url}/v1/generate`, {
      method: 'POST',
      headers: { authorization: `Bearer ${json.access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox/image', input: { prompt: 'x' } }),
    });
    expect(generate.status).toBe(403);
  });

  it('gives one key to a program that asks many times at once', async () => {
    const codes = await begin();
    okBody(await approve(codes.user_code));
    const answers = await Promise.all(
      Array.from({ length: 8 }, (_, index) => poll(codes, {}, index % 2 === 0 ? test.url : second.url)),
    );
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1);
  });
});

it.each<[string, Record<string, string>, string]>([
  ['/oauth/device_authorization', {}, 'invalid_request'],
  ['/oauth/device_authorization', { client_id: 'x'.repeat(101) }, 'invalid_request'],
  ['/oauth/device_authorization', { client_id: 'a\u202Eb' }, 'invalid_request'],
  ['/oauth/device_authorization', { client_id: 'x', device_name: 'a\u0000b' }, 'invalid_request'],
  ['/oauth/device_authorization', { client_id: 'x', scope: 'admin' }, 'invalid_scope'],
  ['/oauth/token', { grant_type: 'password', device_code: 'x', client_id: 'x' }, 'unsupported_grant_type'],
  ['/oauth/token', { grant_type, client_id: 'x' }, 'invalid_request'],
  ['/oauth/token', { grant_type, device_code: 'no\u0000code', client_id: 'x' }, 'invalid_grant'],
  ['/oauth/revoke', {}, 'invalid_request'],
])('%s refuses %j with %s', async (path, fields, error) => {
  expect(await send(path, fields)).toMatchObject({ status: 400, json: { error } });
});

it('a code of one program gives nothing to another one', async () => {
  const codes = await begin();
  expect((await poll(codes, { client_id: 'other' })).json.error).toBe('invalid_grant');
});

it('a body that is no form, or too long, is refused', async () => {
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  expect((await fetch(`${test.url}/oauth/token`, json)).status).toBe(415);
  expect((await send('/oauth/revoke', { token: 'x'.repeat(9_000) })).status).toBe(413);
});

it('whoever holds a key can end it, and what is no key is answered alike', async () => {
  const { key } = await test.client({ account_id: owner.account_id });
  expect(await callWith(key, second.url)).toBe(200);
  expect((await send('/oauth/revoke', { token: key })).status).toBe(200);
  expect(await callWith(key)).toBe(401);
  await expect.poll(() => callWith(key, second.url)).toBe(401);
  for (const token of [key, 'no key', `mdl_${'0'.repeat(36)}`])
    expect(await send('/oauth/revoke', { token })).toMatchObject({ status: 200, json: {} });
});

it('the node that ends a key refuses it from its answer on', async () => {
  const statuses: number[] = [];
  for (let count = 0; count < 20; count++) {
    const { key } = await test.client({ account_id: owner.account_id });
    statuses.push(await callWith(key));
    await send('/oauth/revoke', { token: key });
    statuses.push(await callWith(key)); // sooner than the message to all nodes comes back, now and then
  }
  expect(statuses).toEqual(statuses.map((_, index) => (index % 2 === 0 ? 200 : 401)));
});

it('wrong codes are guessed at five times by one person, then slower and slower, and right ones do not pay for them', async () => {
  await test.app.db.query('delete from sign_in_tries');
  const guesser = await memberOf(test, owner, 'developer');
  const guess = (code: string) => guesser.post('/dash/device-login', { code });
  const codes = await begin();
  clock.stop(clock.now()); // what has to wait still has to, however slow this machine is
  const statuses: number[] = [];
  for (let guesses = 0; guesses < 10 && statuses.at(-1) !== 429; guesses++) {
    statuses.push((await guess(codes.user_code)).status === 429 ? 429 : (await guess('BCDF-GHJK')).status);
  }
  expect(statuses.at(-1)).toBe(429);
  expect(statuses.filter((status) => status === 404).length).toBeGreaterThanOrEqual(5);
  expect((await guess(codes.user_code)).status).toBe(429);
  clock.run(clock.now());
});

it('twenty programs of one network wait at once, and no more', async () => {
  await test.app.db.query('delete from device_logins');
  const ask = () => send('/oauth/device_authorization', { client_id: 'x' }, second.url);
  // One after another: those that ask at the same moment may pass together.
  for (let count = 0; count < 20; count++) expect((await ask()).status).toBe(200);
  expect(await ask()).toMatchObject({ status: 503, json: { error: 'temporarily_unavailable' } });
});
