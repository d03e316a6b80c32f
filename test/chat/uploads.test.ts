import Anthropic0 from 'anthropic-0';
import Anthropic1 from 'anthropic-1';
import OpenAI6 from 'openai-6';
import OpenAI7 from 'openai-7';
import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { completion, generated, message, setStage, type Stage } from './setup.ts';
import { response, messageItem } from './responses-streams.ts';
import { completionsStream } from './streams.ts';

/** Files that callers upload once and name in chat by their ids, in every style and for every upstream. */

const in_responses = `
  - id: acme/res
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: res-x, options: { responses: always } }]
`;

let stage: Stage;
let png: Buffer;
const pdf = Buffer.from('%PDF-1.4\n1 0 obj\n<<>>\nendobj\ntrailer\n<<>>\n%%EOF\n');
const text = 'Grüße an Łódź';
const ids = { image: '', pdf: '', text: '' };

beforeAll(async () => {
  stage = await setStage({ more: in_responses });
  png = await readFile(new URL('../../docs/hello.png', import.meta.url));
  const openai = new OpenAI7({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key });
  const upload = async (bytes: Buffer, name: string) =>
    (await openai.files.create({ file: new File([new Uint8Array(bytes)], name), purpose: 'user_data' })).id;
  ids.image = await upload(png, 'a.png');
  ids.pdf = await upload(pdf, 'b.pdf');
  ids.text = await upload(Buffer.from(text), 'c.txt');
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  stage.upstream.script('gemini-x', { json: generated([{ text: 'Hi' }]) });
  stage.upstream.script('res-x', { json: response([messageItem('Hi')]) });
});
afterEach(async () => {
  await expectFreeMemory();
  await expectExactBooks(stage.test.app);
});
afterAll(() => stage.stop());

async function expectFreeMemory(): Promise<void> {
  const { link_memory } = stage.test.app.limits;
  await expect.poll(() => link_memory.inUse(stage.client.account_id)).toBe(0);
}

const bodies = {
  'chat/completions': () => ({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          ...[ids.image, ids.pdf, ids.text].map((file_id) => ({ type: 'file', file: { file_id } })),
        ],
      },
    ],
  }),
  messages: () => ({
    max_tokens: 100,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'Look.' },
          { type: 'image', source: { type: 'file', file_id: ids.image } },
          ...[ids.pdf, ids.text].map((file_id) => ({ type: 'document', source: { type: 'file', file_id } })),
        ],
      },
    ],
  }),
  responses: () => ({
    input: [
      {
        role: 'user',
        content: [
          { type: 'input_text', text: 'Look.' },
          { type: 'input_image', file_id: ids.image },
          ...[ids.pdf, ids.text].map((file_id) => ({ type: 'input_file', file_id })),
        ],
      },
    ],
  }),
};
const paths = ['chat/completions', 'messages', 'responses'] as const;
const upstreams = ['acme/oai', 'acme/ant', 'acme/gem', 'acme/res'];
const cells = paths.flatMap((path) => upstreams.map((model) => [path, model] as const));

test.each(cells)('%s gives the bytes of uploaded files to the upstream of %s', async (path, model) => {
  const answer = await stage.client.call('POST', `/v1/${path}`, { model, ...bodies[path]() });
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Hi')]);
  const sent = JSON.stringify(stage.upstream.requests.at(-1)?.body);
  expect(sent).toContain(png.toString('base64'));
  expect(sent).toContain(pdf.toString('base64'));
  expect(sent.includes(text) || sent.includes(Buffer.from(text).toString('base64'))).toBe(true);
  for (const id of Object.values(ids)) expect(sent).not.toContain(id);
});

test('a call whose files find no memory in time is refused with 429, and works when others have given theirs back', async () => {
  const { link_memory } = stage.test.app.limits;
  const others = link_memory.tryAcquire('acct_others', link_memory.bound);
  const acquire = link_memory.acquire.bind(link_memory);
  vi.spyOn(link_memory, 'acquire').mockImplementation((name, options) =>
    acquire(name, { ...options, ...(options?.timeout_ms === 10_000 && { timeout_ms: 50 }) }),
  );
  const ask = () => stage.client.call('POST', '/v1/messages', { model: 'acme/oai', ...bodies.messages() });
  const refused = await ask();
  vi.restoreAllMocks();
  others?.release();
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '2']);
  expect(refused.text).toContain('Too many large requests are in progress.');
  expect((await ask()).status).toBe(200);
});

test.each(paths)('a stream gives the memory of its files back: %s', async (path) => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const answer = await stage.client.call('POST', `/v1/${path}`, { model: 'acme/oai', stream: true, ...bodies[path]() });
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Hi')]);
});

test('the tokens of an uploaded text are counted and held for as those of a text in the body', async () => {
  const poor = await stage.test.client({ credit: '0.03' }); // the text alone costs 0.04
  const form = new FormData();
  form.set('file', new File(['word '.repeat(20_000)], 'long.txt'));
  const headers = { authorization: `Bearer ${poor.key}` };
  const uploaded = await fetch(`${stage.test.url}/v1/files`, { method: 'POST', headers, body: form });
  const { id } = JSON.parse(await uploaded.text()) as { id: string };
  const messages = [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: id } }] }];
  const answer = await poor.call('POST', '/v1/messages', { model: 'acme/oai', max_tokens: 100, messages });
  expect(answer.status).toBe(402);
  const counted = await poor.call('POST', '/v1/messages/count_tokens', { model: 'acme/oai', messages });
  expect(counted.status).toBe(200);
  expect(Number(/\d+/.exec(counted.text)?.[0])).toBeGreaterThan(20_000);
});

test.each(paths)('a file of another account is as unknown as one that never was: %s', async (path) => {
  const other = await stage.test.client();
  const answer = await other.call('POST', `/v1/${path}`, { model: 'acme/oai', ...bodies[path]() });
  expect([answer.status, answer.json.error.code]).toEqual([400, 'file_not_found']);
});

describe('a file in chat is refused by its field', () => {
  const ask = (part: object) =>
    stage.client.call('POST', '/v1/messages', {
      model: 'acme/ant',
      max_tokens: 10,
      messages: [{ role: 'user', content: [part] }],
    });

  test('when there is none with this id, before anything is held', async () => {
    const file_id = `${ids.text.slice(0, -1)}${ids.text.endsWith('0') ? '1' : '0'}`;
    const answer = await ask({ type: 'document', source: { type: 'file', file_id } });
    expect(answer).toMatchObject({
      status: 400,
      json: { error: { code: 'file_not_found', param: 'messages[0].content[0].source.file_id' } },
    });
  });

  test('when it is for a container', async () => {
    const answer = await ask({ type: 'container_upload', file_id: ids.text });
    expect(answer).toMatchObject({ status: 400, json: { error: { code: 'unsupported_field' } } });
    expect(answer.json.error.message).toContain('container_upload is not offered');
  });
});

test('more files than a request may have are refused', async () => {
  const content = Array.from({ length: 33 }, () => ({ type: 'file', file: { file_id: ids.text } }));
  const messages = [{ role: 'user', content }];
  const answer = await stage.client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages });
  expect(answer).toMatchObject({ status: 400, json: { error: { param: 'messages[0].content[32].file.file_id' } } });
});

describe('the official SDKs', () => {
  const openai_place = () => ({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key });
  const anthropic_place = () => ({ baseURL: stage.test.url, apiKey: stage.client.key, authToken: null });

  test.each([
    ['openai 6', () => new OpenAI6(openai_place())],
    ['openai 7', () => new OpenAI7(openai_place())],
  ])('%s uploads, lists, reads and deletes what batches and assistants need', async (_, open) => {
    const openai = open();
    for (const [purpose, name, content, content_type] of [
      ['batch', 'batch.jsonl', '{"custom_id":"1"}\n{"custom_id":"2"}\n', 'application/jsonl'],
      ['assistants', 'notes.md', '# Notes', 'text/plain; charset=utf-8'],
      ['user_data', 'data.json', '{"a":1}', 'application/json'],
    ] as const) {
      const file = await openai.files.create({ file: new File([content], name), purpose });
      expect(file).toMatchObject({ purpose, filename: name, kind: 'document', content_type, bytes: content.length });
      expect(await openai.files.retrieve(file.id)).toEqual(file);
      expect((await openai.files.list({ purpose })).data.map(({ id }) => id)).toContain(file.id);
      expect(await (await openai.files.content(file.id)).text()).toBe(content);
      expect(await openai.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true });
      await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 });
    }
  });

  test.each([
    ['@anthropic-ai/sdk 0', () => new Anthropic0(anthropic_place()).beta.files],
    ['@anthropic-ai/sdk 1', () => new Anthropic1(anthropic_place()).beta.files],
  ])('%s does the same in its own shapes', async (_, open) => {
    const files = open();
    const file = await files.upload({ file: new File([new Uint8Array(pdf)], 'b.pdf', { type: 'application/pdf' }) });
    expect(file).toMatchObject({
      type: 'file',
      filename: 'b.pdf',
      mime_type: 'application/pdf',
      size_bytes: pdf.length,
    });
    expect(new Date(file.created_at).toISOString()).toBe(file.created_at);
    expect(await files.retrieveMetadata(file.id)).toMatchObject({ id: file.id, type: 'file' });
    const listed: string[] = [];
    for await (const { id } of files.list({ limit: 1 })) listed.push(id);
    expect(listed).toEqual(expect.arrayContaining([file.id, ids.pdf, ids.text, ids.image]));
    expect(new Set(listed).size).toBe(listed.length);
    expect(Buffer.from(await (await files.download(file.id)).arrayBuffer()).equals(pdf)).toBe(true);
    expect(await files.delete(file.id)).toEqual({ id: file.id, type: 'file_deleted' });
  });
});

test('the beta of files in a call of the messages SDK goes no further, and its files do', async () => {
  const anthropic = new Anthropic1({ baseURL: stage.test.url, apiKey: stage.client.key, authToken: null });
  const answer = await anthropic.beta.messages.create({
    model: 'acme/ant',
    max_tokens: 10,
    messages: [{ role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: ids.pdf } }] }],
    betas: ['files-api-2025-04-14', 'interleaved-thinking-2025-05-14', 'unheard-of-2030-01-01'],
  });
  expect(answer.content[0]).toMatchObject({ type: 'text', text: 'Hi' });
  expect(stage.upstream.requests.at(-1)?.headers['anthropic-beta']).toBe('interleaved-thinking-2025-05-14');
});

test.each([
  ['a PDF that is cut off', Buffer.from('%PDF-1.4\n1 0 obj'), 'a.pdf'],
  ['bytes that are no text', Buffer.from([0xc3, 0x28, 0x61]), 'a.txt'],
  ['a text with NUL', Buffer.from('a\0b'), 'a.txt'],
  ['nothing', Buffer.alloc(0), 'a.txt'],
])('an upload of %s is a 422', async (_, bytes, name) => {
  const form = new FormData();
  form.set('file', new File([new Uint8Array(bytes)], name));
  const headers = { authorization: `Bearer ${stage.client.key}` };
  const answer = await fetch(`${stage.test.url}/v1/files`, { method: 'POST', headers, body: form });
  expect(answer.status).toBe(422);
});

test('a document is no image for a task', async () => {
  const task = { model: 'sandbox/edit', input: { prompt: 'x', images: [ids.pdf] } };
  const answer = await stage.client.call('POST', '/v1/generate', task);
  expect(answer.status).toBe(422);
  expect(answer.json.error.message).toContain('application/pdf');
});
