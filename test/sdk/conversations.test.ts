import OpenAI from 'openai-7';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { message, setStage, type Stage } from '../chat/setup.ts';
import { messagesStream } from '../chat/streams.ts';
import { responsesStream } from '../chat/responses-streams.ts';
import { expectExactBooks } from '../helpers/app.ts';

const native = `
  - id: acme/native
    kind: chat
    max_output_tokens: 1000
    price: *price
    routes: [{ provider: oai, upstream_model: native-x, options: { responses: true } }]
`;

let stage: Stage;
let client: OpenAI;

beforeAll(async () => {
  stage = await setStage({ more: native });
  client = new OpenAI({ baseURL: `${stage.test.url}/v1`, apiKey: stage.client.key, maxRetries: 0 });
});
afterAll(async () => {
  await expectExactBooks(stage.test.app);
  await stage.stop();
});

const model = 'sandbox/chat';

async function itemsOf(id: string, order: 'asc' | 'desc' = 'asc') {
  const items: OpenAI.Conversations.ConversationItem[] = [];
  for await (const item of client.conversations.items.list(id, { order, limit: 2 })) items.push(item);
  return items;
}

const textsOf = (items: readonly OpenAI.Conversations.ConversationItem[]) =>
  items.map((item) =>
    (item.type === 'message' ? item.content.map((part) => ('text' in part ? part.text : '')) : []).join(''),
  );

test('a conversation is created, read, given other metadata and deleted', async () => {
  const created = await client.conversations.create({ metadata: { topic: 'rain' } });
  expect(created).toMatchObject({ object: 'conversation', metadata: { topic: 'rain' } });
  expect(Math.abs(created.created_at - Date.now() / 1000)).toBeLessThan(60);
  expect(await client.conversations.retrieve(created.id)).toEqual(created);
  const changed = await client.conversations.update(created.id, { metadata: { topic: 'sun' } });
  expect(changed).toEqual({ ...created, metadata: { topic: 'sun' } });
  expect(await client.conversations.delete(created.id)).toEqual({
    id: created.id,
    object: 'conversation.deleted',
    deleted: true,
  });
  await expect(client.conversations.retrieve(created.id)).rejects.toMatchObject({ status: 404 });
  expect((await client.conversations.create()).metadata).toEqual({});
});

test('items are added, listed page by page in both orders, read and deleted', async () => {
  const { id } = await client.conversations.create({ items: [{ role: 'user', content: 'one' }] });
  const added = await client.conversations.items.create(id, {
    items: [
      { role: 'assistant', content: 'two', type: 'message' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'rain' },
    ],
  });
  expect(added).toMatchObject({ object: 'list', has_more: false });
  const items = await itemsOf(id);
  expect(items.map(({ type }) => type)).toEqual(['message', 'message', 'function_call', 'function_call_output']);
  expect((await itemsOf(id, 'desc')).map((item) => item.id)).toEqual(items.map((item) => item.id).toReversed());
  const [first] = items;
  expect(first).toMatchObject({ role: 'user', status: 'completed', content: [{ type: 'input_text', text: 'one' }] });
  const of = { conversation_id: id };
  expect(await client.conversations.items.retrieve(first?.id ?? '', of)).toEqual(first);
  expect(await client.conversations.items.delete(first?.id ?? '', of)).toMatchObject({ id, object: 'conversation' });
  expect((await itemsOf(id)).map((item) => item.id)).toEqual(items.slice(1).map((item) => item.id));
  await expect(client.conversations.items.retrieve(first?.id ?? '', of)).rejects.toMatchObject({ status: 404 });
});

test('a response continues a conversation, whole or as a stream, and its input and output are added', async () => {
  const { id } = await client.conversations.create();
  const first = await client.responses.create({ model, input: 'Hello', conversation: id });
  expect(first).toMatchObject({ conversation: { id }, previous_response_id: null, store: true });
  const stream = await client.responses.create({ model, input: 'And now?', conversation: { id }, stream: true });
  let last: OpenAI.Responses.Response | undefined;
  for await (const one of stream) if (one.type === 'response.completed') last = one.response;
  expect(last).toMatchObject({ conversation: { id } });
  expect(last?.output_text ?? textOf(last)).toContain('We are at turn 2 of yours.');
  const texts = textsOf(await itemsOf(id));
  expect(texts).toEqual(['Hello', textOf(first), 'And now?', textOf(last)]);
  expect((await client.responses.retrieve(first.id)).conversation).toEqual({ id });
});

function textOf(response: OpenAI.Responses.Response | undefined): string {
  return (response?.output ?? [])
    .flatMap((item) => (item.type === 'message' ? item.content : []))
    .map((part) => ('text' in part ? part.text : ''))
    .join('');
}

test('a response that was given in a conversation is continued by its id with all that came before it', async () => {
  const { id } = await client.conversations.create();
  await client.responses.create({ model, input: 'one', conversation: id });
  const second = await client.responses.create({ model, input: 'two', conversation: id });
  await client.responses.create({ model, input: 'three', conversation: id });
  const beside = await client.responses.create({ model, input: 'else', previous_response_id: second.id });
  expect(beside.output_text).toContain('We are at turn 3 of yours.');
  expect(await itemsOf(id)).toHaveLength(6);
  await client.conversations.delete(id);
  await expect(
    client.responses.create({ model, input: 'else', previous_response_id: second.id }),
  ).rejects.toMatchObject({ status: 400, code: 'previous_response_not_found' });
});

test('a conversation goes on with other models, and each gets what came before in its own style', async () => {
  const { id } = await client.conversations.create({ items: [{ role: 'user', content: 'My name is Ada.' }] });
  stage.upstream.script('claude-x', { json: message('Hello Ada.') });
  await client.responses.create({ model: 'acme/ant', input: 'Greet me.', conversation: id });
  stage.upstream.script('native-x', { stream: [...responsesStream(['Ada', ' it is.'])] });
  const stream = await client.responses.create({
    model: 'acme/native',
    input: 'My name?',
    conversation: id,
    stream: true,
  });
  let last: OpenAI.Responses.Response | undefined;
  for await (const one of stream) if (one.type === 'response.completed') last = one.response;
  expect(last?.conversation).toEqual({ id });
  const sent = stage.upstream.requests.at(-1)?.body;
  expect(sent).not.toHaveProperty('conversation');
  expect(sent).toMatchObject({ store: false });
  expect(JSON.stringify(sent?.['input'])).toMatch(/My name is Ada.*Greet me.*Hello Ada.*My name\?/);
  expect(textsOf(await itemsOf(id))).toEqual(['My name is Ada.', 'Greet me.', 'Hello Ada.', 'My name?', 'Ada it is.']);
});

test('previous_response_id beside conversation is refused by name, and so is a conversation that is not there', async () => {
  const { id } = await client.conversations.create();
  const first = await client.responses.create({ model, input: 'Hello' });
  await expect(
    client.responses.create({ model, input: 'Hello', conversation: id, previous_response_id: first.id }),
  ).rejects.toMatchObject({ status: 400, param: 'previous_response_id' });
  await expect(client.responses.create({ model, input: 'Hello', conversation: 'conv_none' })).rejects.toMatchObject({
    status: 404,
    param: 'conversation',
  });
});

test('two calls at once on one conversation do not interleave: the second is told to wait, and so are new items', async () => {
  const { id } = await client.conversations.create();
  const parts = messagesStream(['Hello', ' there']);
  const { promise: refused, resolve: areRefused } = Promise.withResolvers<void>();
  stage.upstream.script('claude-x', { stream: [...parts.slice(0, -1), refused, ...parts.slice(-1)] });
  const stream = await client.responses.create({ model: 'acme/ant', input: 'one', conversation: id, stream: true });
  const locked = { status: 400, code: 'conversation_locked', param: 'conversation' };
  await expect(client.responses.create({ model, input: 'two', conversation: id })).rejects.toMatchObject(locked);
  await expect(
    client.conversations.items.create(id, { items: [{ role: 'user', content: 'x' }] }),
  ).rejects.toMatchObject(locked);
  areRefused();
  for await (const _ of stream) continue;
  await client.responses.create({ model, input: 'two', conversation: id });
  expect((await itemsOf(id)).filter(({ type }) => type === 'message')).toHaveLength(4);
});

test('a call that fails adds nothing, and leaves the conversation to the next at once', async () => {
  const { id } = await client.conversations.create({ items: [{ role: 'user', content: 'Hello' }] });
  await expect(client.responses.create({ model: 'acme/none', input: 'x', conversation: id })).rejects.toMatchObject({
    status: 404,
  });
  stage.upstream.script('claude-x', { status: 500, json: { error: 'no' } });
  await expect(client.responses.create({ model: 'acme/ant', input: 'x', conversation: id })).rejects.toMatchObject({
    status: 502,
  });
  expect(await itemsOf(id)).toHaveLength(1);
  await client.responses.create({ model, input: 'x', conversation: id });
  expect(await itemsOf(id)).toHaveLength(3);
});
