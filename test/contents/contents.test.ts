import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { listAudit } from '../../src/accounts/audit.ts';
import type { ContentRules } from '../../src/accounts/content-rules.ts';
import { no_rules } from '../../src/accounts/key-rules.ts';
import { changeKeyRules, createKey } from '../../src/accounts/keys.ts';
import { findContent, removeOldContents } from '../../src/contents/stored.ts';
import { encryptAgain } from '../../src/conversations/removal.ts';
import { contentKeys } from '../../src/db/content.ts';
import { completion, message, generated, setStage, type Stage } from '../chat/setup.ts';
import { expectExactBooks, type Client } from '../helpers/app.ts';

/** Contents of chat calls: stored for keys that say so, redacted, and read by whoever may. */

let stage: Stage;
let client: Client;

beforeAll(async () => {
  stage = await setStage();
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
});
beforeEach(async () => {
  client = await stage.test.client();
});

const all: ContentRules = { keep_days: 7, redact: ['email', 'card'], patterns: ['EMP-####'] };

async function logs(log_content: ContentRules | null, { key_id }: Client = client): Promise<void> {
  await changeKeyRules(stage.test.app.db, key_id, { ...no_rules, log_content });
  stage.test.app.authenticator.invalidate();
}

/** Makes a call, and answers its id once all contents are stored. */
async function chat(body: object, path = '/v1/chat/completions', by = client): Promise<string> {
  const answer = await by.call('POST', path, { max_tokens: 50, ...body });
  await stage.test.app.contents.flush();
  return answer.headers.get('x-request-id') ?? '';
}

const hello = { model: 'acme/oai', messages: [{ role: 'user', content: 'Mail ada@example.com about EMP-1234' }] };

async function contentOf(id: string, by = client) {
  const headers = { authorization: `Bearer ${by.key}` };
  const answer = await fetch(`${stage.test.url}/v1/chat/${id}/content`, { headers });
  return { status: answer.status, content: (await answer.json()) as Record<string, unknown> };
}

async function rows(account_id = client.account_id): Promise<{ id: string; key_id: string | null; content: Buffer }[]> {
  return stage.test.app.db.query(
    'select id, key_id, content, size_bytes from chat_contents where account_id = $1 order by id',
    [account_id],
  );
}

describe('the content of a chat call', () => {
  it('is stored only where its key says so, and from then on', async () => {
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const before = await chat(hello);
    await logs(all);
    stage.upstream.script('gpt-x', { json: completion('Card 4111 1111 1111 1111, for EMP-0001.') });
    const id = await chat({ ...hello, temperature: 0.5 });
    expect(await contentOf(before)).toMatchObject({ status: 404 });
    expect(await contentOf(id)).toMatchObject({
      status: 200,
      content: {
        object: 'chat.content',
        request_id: id,
        key: client.key_id,
        model: 'acme/oai',
        style: 'completions',
        messages: [{ role: 'user', content: 'Mail [email] about [redacted]' }],
        answers: [{ role: 'assistant', content: 'Card [card], for [redacted].' }],
        settings: { temperature: 0.5, max_tokens: 50 },
        is_cut: false,
        redacted: { email: 1, card: 1, pattern: 2 },
      },
    });
    const [row] = await rows();
    expect(row?.content.includes('ada@example.com')).toBe(false);
  });

  it('has the same form for the messages style, with tools', async () => {
    await logs(all);
    const answer = message('Fine.');
    const use = { type: 'tool_use', id: 'toolu_1', name: 'send', input: { to: 'bob@example.com' } };
    stage.upstream.script('claude-x', { json: { ...answer, content: [...answer.content, use] } });
    const id = await chat(
      {
        model: 'acme/ant',
        system: 'Be brief.',
        messages: [
          { role: 'user', content: [{ type: 'text', text: 'Look' }] },
          { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_0', name: 'look', input: { at: 1 } }] },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_0', content: 'A bay' }] },
        ],
      },
      '/v1/messages',
    );
    expect((await contentOf(id)).content).toMatchObject({
      messages: [
        { role: 'system', content: 'Be brief.' },
        { role: 'user', content: [{ type: 'text', text: 'Look' }] },
        { role: 'assistant', tool_calls: [{ id: 'toolu_0', function: { name: 'look', arguments: '{"at":1}' } }] },
        { role: 'tool', tool_call_id: 'toolu_0', content: 'A bay' },
      ],
      answers: [
        {
          content: 'Fine.',
          tool_calls: [{ id: 'toolu_1', type: 'function', function: { name: 'send', arguments: '{"to":"[email]"}' } }],
        },
      ],
    });
  });

  it('has the same form for Gemini’s style, the responses style and texts', async () => {
    await logs(all);
    stage.upstream.script('gemini-x', { json: generated([{ text: 'Ahoy' }]) });
    const gemini = await client.call('POST', '/v1beta/models/acme/gem:generateContent', {
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
    });
    const responses = await chat({ model: 'sandbox/chat', input: 'Hello', max_tokens: undefined }, '/v1/responses');
    const texts = await chat({ model: 'sandbox/chat', prompt: 'Once' }, '/v1/completions');
    expect((await contentOf(gemini.headers.get('x-request-id') ?? '')).content).toMatchObject({
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
      answers: [{ role: 'assistant', content: 'Ahoy' }],
    });
    for (const [id, words] of [
      [responses, 'Hello'],
      [texts, 'Once'],
    ] as const)
      expect((await contentOf(id)).content).toMatchObject({
        messages: [{ role: 'user', content: words }],
        answers: [{ role: 'assistant', content: expect.stringMatching(/\w/) }],
      });
  });

  it.each([
    ['/v1/chat/completions', { messages: [{ role: 'user', content: 'Hello' }] }],
    ['/v1/messages', { messages: [{ role: 'user', content: 'Hello' }] }],
    ['/v1/responses', { input: 'Hello', max_tokens: undefined }],
    ['/v1/completions', { prompt: 'Hello' }],
  ])('of a stream of %s is put together from its events', async (path, body) => {
    await logs(all);
    const whole = await chat({ model: 'sandbox/chat', ...body }, path);
    const streamed = await chat({ model: 'sandbox/chat', ...body, stream: true }, path);
    const { answers } = (await contentOf(whole)).content;
    expect((await contentOf(streamed)).content).toMatchObject({ answers, is_cut: false });
  });

  it('of a call that failed has its request', async () => {
    await logs(all);
    stage.upstream.script('gpt-x', { status: 500, json: { error: { message: 'no' } } });
    const id = await chat(hello);
    expect((await contentOf(id)).content).toMatchObject({ messages: [{ role: 'user' }], answers: [] });
  });

  it('has a note in the place of files, and long texts are cut with a mark', async () => {
    await logs({ ...all, redact: ['card'] });
    const image = `data:image/png;base64,${'iVBORw0KGgo'.repeat(400)}`;
    const content = [
      { type: 'image_url', image_url: { url: image } },
      { type: 'text', text: 'long '.repeat(200_000) },
    ];
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const id = await chat({ model: 'acme/oai', messages: [{ role: 'user', content }, hello.messages[0]] });
    const stored = (await contentOf(id)).content;
    const text = JSON.stringify(stored['messages']);
    expect(stored['is_cut']).toBe(true);
    expect(text).toContain('[image/png of 3300 bytes, not logged]');
    expect(text).toMatch(/long \[… \d+ more characters\]|lon?g? ?\[… \d+ more characters\]/);
    expect(text.length).toBeLessThan(260_000);
    expect(text).toContain('Mail ada@example.com');
  });
});

describe('who reads contents', () => {
  it('is a key of its own calls, or one that only reads; each read is in the audit log with the address', async () => {
    await logs(all);
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const id = await chat(hello);
    const { db } = stage.test.app;
    const make = (scopes: ('read' | 'chat')[] | null) =>
      createKey(
        db,
        { account_id: client.account_id, name: 'Other', limit_month: null, rules: { ...no_rules, scopes } },
        new Date(),
      );
    const [other, reader] = [await make(null), await make(['read'])];
    const read = (key: string) =>
      fetch(`${stage.test.url}/v1/chat/${id}/content`, { headers: { authorization: `Bearer ${key}` } });
    expect((await read(other.text)).status).toBe(404);
    expect((await read(reader.text)).status).toBe(200);
    expect((await contentOf(id, await stage.test.client())).status).toBe(404);
    const { entries } = await listAudit(db, { account_id: client.account_id, action: 'content.read', limit: 5 });
    expect(entries).toEqual([
      expect.objectContaining({ subject: id, actor: `key Other (${reader.key.id})`, address: '127.0.0.1' }),
    ]);
  });

  it('may take them along as lines of JSON, whole or for training', async () => {
    await logs(all);
    const ids = [];
    for (const word of ['One', 'Two']) {
      stage.upstream.script('gpt-x', { json: completion(word) });
      ids.push(await chat(hello));
    }
    const read = async (query = '') => {
      const headers = { authorization: `Bearer ${client.key}` };
      const answer = await fetch(`${stage.test.url}/v1/chat/contents${query}`, { headers });
      expect(answer.headers.get('content-type')).toContain('application/jsonl');
      const text = await answer.text();
      return text === ''
        ? []
        : text
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as Record<string, unknown>);
    };
    const usage = { input_tokens: 10, output_tokens: 5 }; // of the records, which are written behind the answers, too
    await expect
      .poll(() => read())
      .toMatchObject([
        { request_id: ids[0], answers: [{ content: 'One' }], usage, status: 200 },
        { request_id: ids[1], answers: [{ content: 'Two' }], usage, status: 200 },
      ]);
    const [line] = await read('?form=messages');
    expect(line).toEqual({
      messages: [
        { role: 'user', content: 'Mail [email] about [redacted]' },
        { role: 'assistant', content: 'One' },
      ],
    });
    expect(await read('?model=acme/ant')).toEqual([]);
    expect((await client.call('GET', '/v1/chat/contents?form=csv')).status).toBe(400);
  });
});

describe('contents go', () => {
  it('one by one, with their time, and with what the operator allows', async () => {
    await logs(all);
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const id = await chat(hello);
    expect((await client.call('DELETE', `/v1/chat/${id}/content`)).status).toBe(200);
    expect((await contentOf(id)).status).toBe(404);
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const later = await chat(hello);
    const { db, content_keys } = stage.test.app;
    const in_days = (days: number) => new Date(Date.now() + days * 86_400_000);
    const bounds = { keep_ms: 90 * 86_400_000, account_bytes_max: 1_000_000 };
    const name = { account_id: client.account_id, id: later };
    expect(await findContent({ db, content_keys }, name, in_days(6.9))).toBeDefined();
    expect(await findContent({ db, content_keys }, name, in_days(7.1))).toBeUndefined();
    await removeOldContents(db, in_days(6.9), bounds);
    expect(await rows()).toHaveLength(1);
    await removeOldContents(db, in_days(7.1), bounds);
    expect(await rows()).toHaveLength(0);
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    await chat(hello);
    await removeOldContents(db, new Date(Date.now() + 60_000), { ...bounds, keep_ms: 0 });
    expect(await rows()).toHaveLength(0);
  });

  it('when an account has more than it may: the oldest first', async () => {
    await logs(all);
    const ids = [];
    for (const word of ['One', 'Two', 'Three']) {
      stage.upstream.script('gpt-x', { json: completion(word) });
      ids.push(await chat(hello));
    }
    const sizes = (await rows()).map(({ content }) => content.length);
    const account_bytes_max = (sizes[1] ?? 0) + (sizes[2] ?? 0);
    await removeOldContents(stage.test.app.db, new Date(), { keep_ms: 1e10, account_bytes_max });
    expect((await rows()).map(({ id }) => id)).toEqual(ids.slice(1));
  });

  it('nowhere after their key was switched off, not even those that still waited', async () => {
    await logs(all);
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const { db, contents } = stage.test.app;
    await db.tx(async (tx) => {
      // To be stored they wait for the row of their key.
      await tx.query('select from api_keys where id = $1 for update', [client.key_id]);
      const answer = await client.call('POST', '/v1/chat/completions', hello);
      expect(answer.status).toBe(200);
      await changeKeyRules(tx, client.key_id, { ...no_rules, log_content: null });
    });
    await contents.flush();
    expect(await rows()).toEqual([]);
  });

  it('to the current secret when it changes, so that the secret before can be forgotten', async () => {
    await logs(all);
    stage.upstream.script('gpt-x', { json: completion('Hi') });
    const id = await chat(hello);
    const { db, log } = stage.test.app;
    const keys = contentKeys({ secret: 'a new secret of 32 characters, or more', secret_before: undefined });
    const [before] = await rows();
    const from = stage.test.app.content_keys.readable;
    await encryptAgain({ db, log, content_keys: { ...keys, readable: [...keys.readable, ...from] } });
    const [after] = await rows();
    expect(after?.key_id).toBe(keys.current?.id);
    expect(after?.key_id).not.toBe(before?.key_id);
    const content = await findContent({ db, content_keys: keys }, { account_id: client.account_id, id }, new Date());
    expect(content?.content).toMatchObject({ answers: [{ content: 'Hi' }] });
    await encryptAgain({
      db,
      log,
      content_keys: { ...stage.test.app.content_keys, readable: [...from, ...keys.readable] },
    });
  });
});
