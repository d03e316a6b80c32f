import { readFileSync } from 'node:fs';
import OpenAI from 'openai-7';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { completion, message, setStage, type Stage } from '../chat/setup.ts';
import { response, messageItem } from '../chat/responses-streams.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { summary_instructions } from '../../src/styles/responses/compaction.ts';

const native = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: true, compaction: true } }]
  - id: acme/mixed
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes:
      - { id: first, provider: oai, upstream_model: mixed-x, options: { responses: true, compaction: true } }
      - { id: second, provider: ant, upstream_model: claude-x }
`;

let stage: Stage;
let client: OpenAI;

const clientOf = (apiKey: string) => new OpenAI({ baseURL: `${stage.test.url}/v1`, apiKey, maxRetries: 0 });

beforeAll(async () => {
  stage = await setStage({ more: native });
  client = clientOf(stage.client.key);
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
});

const talk: OpenAI.Responses.ResponseInputItem[] = [
  { role: 'user', content: 'My name is Ada.' },
  { role: 'assistant', content: 'Hello Ada, I look.' },
  { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"city":"Rome"}' },
];

const compactionIn = (compacted: OpenAI.Responses.CompactedResponse) => {
  const item = compacted.output.at(-1);
  if (item?.type !== 'compaction') throw new Error('the last item is no compaction');
  return item;
};

const back = (compacted: OpenAI.Responses.CompactedResponse) =>
  compacted.output as OpenAI.Responses.ResponseInputItem[];

const lastBody = () => JSON.stringify(stage.upstream.requests.at(-1)?.body);

test('a conversation is compacted by a summary of the model, and goes on with models of every style', async () => {
  stage.upstream.script('claude-x', { json: message('Ada was greeted; weather of Rome is open.') });
  const { data: compacted, response: answer } = await client.responses
    .compact({ model: 'acme/ant', input: talk, instructions: 'Be kind.' })
    .withResponse();
  expect(compacted).toMatchObject({ object: 'response.compaction', usage: { input_tokens: 10, output_tokens: 5 } });
  expect(answer.headers.get('x-cost-amount')).toBe('0.000070');
  expect(compacted.output).toMatchObject([
    { type: 'message', role: 'user', content: [{ type: 'input_text', text: 'My name is Ada.' }] },
    { type: 'compaction', encrypted_content: expect.stringMatching(/^medley:/) },
  ]);
  expect(compactionIn(compacted).encrypted_content).not.toContain('Rome');
  const body = lastBody();
  expect(body).toContain(JSON.stringify(summary_instructions).slice(1, -1));
  for (const part of ['[instructions] Be kind.', '[user] My name is Ada.', '[assistant] Hello Ada, I look.', 'Rome'])
    expect(body).toContain(part);
  for (const [model, upstream_model, script] of [
    ['acme/ant', 'claude-x', { json: message('ok') }],
    ['acme/oai', 'gpt-x', { json: completion('ok') }],
    ['acme/native', 'native-x', { json: response([messageItem('ok')]) }],
  ] as const) {
    stage.upstream.script(upstream_model, script);
    const input = [...back(compacted), { role: 'user' as const, content: 'Go on.' }];
    expect((await client.responses.create({ model, input })).output_text).toBe('ok');
    expect(lastBody()).toMatch(/My name is Ada\..*Summary of the conversation so far.*Ada was greeted.*Go on\./s);
    expect(lastBody()).not.toContain('encrypted_content');
  }
});

test('a compaction stays opaque where it is kept: in a conversation, in a stored response, and when it is compacted again', async () => {
  stage.upstream.script('claude-x', { json: message('The first summary.') });
  const first = await client.responses.compact({ model: 'acme/ant', input: talk });
  const { id } = await client.conversations.create({ items: back(first) });
  await client.responses.create({ model: 'acme/ant', input: 'Go on.', conversation: id });
  expect(lastBody()).toContain('The first summary.');
  const items = JSON.stringify((await client.conversations.items.list(id)).data);
  expect(items).toContain(compactionIn(first).encrypted_content);
  expect(items).not.toContain('Summary of the conversation so far');
  const stored = await client.responses.create({ model: 'acme/ant', input: back(first) });
  stage.upstream.script('claude-x', { json: message('The second summary.') });
  const second = await client.responses.compact({ model: 'acme/ant', previous_response_id: stored.id });
  expect(lastBody()).toContain('The first summary.');
  expect(second.output.map(({ type }) => type)).toEqual(['message', 'compaction']);
  const counted = await client.responses.inputTokens.count({ model: 'sandbox/chat', input: back(second) });
  expect(counted.input_tokens).toBeGreaterThan(10);
});

test('an upstream that compacts by itself is asked to, and its own item goes back to it as it came', async () => {
  const item = { id: 'cmp_1', type: 'compaction', encrypted_content: 'gAAAA-theirs' };
  const { usage } = response([]);
  stage.upstream.script('native-x', {
    json: { id: 'resp_9', object: 'response.compaction', created_at: 1, output: [item], usage },
  });
  const { data: compacted, response: answer } = await client.responses
    .compact({ model: 'acme/native', input: talk, instructions: 'Be kind.', prompt_cache_key: 'k' })
    .withResponse();
  const request = stage.upstream.requests.at(-1);
  expect([request?.path, request?.body]).toEqual([
    '/v1/responses/compact',
    { model: 'native-x', input: talk, instructions: 'Be kind.', prompt_cache_key: 'k' },
  ]);
  expect(compacted).toMatchObject({ object: 'response.compaction', output: [item], usage });
  expect(compacted.id).toMatch(/^resp_req_/);
  expect(answer.headers.get('x-cost-amount')).toBe('0.000070');
  stage.upstream.script('native-x', { json: response([messageItem('ok')]) });
  await client.responses.create({ model: 'acme/native', input: [...back(compacted), { role: 'user', content: 'x' }] });
  expect(stage.upstream.requests.at(-1)?.body['input']).toMatchObject([item, { role: 'user' }]);
  for (const ask of [
    () => client.responses.create({ model: 'acme/ant', input: back(compacted) }),
    () => client.responses.compact({ model: 'acme/ant', input: back(compacted) }),
  ])
    await expect(ask()).rejects.toMatchObject({ status: 400, param: expect.stringMatching(/^input\[0\]/) });
});

test('where the upstream that compacts by itself is down, the next route writes a summary', async () => {
  stage.upstream.script('mixed-x', { status: 500, json: { error: { message: 'down' } } });
  stage.upstream.script('claude-x', { json: message('A summary.') });
  const compacted = await client.responses.compact({ model: 'acme/mixed', input: talk });
  expect(compactionIn(compacted).encrypted_content).toMatch(/^medley:/);
});

test('the compaction of another account, a changed one and one of a lost secret are refused', async () => {
  stage.upstream.script('claude-x', { json: message('A private summary.') });
  const compacted = await client.responses.compact({ model: 'acme/ant', input: talk });
  const content = compactionIn(compacted).encrypted_content;
  const stranger = clientOf((await stage.test.client()).key);
  const refused = { status: 400, code: 'invalid_encrypted_content', param: 'input[0]' };
  const ask = (on: OpenAI, encrypted_content: string) =>
    on.responses.create({ model: 'sandbox/chat', input: [{ type: 'compaction', encrypted_content }] });
  await expect(ask(stranger, content)).rejects.toMatchObject(refused);
  for (const changed of [
    content.slice(0, -8),
    content.replace(/:[^:]{8}/, ':AAAAAAAA'),
    'medley:',
    'medley::',
    'medley:x:y:z',
    `medley:null:${Buffer.from('{"text":"mine"}').toString('base64')}`,
  ])
    await expect(ask(client, changed)).rejects.toMatchObject(refused);
  expect((await ask(client, content)).status).toBe('completed');
});

test('a model that writes nothing is an error that is charged as its answer is; a body that is none costs nothing', async () => {
  stage.upstream.script('claude-x', { json: message('') });
  const error: unknown = await client.responses
    .compact({ model: 'acme/ant', input: talk })
    .catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ status: 502 });
  const { requestID: id } = error as InstanceType<typeof OpenAI.APIError>;
  expect((await stage.client.call('GET', `/v1/chat/${id}`)).json.cost).toMatchObject({ exact: '0.000070' });
  for (const [body, param] of [
    [{ input: talk }, 'model'],
    [{ model: 'acme/ant' }, 'input'],
    [{ model: 'acme/ant', input: 5 }, 'input'],
    [{ model: 'acme/ant', input: [7] }, 'input[0]'],
    [{ model: 'acme/ant', input: talk, service_tier: 'priority' }, 'service_tier'],
    [{ model: 'acme/ant', input: talk, previous_response_id: 'resp_none' }, 'previous_response_id'],
  ] as const)
    expect((await stage.client.call('POST', '/v1/responses/compact', body)).json.error).toMatchObject({ param });
  await expect(client.responses.compact({ model: 'acme/none' as 'gpt-5', input: 'x' })).rejects.toMatchObject({
    status: 404,
  });
});

test('the documentation shows the instructions of a summary', () => {
  const shown = readFileSync(new URL('../../docs/chat.md', import.meta.url), 'utf8').replaceAll('\n> ', '\n');
  expect(shown).toContain(summary_instructions);
});
