import { afterAll, beforeAll, expect, it } from 'vitest';
import { createKey, deleteKey } from '../../src/accounts/keys.ts';
import type { KeysView, KeyView, NewKeyView } from '../../src/dashboard/views/keys.ts';
import { startTestApp, type TestApp } from '../helpers/app.ts';
import type { Seen } from '../helpers/person.ts';
import { memberOf, ownerOfNew, type Someone } from './people.ts';

let test: TestApp;
let owner: Someone;
let stranger: Someone;

beforeAll(async () => {
  test = await startTestApp({ worker: false });
  [owner, stranger] = await Promise.all([ownerOfNew(test), ownerOfNew(test, 'Foreign')]);
});

afterAll(() => test.stop());

const newKeyIn = ({ status, json }: Seen): NewKeyView => {
  expect(status).toBe(201);
  return json as NewKeyView;
};

async function listed(who: Someone = owner): Promise<KeyView[]> {
  const { status, json } = await who.get(`${who.base}/keys`);
  expect(status).toBe(200);
  return (json as KeysView).data;
}

const create = async (body: object, who = owner) => newKeyIn(await who.post(`${who.base}/keys`, body));

async function opens(secret: string): Promise<boolean> {
  const { status } = await fetch(`${test.url}/v1/balance`, { headers: { authorization: `Bearer ${secret}` } });
  expect([200, 401]).toContain(status);
  return status === 200;
}

/** The word of a key that was ended reaches this node by NOTIFY, or by itself within a second. */
const ends = (secret: string) => expect.poll(() => opens(secret)).toBe(false);

it('a key is created, shown once, and works at once', async () => {
  const { key, secret } = await create({ name: '  CI ', limit: '25.5' });
  expect(secret).toMatch(/^mdl_[0-9A-Za-z]{36}$/);
  expect(key).toMatchObject({
    name: 'CI',
    shown_as: `${secret.slice(0, 8)}…${secret.slice(-4)}`,
    state: 'active',
    limit: { amount: '25.50', currency: 'USD' },
    spent: { amount: '0.00' },
    used_percent: 0,
  });
  const keys = await owner.get(`${owner.base}/keys`);
  expect((keys.json as KeysView).data[0]).toEqual(key); // its last use comes into the list a second after it
  expect(keys.text).not.toContain(secret);
  expect(await opens(secret)).toBe(true);
  const written = await test.app.db.query<{ all: string }>(
    `select coalesce(string_agg(a::text, ' '), '') || (select string_agg(k::text, ' ') from api_keys k) as all
       from audit_entries a where subject = $1`,
    [key.id],
  );
  expect(written[0]?.all).toContain('key.create');
  expect(written[0]?.all).not.toContain(secret);
});

it('a key without a limit has no bar, and one with nothing left has a full one', async () => {
  const { key } = await create({ name: 'Free' });
  expect(key).toMatchObject({ limit: null, used_percent: null });
  expect((await create({ name: 'Shut', limit: '0' })).key).toMatchObject({ used_percent: 100 });
});

it.each([
  [{}, 'name'],
  [{ name: ' ' }, 'name'],
  [{ name: 'x'.repeat(101) }, 'name'],
  [{ name: 7 }, 'name'],
  [{ name: 'a\0b' }, 'name'],
  [{ name: 'x', limit: 5 }, 'limit'],
  [{ name: 'x', limit: '-1' }, 'limit'],
  [{ name: 'x', limit: '1e3' }, 'limit'],
  [{ name: 'x', limit: '99999999999' }, 'limit'],
])('the key settings %j are refused and %s is named', async (body, param) => {
  const { status, json } = await owner.post(`${owner.base}/keys`, body);
  expect(status).toBe(400);
  expect(json).toMatchObject({ error: { param } });
});

it('a key gets another name and limit, and loses its limit', async () => {
  const { key, secret } = await create({ name: 'Before', limit: '5' });
  const path = `${owner.base}/keys/${key.id}`;
  const renamed = await owner.send('PATCH', path, { name: 'After' });
  expect(renamed.json).toMatchObject({ name: 'After', limit: { amount: '5.00' } });
  expect((await owner.send('PATCH', path, { limit: '7' })).json).toMatchObject({ limit: { amount: '7.00' } });
  expect((await owner.send('PATCH', path, { limit: null })).json).toMatchObject({ name: 'After', limit: null });
  expect((await listed()).find(({ id }) => id === key.id)).toMatchObject({ name: 'After', limit: null });
  expect(await opens(secret)).toBe(true);
});

it('a deleted key opens nothing any more and stays in the list', async () => {
  const { key, secret } = await create({ name: 'Short' });
  expect(await opens(secret)).toBe(true);
  const path = `${owner.base}/keys/${key.id}`;
  expect((await owner.send('DELETE', path)).status).toBe(200);
  await ends(secret);
  expect((await listed()).find(({ id }) => id === key.id)).toMatchObject({ state: 'deleted' });
  expect((await owner.send('DELETE', path)).status).toBe(409);
  expect((await owner.send('PATCH', path, { name: 'x' })).status).toBe(409);
  expect((await owner.post(`${path}/rotate`, { overlap_hours: 0 })).status).toBe(409);
});

it('a rotated key works beside the new one for a day, if requested', async () => {
  const { key, secret } = await create({ name: 'Worker', limit: '12' });
  const path = `${owner.base}/keys/${key.id}/rotate`;
  expect((await owner.post(path, { overlap_hours: 1 })).status).toBe(400);
  const fresh = newKeyIn(await owner.post(path, { overlap_hours: 24 }));
  expect(fresh.key).toMatchObject({ name: 'Worker', limit: { amount: '12.00' }, state: 'active' });
  expect([await opens(secret), await opens(fresh.secret)]).toEqual([true, true]);
  const old = (await listed()).find(({ id }) => id === key.id);
  expect(old?.state).toBe('ending');
  const left_ms = Date.parse(old?.ends_at ?? '') - Date.now();
  expect(Math.abs(left_ms - 86_400_000)).toBeLessThan(60_000);
  expect((await owner.post(path, { overlap_hours: 24 })).status).toBe(409);

  await test.app.db.query(`update api_keys set deleted_at = now() - interval '1 s' where id = $1`, [key.id]);
  await ends(secret);
  expect(await opens(fresh.secret)).toBe(true);
  expect((await listed()).find(({ id }) => id === key.id)?.state).toBe('deleted');
});

it('a rotated key can be ended before its day is over', async () => {
  const { key, secret } = await create({ name: 'Leaked' });
  await owner.post(`${owner.base}/keys/${key.id}/rotate`, { overlap_hours: 24 });
  expect((await owner.send('DELETE', `${owner.base}/keys/${key.id}`)).status).toBe(200);
  await ends(secret);
});

it('two members who rotate the same key at once create one new key', async () => {
  const { key } = await create({ name: 'Twice' });
  const path = `${owner.base}/keys/${key.id}/rotate`;
  const answers = await Promise.all([1, 2, 3].map(() => owner.post(path, { overlap_hours: 0 })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([201, 409, 409]);
  expect((await listed()).filter(({ name, state }) => name === 'Twice' && state === 'active')).toHaveLength(1);
});

it('a deletion by a node whose clock is ahead applies at once', async () => {
  const { text, key } = await createKey(
    test.app.db,
    { account_id: owner.account_id, name: 'x', limit_month: null },
    new Date(),
  );

  expect(await deleteKey(test.app.db, key.id, new Date(Date.now() + 3_600_000))).toBe(true);
  expect(await opens(text)).toBe(false);
});

it.each(['billing', 'viewer'] as const)('a member with the role %s sees keys and changes none', async (role) => {
  const member = await memberOf(test, owner, role);
  const { key } = await create({ name: 'Theirs' });
  expect((await listed(member)).length).toBeGreaterThan(0);
  const path = `${owner.base}/keys`;
  const answers = await Promise.all([
    member.post(path, { name: 'x' }),
    member.send('PATCH', `${path}/${key.id}`, { name: 'x' }),
    member.post(`${path}/${key.id}/rotate`, { overlap_hours: 0 }),
    member.send('DELETE', `${path}/${key.id}`),
  ]);
  for (const { status, json } of answers) {
    expect(status).toBe(403);
    expect(json).toMatchObject({ error: { message: expect.stringContaining(`(${role})`) } });
  }
  expect((await listed()).find(({ id }) => id === key.id)).toMatchObject({ name: 'Theirs', state: 'active' });
});

it('a key gets its rules when it is created or changed, keeps them when it is rotated, and a mistake names its field', async () => {
  const rules = { expires_at: '30d', scopes: ['read', 'chat'], addresses: ['127.0.0.1', '10.0.0.0/8'] };
  const { key } = await create({ name: 'Ruled', ...rules });
  expect(key).toMatchObject({ scopes: ['chat', 'read'], addresses: ['127.0.0.1/32', '10.0.0.0/8'], state: 'active' });
  expect(Date.parse(key.expires_at ?? '') - Date.now()).toBeGreaterThan(29 * 86_400_000);
  const rotated = newKeyIn(await owner.post(`${owner.base}/keys/${key.id}/rotate`, { overlap_hours: 0 }));
  const { scopes, addresses, expires_at } = key;
  expect(rotated.key).toMatchObject({ scopes, addresses, expires_at });
  const path = `${owner.base}/keys/${rotated.key.id}`;
  const { json } = await owner.send('PATCH', path, { scopes: null, addresses: [] });
  expect(json).toMatchObject({ scopes: null, addresses: null, expires_at });
  for (const [name, wrong] of [
    ['expires_at', '2020-01-01'],
    ['scopes', []],
    ['addresses', ['example.com']],
  ] as const) {
    const refused = await owner.send('PATCH', path, { [name]: wrong });
    expect(refused).toMatchObject({ status: 400, json: { error: { param: name } } });
  }
});

it('two members who change different rules of a key at once both have their way', async () => {
  const { db } = test.app;
  const { key } = await create({ name: 'Shared' });
  const change = (rules: object) => owner.send('PATCH', `${owner.base}/keys/${key.id}`, rules);
  const waiting = `select from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock' and query like 'update api_keys%'`;
  const { answering } = await db.tx(async (tx) => {
    await tx.query('select from api_keys where id = $1 for update', [key.id]);
    const changes = Promise.all([change({ scopes: ['chat'] }), change({ requests_per_minute: 7 })]);
    await expect.poll(async () => (await db.query(waiting)).length).toBe(2);
    return { answering: changes };
  });
  expect((await answering).map(({ status }) => status)).toEqual([200, 200]);
  const both = { scopes: ['chat'], requests_per_minute: 7 };
  expect((await listed()).find(({ id }) => id === key.id)).toMatchObject(both);
});

it('a key gets models and requests per minute, keeps them when it is rotated, and that of the playground has no such rule', async () => {
  const { key } = await create({ name: 'Narrow', models: ['image', 'sandbox/*'], requests_per_minute: 7 });
  const rules = { models: ['sandbox/image', 'sandbox/*'], requests_per_minute: 7 };
  expect(key).toMatchObject(rules);
  const rotated = newKeyIn(await owner.post(`${owner.base}/keys/${key.id}/rotate`, { overlap_hours: 0 }));
  expect(rotated.key).toMatchObject(rules);
  const path = `${owner.base}/keys/${rotated.key.id}`;
  for (const [name, wrong] of [
    ['models', ['acme/none']],
    ['models', 'sandbox/image'],
    ['requests_per_minute', 0],
    ['requests_per_minute', 1.5],
    ['requests_per_minute', '60'],
  ] as const) {
    const refused = await owner.send('PATCH', path, { [name]: wrong });
    expect(refused).toMatchObject({ status: 400, json: { error: { param: name } } });
  }
  const none = { models: null, requests_per_minute: null };
  expect((await owner.send('PATCH', path, { models: [], requests_per_minute: null })).json).toMatchObject(none);
  await owner.post(`${owner.base}/estimate`, { model: 'sandbox/image', input: { prompt: 'x' } });
  const playground = (await listed()).find(({ kind }) => kind === 'playground');
  const of_playground = `${owner.base}/keys/${playground?.id}`;
  const others = { expires_at: '30d', scopes: ['read'], addresses: ['203.0.113.7'] };
  for (const [name, value] of Object.entries({ ...rules, ...others })) {
    const refused = await owner.send('PATCH', of_playground, { [name]: value });
    expect(refused).toMatchObject({ status: 400, json: { error: { param: name } } });
  }
  const log_content = { keep_days: 7, redact: [], patterns: [] };
  const change = { name: 'Ours', expires_at: null, scopes: null, addresses: [], log_content };
  expect((await owner.send('PATCH', of_playground, change)).json).toMatchObject({ name: 'Ours', log_content });
  await owner.send('PATCH', of_playground, { name: playground?.name, log_content: null });
});

it('the list shows when a key was last used, within seconds', async () => {
  const { key, secret } = await create({ name: 'Used' });
  const find = async () => (await listed()).find(({ id }) => id === key.id);
  expect(await find()).toMatchObject({ last_used_at: null, use_noted_since: null, is_unused: false });
  const begun_ms = Date.now();
  expect(await opens(secret)).toBe(true);
  await expect.poll(async () => (await find())?.last_used_at).toEqual(expect.any(String));
  expect(Date.parse((await find())?.last_used_at ?? '')).toBeGreaterThan(begun_ms - 60_000);
});

it('a developer creates keys', async () => {
  const member = await memberOf(test, owner, 'developer');
  expect(await opens((await create({ name: 'Dev' }, member)).secret)).toBe(true);
});

it('foreign and unknown keys get the same response', async () => {
  const { key } = await create({ name: 'Foreign' }, stranger);
  const path = (id: string) => `${owner.base}/keys/${id}`;
  const unknown = `${key.id.slice(0, -4)}0000`;
  for (const send of [
    (id: string) => owner.send('PATCH', path(id), { name: 'x' }),
    (id: string) => owner.send('DELETE', path(id)),
    (id: string) => owner.post(`${path(id)}/rotate`, { overlap_hours: 0 }),
  ]) {
    const [foreign, none] = [await send(key.id), await send(unknown)];
    expect(foreign.status).toBe(404);
    expect(JSON.stringify(foreign.json).replaceAll(/req_\w+/g, '')).toBe(
      JSON.stringify(none.json).replaceAll(/req_\w+/g, ''),
    );
  }
  expect((await owner.get(`${stranger.base}/keys`)).status).toBe(404);
  expect((await owner.post(`${stranger.base}/keys`, { name: 'x' })).status).toBe(404);
  expect((await listed(stranger)).find(({ id }) => id === key.id)).toMatchObject({ name: 'Foreign', state: 'active' });
});
