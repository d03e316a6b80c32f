import { mkdtemp, readFile, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addVersion, createPrompt } from '../../src/accounts/prompts.ts';
import { expectExactBooks, startTestApp, type TestApp } from '../helpers/app.ts';
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

const blankPng = () =>
  sharp({ create: { width: 8, height: 8, channels: 3, background: 'white' } })
    .png()
    .toBuffer();

const image = { model: 'sandbox/image', input: { prompt: 'x' } };

describe('account create', () => {
  it('creates an account with a first top-up in one of the currencies', async () => {
    const account = await commands.ok('account', 'create', '--name', 'Żółw', '--currency', 'PLN', '--credit', '25.00');
    expect(Object.keys(account)).toEqual(
      expect.arrayContaining(['id', 'name', 'currency', 'balance', 'webhook_secret', 'status']),
    );
    expect(account).toMatchObject({ name: 'Żółw', currency: 'PLN', balance: '25.000000', status: 'active' });
    expect(account.id).toMatch(/^acct_/);
    expect(account.webhook_secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    const client = await service.client({ account_id: account.id });
    expect((await client.call('GET', '/v1/balance')).json.balance).toEqual({
      amount: '25.00',
      currency: 'PLN',
      exact: '25.000000',
    });
  });

  it('uses the base currency and no credit by default, and prints three lines for a person', async () => {
    const { code, out } = await commands.text('account', 'create', '--name', 'Plain');
    expect(code).toBe(0);
    expect(out).toMatch(/^acct_\w+\nbalance 0\.000000 USD\nwebhook secret whsec_\S+\n$/);
  });

  it.each([
    ['a missing name', [], '--name'],
    ['an unknown currency', ['--name', 'N', '--currency', 'usd'], 'Did you mean USD?'],
  ])('refuses %s as a usage error', async (_, words, message) => {
    expect(await commands.fails(2, 'account', 'create', ...words)).toContain(message);
  });
});

describe('account credit', () => {
  it('books each --ref once, and refuses another amount under the same --ref', async () => {
    const { account_id } = await service.client({ credit: '1' });
    const credit = (amount: string) => ['account', 'credit', account_id, amount, '--reason', 'invoice', '--ref', 'f-1'];
    expect(await commands.ok(...credit('0.000001'))).toMatchObject({ balance: '1.000001', booked: true });
    expect(await commands.ok(...credit('0.000001'))).toMatchObject({ balance: '1.000001', booked: false });
    const written = await service.app.db.query(
      `select actor, details ->> 'ref' as ref from audit_entries where account_id = $1 and action = 'account.credit'`,
      [account_id],
    );
    expect(written).toEqual([{ actor: 'command line', ref: 'f-1' }]);
    expect(await commands.fails(1, ...credit('5'))).toBe(
      '--ref f-1 was booked before, with another amount. Nothing was booked.',
    );
    expect(await commands.ok('account', 'show', account_id)).toMatchObject({ balance: '1.000001' });
  });

  it('books a --ref once when it runs twice at the same moment', async () => {
    const { account_id } = await service.client({ credit: '1' });
    const words = ['account', 'credit', account_id, '2', '--reason', 'r', '--ref', 'twice'];
    const answers = await Promise.all([commands.ok(...words), commands.ok(...words)]);
    expect(answers.map(({ booked }) => booked).toSorted()).toEqual([false, true]);
    expect(await commands.ok('account', 'show', account_id)).toMatchObject({ balance: '3.000000' });
  });

  it('refuses a --ref that was booked with the other sign or for another account', async () => {
    const { account_id } = await service.client({ credit: '9' });
    const other = await service.client({ credit: '9' });
    const credit = (account: string, amount: string) =>
      ['account', 'credit', account, amount, '--reason', 'r', '--ref', 'bank-7'] as const;
    expect(await commands.ok(...credit(account_id, '5'))).toMatchObject({ balance: '14.000000', booked: true });
    expect(await commands.fails(1, ...credit(account_id, '-5'))).toBe(
      '--ref bank-7 was booked before, with another amount. Nothing was booked.',
    );
    expect(await commands.fails(1, ...credit(other.account_id, '5'))).toBe(
      '--ref bank-7 was booked before, for another account. Nothing was booked.',
    );
    expect(await commands.ok('account', 'show', other.account_id)).toMatchObject({ balance: '9.000000' });
  });

  it('withdraws with a minus, down to zero and never further', async () => {
    const { account_id, call } = await service.client({ credit: '3' });
    await call('POST', '/v1/generate', { ...image, input: { prompt: '[[delay 1h]]' } });
    const credit = (amount: string) => ['account', 'credit', account_id, amount, '--reason', 'correction'];
    expect(await commands.fails(1, ...credit('-3'))).toBe('Only 2.990000 USD is available. Nothing was booked.');
    const after = await commands.ok(...credit('-2.99'));
    expect(after).toMatchObject({ balance: '0.010000', held: '0.010000', available: '0.000000' });
  });

  it('never lets an account exceed a billion', async () => {
    const { account_id } = await service.client({ credit: '1' });
    const credit = (amount: string) => ['account', 'credit', account_id, amount, '--reason', 'r'];
    expect(await commands.fails(1, ...credit('1000000000'))).toContain('would have more than 1000000000.000000 USD');
    expect(await commands.fails(2, ...credit('1000000001'))).toContain('not above 1000000000.000000');
  });

  it.each([
    ['an empty reason', ['1', '--reason', ''], '--reason must have 1 to 500 characters'],
    ['an empty reference', ['1', '--reason', 'r', '--ref', ''], '--ref must have 1 to 255 characters'],
    ['a seventh fraction digit', ['0.0000001', '--reason', 'r'], 'AMOUNT must be a decimal amount'],
  ])('refuses %s as a usage error', async (_, words, message) => {
    expect(await commands.fails(2, 'account', 'credit', 'acct_x', ...words)).toContain(message);
  });

  it('names the unknown account', async () => {
    expect(await commands.fails(1, 'account', 'credit', 'acct_x', '1', '--reason', 'r')).toBe(
      'There is no account "acct_x". "medley account list" shows them.',
    );
  });

  it('says which id has the name that was typed in its place', async () => {
    const { id } = await commands.ok('account', 'create', '--name', 'Quince & Sons');
    expect(await commands.fails(1, 'account', 'block', 'Quince & Sons')).toBe(
      `There is no account "Quince & Sons". Do you mean ${id} (Quince & Sons)?`,
    );
  });
});

describe('account list and account show', () => {
  it('print the same, and the list has all accounts, oldest first', async () => {
    const { account_id } = await service.client({ currency: 'PLN', credit: '7.5' });
    const [shown, { accounts }] = await Promise.all([
      commands.ok('account', 'show', account_id),
      commands.ok('account', 'list'),
    ]);
    expect(shown).toMatchObject({ id: account_id, currency: 'PLN', balance: '7.500000', held: '0.000000' });
    expect(accounts.at(-1)).toEqual(shown);
    const { out } = await commands.text('account', 'list');
    expect(out.split('\n')[0]).toMatch(/^account +name +currency +balance +held +status$/);
    expect(out).toMatch(new RegExp(`^${account_id} +Test +PLN +7.500000 +0.000000 +active$`, 'm'));
  });
});

describe('account rename', () => {
  it('gives an account another name, which the audit log has with the one before', async () => {
    const { account_id } = await service.client();
    expect(await commands.ok('account', 'rename', account_id, ' Weiss & Co ')).toEqual({
      id: account_id,
      name: 'Weiss & Co',
    });
    expect(await commands.ok('account', 'show', account_id)).toMatchObject({ name: 'Weiss & Co' });
    const { out } = await commands.text('account', 'rename', account_id, 'Weiss');
    expect(out).toBe(`${account_id} is named Weiss\n`);
    const entries = await service.app.db.query(
      `select details from audit_entries where account_id = $1 and action = 'account.rename' order by id`,
      [account_id],
    );
    expect(entries).toEqual([
      { details: { name: 'Weiss & Co', name_before: 'Test' } },
      { details: { name: 'Weiss', name_before: 'Weiss & Co' } },
    ]);
  });

  it('refuses an empty name and an account that there is not', async () => {
    const { account_id } = await service.client();
    expect(await commands.fails(2, 'account', 'rename', account_id, ' ')).toContain('NAME');
    expect(await commands.fails(1, 'account', 'rename', 'acct_no', 'Name')).toContain('There is no account');
  });
});

describe('account block', () => {
  it('stops new work on a running service, but not reads, and unblock permits work again', async () => {
    const { account_id, call } = await service.client();
    const status = async () => (await call('POST', '/v1/generate', image)).status;
    expect(await status()).toBe(202);
    expect(await commands.ok('account', 'block', account_id)).toMatchObject({ id: account_id, status: 'blocked' });
    await expect.poll(status).toBe(403);
    expect((await call('GET', '/v1/balance')).status).toBe(200);
    expect(await commands.ok('account', 'unblock', account_id)).toMatchObject({ status: 'active' });
    await expect.poll(status).toBe(202);
  });
});

describe('account export', () => {
  const linesOf = async (path: string) => {
    const text = await readFile(path, 'utf8');
    return text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]));
  };
  const fresh = async () => join(await mkdtemp(join(tmpdir(), 'medley-export-')), 'account.jsonl');

  it('writes all responses and conversations of one account, and of no other, to a new file', async () => {
    const { account_id, call } = await service.client();
    const stranger = await service.client();
    const create = async (body: object, by = call) =>
      (await by('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello', ...body })).json;
    const whole = await create({ input: 'My words' });
    await create({ store: false });
    await create({}, stranger.call);
    const { json: conversation } = await call('POST', '/v1/conversations', { metadata: { topic: 'weather' } });
    const inside = await create({ input: 'And now?', conversation: conversation.id });
    const failed = await create({ input: '[[cut]] Hello', background: true });
    await expect.poll(async () => (await call('GET', `/v1/responses/${failed.id}`)).json.status).toBe('failed');
    const path = await fresh();
    const headers = (
      await call('POST', '/v1/chat/completions', { model: 'sandbox/chat', messages: [{ role: 'user', content: 'Hi' }] })
    ).headers;
    await call('POST', '/v1/feedback', {
      reference_id: headers.get('x-request-id'),
      score: true,
      comment: 'My opinion',
    });
    const { db } = service.app;
    const now = new Date();
    const prompt = { account_id, user_id: 'nobody', name: 'Letter', body: '{"system":"Be kind"}' };
    const created = await createPrompt(db, prompt, now);
    if (typeof created === 'string') throw new Error(created);
    await addVersion(db, { ...prompt, id: created.id, body: '{"system":"Be brief"}' }, now);
    const hook = { url: 'https://example.com/', events: ['*'] };
    const { json: endpoint } = await call('POST', '/v1/webhook_endpoints', hook);
    await stranger.call('POST', '/v1/webhook_endpoints', hook);
    await db.query(
      `insert into refusals values ($1, '2026-11-29T15:00:00Z', 'rate_limit', 'key_1', 'default', '', '', 3)`,
      [account_id],
    );
    const content_counts = { responses: 3, conversations: 1, items: 2, contents: 0 };
    const counts = { ...content_counts, feedback: 1, prompts: 2, endpoints: 1, refusals: 1, unreadable: 0 };
    expect(await commands.ok('account', 'export', account_id, path)).toEqual({ id: account_id, ...counts, file: path });
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const all = await linesOf(path);
    expect(all.slice(-5)).toMatchObject([
      { type: 'feedback', score: 1, comment: 'My opinion' },
      { type: 'prompt', id: created.id, name: 'Letter', version: 1, prompt: { system: 'Be kind' } },
      { type: 'prompt', id: created.id, version: 2, prompt: { system: 'Be brief' } },
      { type: 'webhook_endpoint', id: endpoint.id, ...hook, enabled: true },
      { type: 'refusal', start: '2026-11-29T15:00:00.000Z', reason: 'rate_limit', key_id: 'key_1', count: 3 },
    ]);
    expect(JSON.stringify(all)).not.toContain('whsec_');
    const lines = all.slice(0, -5);
    const userMessage = (text: string) => [{ role: 'user', content: [{ type: 'input_text', text }] }];
    expect(lines).toMatchObject([
      { type: 'response', id: whole.id, content: { response: whole, input: userMessage('My words') } },
      { type: 'response', id: inside.id, content: { response: { output: inside.output } } },
      {
        type: 'response',
        id: failed.id,
        content: { response: { status: 'failed' }, input: userMessage('[[cut]] Hello') },
      },
      { type: 'conversation', id: conversation.id, metadata: { topic: 'weather' } },
      { type: 'conversation_item', conversation_id: conversation.id, content: { role: 'user' } },
      { type: 'conversation_item', conversation_id: conversation.id, content: { role: 'assistant' } },
    ]);
    const entries = await service.app.db.query('select action, details from audit_entries where account_id = $1', [
      account_id,
    ]);
    expect(entries).toContainEqual({ action: 'account.export', details: counts });
    const before = await readFile(path, 'utf8');
    expect(await commands.fails(1, 'account', 'export', account_id, path)).toContain('cannot be made');
    expect(await readFile(path, 'utf8')).toBe(before);
  });

  it('says how many responses no secret opens, and refuses an account that is none', async () => {
    const { account_id, call } = await service.client();
    const { json } = await call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello' });
    await service.app.db.query("update stored_responses set key_id = 'lost' where id = $1", [json.id]);
    const path = await fresh();
    expect(await commands.ok('account', 'export', account_id, path)).toMatchObject({ responses: 1, unreadable: 1 });
    expect(await linesOf(path)).toEqual([{ type: 'response', id: json.id, content: null }]);
    const nowhere = await fresh();
    expect(await commands.fails(1, 'account', 'export', 'acct_none', nowhere)).toContain('There is no account');
    await expect(stat(nowhere)).rejects.toThrow('ENOENT');
  });
});

describe('account delete', () => {
  it('deletes an account that never had money or work, with its keys; the audit log remembers it', async () => {
    const { id } = await commands.ok('account', 'create', '--name', 'Mistake', '--currency', 'PLN');
    const account_id = String(id);
    const { call, key_id } = await service.client({ account_id });
    expect((await call('GET', '/v1/balance')).status).toBe(200);
    expect(await commands.ok('account', 'delete', account_id)).toEqual({ id, deleted: true });
    await expect.poll(async () => (await call('GET', '/v1/balance')).status).toBe(401);
    expect(await commands.fails(1, 'account', 'show', account_id)).toContain('There is no account');
    const { db } = service.app;
    expect(await db.query('select id from api_keys where id = $1', [key_id])).toEqual([]);
    const entries = await db.query('select action from audit_entries where account_id = $1 order by id', [account_id]);
    expect(entries).toEqual([{ action: 'account.create' }, { action: 'account.delete' }]);
    await expectExactBooks(service.app);
  });

  it('refuses one that had money, even if nothing is left of it, and says what to do', async () => {
    const { id } = await commands.ok('account', 'create', '--name', 'Spent', '--credit', '1');
    await commands.ok('account', 'credit', String(id), '-1', '--reason', 'gone');
    expect(await commands.fails(1, 'account', 'delete', String(id))).toBe(
      `The account has entries in its ledger, which are never deleted. "medley account block ${id}" stops new work, and "medley account responses ${id} off" deletes the responses, conversations and contents of calls that are stored for it.`,
    );
  });

  it('refuses one with work on record, and changes nothing', async () => {
    const { id } = await commands.ok('account', 'create', '--name', 'Busy');
    const account_id = String(id);
    const { key } = await service.client({ account_id });
    const form = new FormData();
    form.set('purpose', 'vision');
    form.set('file', new Blob([await blankPng()]), 'blank.png');
    const headers = { authorization: `Bearer ${key}` };
    const { status } = await fetch(`${service.url}/v1/files`, { method: 'POST', headers, body: form });
    expect(status).toBeLessThan(300);
    expect(await commands.fails(1, 'account', 'delete', account_id)).toContain('The account has work on record');
    expect(await commands.ok('account', 'show', account_id)).toMatchObject({ id });
  });
});
