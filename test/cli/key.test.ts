import { mkdtemp, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openPlaygroundKey } from '../../src/accounts/keys.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
import { insertKeys } from '../helpers/many-keys.ts';
import { commandsBeside, type Commands } from './medley.ts';

let service: TestApp;
let commands: Commands;

beforeAll(async () => {
  service = await startTestApp();
  commands = commandsBeside(service);
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
});

function withKey(key: string, path: string, body?: object): Promise<Response> {
  return fetch(service.url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** Five cents. */
const audio = { model: 'sandbox/audio', input: { prompt: 'x', duration: 5 } };

describe('the rules of a key', () => {
  it('are set and removed: expiry, scopes and addresses', async () => {
    const { account_id } = await service.client();
    const key = await commands.ok(
      'key',
      'create',
      '--account',
      account_id,
      '--scopes',
      'chat,read',
      '--expires',
      '90d',
    );
    expect(key).toMatchObject({ scopes: ['chat', 'read'], addresses: null, expires_at: expect.stringMatching(/Z$/) });
    expect((await withKey(key.key, '/v1/generate', audio)).status).toBe(403);
    const words = ['--scopes', 'all', '--expires', 'never', '--addresses', '203.0.113.0/24'];
    expect(await commands.ok('key', 'rules', key.id, ...words)).toEqual({
      id: key.id,
      expires_at: null,
      scopes: null,
      addresses: ['203.0.113.0/24'],
      models: null,
      requests_per_minute: null,
      log_content: null,
    });
    await expect.poll(async () => (await withKey(key.key, '/v1/balance')).status).toBe(403);
  });

  it.each([
    [['--scopes', 'admin'], '--scopes must be a list with at least one of chat, media, read'],
    [['--expires', 'yesterday'], '--expires must be a time in the future'],
    [['--addresses', 'example.com'], '--addresses must have addresses such as'],
    [['--models', 'acme/none'], '--models must have names of models: There is no model "acme/none"'],
    [['--per-minute', '0'], '--per-minute must be a whole number from 1'],
    [['--per-minute', 'many'], '--per-minute must be a whole number from 1'],
    [[], 'Name a rule to change'],
  ])('are refused as %j with what to write instead', async (words, message) => {
    const { account_id } = await service.client();
    const { id } = await commands.ok('key', 'create', '--account', account_id);
    expect(await commands.fails(2, 'key', 'rules', id, ...words)).toContain(message);
  });

  it('are refused for the key of the playground, which obeys none', async () => {
    const { account_id } = await service.client();
    const own = { account_id, name: 'Playground', limit_month: null };
    const { id } = await service.app.db.tx((tx) => openPlaygroundKey(tx, own, new Date()));
    expect(await commands.fails(1, 'key', 'rules', id, '--expires', '90d')).toContain('no other rule');
  });
});

describe('models and requests per minute of a key', () => {
  it('are set, shown and removed', async () => {
    const { account_id } = await service.client();
    const words = ['--models', 'audio, sandbox/*', '--per-minute', '2'];
    const key = await commands.ok('key', 'create', '--account', account_id, ...words);
    expect(key).toMatchObject({ models: ['sandbox/audio', 'sandbox/*'], requests_per_minute: 2 });
    const { out: text } = await commands.text('key', 'rules', key.id, '--models', 'sandbox/image');
    expect(text).toContain('with sandbox/image, at most 2 requests per minute of each kind, from anywhere');
    await expect.poll(async () => (await withKey(key.key, '/v1/estimate', audio)).status).toBe(403);
    const off = await commands.ok('key', 'rules', key.id, '--models', 'all', '--per-minute', 'none');
    expect(off).toMatchObject({ models: null, requests_per_minute: null });
    await expect.poll(async () => (await withKey(key.key, '/v1/estimate', audio)).status).toBe(200);
  });
});

describe('the last use of a key', () => {
  it('finds keys by a part of their name, by their last four characters and by their id', async () => {
    const { account_id } = await service.client();
    const key = await commands.ok('key', 'create', '--account', account_id, '--name', 'Shop of Ada');
    for (const search of ['of ada', key.key.slice(-4), key.id]) {
      const { keys } = await commands.ok('key', 'list', '--account', account_id, '--search', search);
      expect(keys.map(({ id }: { id: string }) => id)).toEqual([key.id]);
    }
    expect((await commands.ok('key', 'list', '--account', account_id, '--search', 'nobody')).keys).toEqual([]);
  });

  it('are listed oldest first, all of them', async () => {
    const { account_id } = await service.client();
    const ids = await insertKeys(service.app.db, account_id, 1_100, 'project_none');
    const { keys } = await commands.ok('key', 'list', '--account', account_id);
    expect(keys.map(({ id }: { id: string }) => id).slice(0, ids.length)).toEqual(ids);
    expect(keys).toHaveLength(1_101);
  });

  it('is in the list, with a hint for those that nobody has used for long', async () => {
    const { account_id, key_id } = await service.client();
    const list = async () => (await commands.ok('key', 'list', '--account', account_id)).keys[0];
    expect(await list()).toMatchObject({ last_used_at: null, use_noted_since: null, is_unused: false });
    const set = (column: string, days: number) =>
      service.app.db.query(`update api_keys set ${column} = now() - $2 * interval '1 day' where id = $1`, [
        key_id,
        days,
      ]);
    await set('created_at', 91);
    expect(await list()).toMatchObject({ is_unused: true });
    await set('use_noted_since', 89);
    expect(await list()).toMatchObject({ is_unused: false, use_noted_since: expect.any(String) });
    expect((await commands.text('key', 'list', '--account', account_id)).out).toMatch(
      /not since \d{4}-\d\d-\d\dT\d\d:\d\dZ/,
    );
    await set('last_used_at', 90);
    expect(await list()).toMatchObject({ is_unused: true, last_used_at: expect.any(String) });
    const { out: text } = await commands.text('key', 'list', '--account', account_id);
    expect(text).toContain(`Unused for 90 days, perhaps to be deleted: ${key_id}`);
  });
});

describe('key log', () => {
  it('switches contents of chats on with rules, changes some of them, and off with what is stored', async () => {
    const { account_id, key_id, call } = await service.client();
    const words = ['--days', '7', '--redact', 'email,card', '--pattern', 'EMP-####', 'ID ??'];
    const rules = { keep_days: 7, redact: ['email', 'card'], patterns: ['EMP-####', 'ID ??'] };
    expect(await commands.ok('key', 'log', key_id, 'on', ...words)).toEqual({
      id: key_id,
      log_content: rules,
      deleted: 0,
    });
    const chat = { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hello' }] };
    const stored = async () => {
      const answer = await call('POST', '/v1/chat/completions', chat);
      await service.app.contents.flush();
      return (await call('GET', `/v1/chat/${answer.headers.get('x-request-id')}/content`)).status;
    };
    await expect.poll(stored).toBe(200);
    expect(await commands.ok('key', 'log', key_id, 'on', '--days', '3')).toMatchObject({
      log_content: { ...rules, keep_days: 3 },
    });
    const path = join(await mkdtemp(join(tmpdir(), 'medley-contents-')), 'account.jsonl');
    await commands.ok('account', 'export', account_id, path);
    const lines = (await readFile(path, 'utf8')).trim().split('\n');
    expect(lines[0]).toContain('"type":"chat_content"');
    const off = await commands.ok('key', 'log', key_id, 'off', '--delete');
    expect(off).toEqual({ id: key_id, log_content: null, deleted: lines.length });
    await expect.poll(stored).toBe(404);
  });

  it.each([
    [['on', '--days', '91'], 'must have keep_days from 1 to 90'],
    [['on', '--pattern', 'a*'], 'patterns[0] must have at least 3 characters'],
    [['on', '--delete'], '--delete goes with off'],
    [['maybe'], '"maybe" must be on or off'],
  ])('refuses %j with what to write instead', async (words, message) => {
    const { key_id } = await service.client();
    expect(await commands.fails(2, 'key', 'log', key_id, ...words)).toContain(message);
  });
});

describe('key create', () => {
  it('creates a key that works at once with its limit, and shows it only now', async () => {
    const { account_id } = await service.client();
    const words = ['--account', account_id, '--name', 'CI', '--monthly-limit', '5.00'];
    const new_key = await commands.ok('key', 'create', ...words);
    expect(new_key).toMatchObject({ name: 'CI', monthly_limit: '5.000000' });
    expect(new_key.id).toMatch(/^key_/);
    expect(new_key.key).toMatch(/^mdl_[0-9A-Za-z]{36}$/);
    const answer = await withKey(new_key.key, '/v1/balance');
    expect(await answer.json()).toMatchObject({ key: { spend_limit: { amount: '5.00' } } });
    const { keys } = await commands.ok('key', 'list', '--account', account_id);
    expect(keys.find((key) => key.id === new_key.id)).toMatchObject({
      key: `${new_key.key.slice(0, 8)}…${new_key.key.slice(-4)}`,
      monthly_limit: '5.000000',
      spent: '0.000000',
      held: '0.000000',
      deleted_at: null,
    });
    expect(JSON.stringify(keys)).not.toContain(new_key.key);
  });

  it('prints the key first for a person', async () => {
    const { account_id } = await service.client();
    const { code, out } = await commands.text('key', 'create', '--account', account_id);
    expect(code).toBe(0);
    expect(out).toMatch(/^mdl_\w{36}\nShown only once\. Its id is key_\w+\.\n$/);
  });

  it('needs an existing account, a name and a decimal limit', async () => {
    const failures = await Promise.all([
      commands.fails(2, 'key', 'create'),
      commands.fails(1, 'key', 'create', '--account', 'acct_x'),
      commands.fails(2, 'key', 'create', '--account', 'acct_x', '--monthly-limit', 'five'),
    ]);
    expect(failures.map((message) => /--account|no account|--monthly-limit/.exec(message)?.[0])).toEqual([
      '--account',
      'no account',
      '--monthly-limit',
    ]);
  });
});

describe('key limit', () => {
  it('applies from the next task on, and none removes it', async () => {
    const { key, key_id } = await service.client();
    const create = async () => (await withKey(key, '/v1/generate?wait=30', audio)).status;
    expect(await create()).toBe(202);
    expect(await commands.ok('key', 'limit', key_id, '0.09')).toEqual({ id: key_id, monthly_limit: '0.090000' });
    expect(await create()).toBe(403);
    expect(await commands.ok('key', 'limit', key_id, 'none')).toEqual({ id: key_id, monthly_limit: null });
    expect(await create()).toBe(202);
  });

  it('needs an existing key and a decimal amount', async () => {
    expect(await commands.fails(1, 'key', 'limit', 'key_x', '1')).toBe('There is no key "key_x".');
    expect(await commands.fails(2, 'key', 'limit', 'key_x', 'a lot')).toContain('AMOUNT must be a decimal amount');
  });
});

describe('key delete', () => {
  it('takes effect on a running service, once', async () => {
    const { key, key_id, account_id } = await service.client();
    const status = async () => (await withKey(key, '/v1/key')).status;
    expect(await status()).toBe(200);
    expect(await commands.ok('key', 'delete', key_id)).toEqual({ id: key_id, deleted: true });
    await expect.poll(status).toBe(401);
    const { keys } = await commands.ok('key', 'list', '--account', account_id);
    expect(keys[0]?.deleted_at).toMatch(/^\d{4}-/);
    expect(await commands.fails(1, 'key', 'delete', key_id)).toBe(`There is no key "${key_id}" to delete.`);
  });
});

describe('key rotate', () => {
  it('creates another key of the same name and limit, and the old one works for a day or ends at once', async () => {
    const { key, key_id } = await service.client({ limit: '3' });
    const status = async (text: string) => (await withKey(text, '/v1/key')).status;
    const rotated = await commands.ok('key', 'rotate', key_id);
    expect(rotated).toMatchObject({ name: 'Test', old: { id: key_id } });
    expect([await status(key), await status(rotated.key)]).toEqual([200, 200]);
    expect(await (await withKey(rotated.key, '/v1/key')).json()).toMatchObject({ spend_limit: { amount: '3.00' } });
    expect(await commands.fails(1, 'key', 'rotate', key_id)).toBe(`There is no active key "${key_id}" to rotate.`);
    expect(await commands.fails(2, 'key', 'rotate', rotated.id, '--overlap', '5')).toBe('--overlap must be 0 or 24.');
    await commands.ok('key', 'rotate', rotated.id, '--overlap', '0');
    await expect.poll(() => status(rotated.key)).toBe(401);
  });
});
