import { afterAll, beforeAll, expect, test } from 'vitest';
import { deleteConversations } from '../../src/conversations/conversations.ts';
import { conversation_items_max } from '../../src/conversations/items.ts';
import { encryptAgain, removeOldResponses } from '../../src/conversations/removal.ts';
import { takeTurn } from '../../src/conversations/turn.ts';
import { contentKeys } from '../../src/db/content.ts';
import { removeAllOld } from '../../src/worker.ts';
import { completion, yamlOf } from '../chat/setup.ts';
import { startChatUpstream, type ChatUpstream } from '../helpers/chat-upstream.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

const secret = 'the first secret of this service';
const responses = 'responses: { response_mb_max: 1, account_mb_max: 1 }\n';

let upstream: ChatUpstream;
let service: TestApp;
let beside: TestApp;
let client: Client;

beforeAll(async () => {
  process.env['TEST_UPSTREAM_KEY'] = 'sk-upstream-secret-0123456789';
  upstream = await startChatUpstream();
  // Without a worker, whose upkeep of each minute would remove and encrypt in the middle of a test.
  service = await startTestApp({ yaml: yamlOf(upstream, responses), worker: false, env: { MEDLEY_SECRET: secret } });
  beside = await service.beside({ yaml: yamlOf(upstream, responses), env: { MEDLEY_SECRET: secret } });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await beside.stop();
  await service.stop();
  await upstream.stop();
});

const create = async (items: unknown[] = [{ role: 'user', content: 'Hello' }], on = client) =>
  (await on.call('POST', '/v1/conversations', { items, metadata: { a: 'private word' } })).json.id;

const ask = (conversation: string, body: object = {}, on: Client = client) =>
  on.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello', conversation, ...body });

const rowOf = async (id: string) =>
  (
    await service.app.db.query<{ items: number; size_bytes: bigint; json_bytes: bigint; turn: string | null }>(
      'select items, size_bytes, json_bytes, turn from conversations where id = $1',
      [id],
    )
  )[0];

const itemRows = (id: string) =>
  service.app.db.query<{ id: string; key_id: string | null; content: Buffer; json_bytes: number }>(
    'select id, key_id, content, json_bytes from conversation_items where conversation_id = $1 order by place',
    [id],
  );

/** The sums of a row are those of its items. */
async function expectRightSums(id: string): Promise<void> {
  const rows = await itemRows(id);
  const row = await rowOf(id);
  expect(row?.items).toBe(rows.length);
  expect(Number(row?.json_bytes)).toBe(rows.reduce((sum, { json_bytes }) => sum + json_bytes, 0));
}

test('a conversation of another account is unknown to every call', async () => {
  const id = await create();
  const [item] = await itemRows(id);
  const stranger = await service.client();
  const calls: [string, string, unknown?][] = [
    ['GET', ''],
    ['POST', '', { metadata: {} }],
    ['DELETE', ''],
    ['GET', '/items'],
    ['POST', '/items', { items: [{ role: 'user', content: 'x' }] }],
    ['GET', `/items/${item?.id}`],
    ['DELETE', `/items/${item?.id}`],
  ];
  for (const [method, path, body] of calls)
    expect((await stranger.call(method, `/v1/conversations/${id}${path}`, body)).status, `${method} ${path}`).toBe(404);
  const refused = await ask(id, {}, stranger);
  expect([refused.status, refused.json.error.param]).toEqual([404, 'conversation']);
  expect(await itemRows(id)).toHaveLength(1);
});

test('two nodes see one conversation, and of calls that come at once one alone has the turn', async () => {
  const id = await create([]);
  const on_other = (body: object) =>
    fetch(`${beside.url}/v1/responses`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'sandbox/chat', input: 'Hello', conversation: id, ...body }),
    });
  const answers = await Promise.all([
    ask(id).then(({ status }) => status),
    ask(id).then(({ status }) => status),
    ask(id).then(({ status }) => status),
    on_other({}).then(({ status }) => status),
    on_other({}).then(({ status }) => status),
    on_other({ stream: true }).then(async (answer) => (await answer.text(), answer.status)),
  ]);
  const answered = answers.filter((status) => status === 200).length;
  expect(answered).toBeGreaterThan(0);
  expect(answers.filter((status) => status !== 200 && status !== 400)).toEqual([]);
  const { text } = await client.call('GET', `/v1/conversations/${id}/items?order=asc&limit=100`);
  const roles = [...text.matchAll(/"role":"(\w+)"/g)].map(([, role]) => role);
  expect(roles).toEqual(Array.from({ length: answered }, () => ['user', 'assistant']).flat());
  await expectRightSums(id);
});

test('the turn of a node that died ends by its time, and what it would add later is not added', async () => {
  const id = await create([]);
  const { app } = service;
  const turn = await takeTurn(app, {
    name: { account_id: client.account_id, id },
    request_id: 'req_of_a_dead_node',
    keep_ms: 3_600_000,
    items: 1,
    json_bytes: 10,
  });
  expect((await ask(id)).json.error).toMatchObject({ code: 'conversation_locked' });
  await app.db.query("update conversations set turn_until = now() - interval '1 second' where id = $1", [id]);
  expect((await ask(id)).status).toBe(200);
  await turn.append([{ role: 'user', content: 'late' }]);
  await turn.end();
  expect(await itemRows(id)).toHaveLength(2);
});

test('a conversation that is deleted in the middle of a call stays deleted, and the call is answered', async () => {
  const id = await create([]);
  const { promise, resolve } = Promise.withResolvers<void>();
  upstream.script('gpt-x', { json: completion('Hello.'), after: promise });
  const running = ask(id, { model: 'acme/oai' });
  // Its turn is not enough: it reads the conversation after that, and answers 404 where it is gone. A hold comes later.
  await expect.poll(async () => Number((await client.call('GET', '/v1/balance')).json.held.exact)).toBeGreaterThan(0);
  const deleted = await Promise.all([
    client.call('DELETE', `/v1/conversations/${id}`),
    client.call('DELETE', `/v1/conversations/${id}`),
  ]);
  resolve();
  expect(deleted.map(({ status }) => status).toSorted()).toEqual([200, 404]);
  expect((await running).status).toBe(200);
  expect(await rowOf(id)).toBeUndefined();
  expect(await itemRows(id)).toEqual([]);
});

test('a call makes its conversation live longer, and one that has expired is gone', async () => {
  const { db } = service.app;
  const id = await create();
  await db.query("update conversations set expires_at = now() + interval '1 hour' where id = $1", [id]);
  expect((await ask(id)).status).toBe(200);
  const [row] = await db.query<{ lives: boolean }>(
    "select expires_at > now() + interval '1 day' as lives from conversations where id = $1",
    [id],
  );
  expect(row?.lives).toBe(true);
  await db.query("update conversations set expires_at = now() - interval '1 second' where id = $1", [id]);
  expect((await ask(id)).status).toBe(404);
  expect((await client.call('GET', `/v1/conversations/${id}/items`)).status).toBe(404);
  await removeAllOld(service.app, new AbortController().signal);
  expect(await itemRows(id)).toEqual([]);
});

test('the ones used longest ago go where an account has too much, and nothing is added free of charge before', async () => {
  const { db } = service.app;
  const stranger = await service.client();
  const old = await create(undefined, stranger);
  const used = await create(undefined, stranger);
  await ask(used, {}, stranger);
  await db.query('update conversations set size_bytes = 600000 where id = any($1)', [[old, used]]);
  const refused = await stranger.call('POST', '/v1/conversations', {});
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '60']);
  const more = await stranger.call('POST', `/v1/conversations/${used}/items`, {
    items: [{ role: 'user', content: 'x' }],
  });
  expect(more.status).toBe(429);
  await removeOldResponses(service.app);
  expect([await rowOf(old), (await rowOf(used))?.items]).toEqual([undefined, 3]);
});

test('content and metadata are encrypted, and encrypted again after a change of the secret; a damaged item goes alone', async () => {
  const id = await create([
    { role: 'user', content: 'a very private word' },
    { role: 'user', content: 'a word that the disk forgets' },
  ]);
  const rows = await itemRows(id);
  expect(rows.every(({ key_id }) => key_id === service.app.content_keys.current?.id)).toBe(true);
  const { db, log } = service.app;
  const damaged = Buffer.from(rows[1]?.content ?? '');
  damaged.writeUInt8(damaged.readUInt8(40) ^ 1, 40);
  await db.query('update conversation_items set content = $2 where id = $1', [rows[1]?.id, damaged]);
  const second = 'the second secret of this service';
  const rotated = contentKeys({ secret: second, secret_before: secret });
  await encryptAgain({ db, log, content_keys: rotated });
  expect(await encryptAgain({ db, log, content_keys: rotated })).toBe(0);
  const [item, ...none] = await itemRows(id);
  expect([item?.id, item?.key_id, none]).toEqual([rows[0]?.id, rotated.current?.id, []]);
  await expectRightSums(id);
  expect((await client.call('GET', `/v1/conversations/${id}`)).json).toMatchObject({ metadata: {} }); // the old secret
  await encryptAgain({ db, log, content_keys: contentKeys({ secret, secret_before: second }) });
  expect((await client.call('GET', `/v1/conversations/${id}`)).json.metadata).toEqual({ a: 'private word' });
  expect((await client.call('GET', `/v1/conversations/${id}/items`)).json.data).toHaveLength(1);
});

test('a conversation takes its memory before it is read, and one that is full is not begun', async () => {
  const { db, limits } = service.app;
  const id = await create();
  const acquire = limits.body_memory.acquire.bind(limits.body_memory);
  const weights: (number | undefined)[] = [];
  limits.body_memory.acquire = (name, options) => {
    weights.push(options?.weight);
    return acquire(name, options);
  };
  try {
    await db.query('update conversation_items set json_bytes = 1000000 where conversation_id = $1', [id]);
    expect((await ask(id)).status).toBe(200);
    expect((await client.call('GET', `/v1/conversations/${id}/items`)).status).toBe(200);
    expect(weights.every((weight) => (weight ?? 0) >= 1_000_000)).toBe(true);
    expect(weights).toHaveLength(2);
    await db.query('update conversations set json_bytes = 32000000 where id = $1', [id]);
    expect((await ask(id)).json.error).toMatchObject({ code: 'context_length_exceeded', param: 'conversation' });
    await db.query('update conversations set json_bytes = 0, items = $2 where id = $1', [id, conversation_items_max]);
    expect((await ask(id)).json.error).toMatchObject({ code: 'context_length_exceeded' });
    const added = await client.call('POST', `/v1/conversations/${id}/items`, {
      items: [{ role: 'user', content: 'x' }],
    });
    expect(added.json.error).toMatchObject({ code: 'context_length_exceeded' });
    expect((await rowOf(id))?.turn).toBe(null);
  } finally {
    limits.body_memory.acquire = acquire;
  }
  await expect.poll(() => limits.body_memory.state.in_use).toBe(0);
});

test.each([
  ['items', { items: 'x' }],
  ['items[0]', { items: [1] }],
  ['items[0]', { items: [{ type: 'item_reference', id: 'msg_1' }] }],
  ['items[0].role', { items: [{ role: 'god', content: 'x' }] }],
  ['items[0].content', { items: [{ role: 'user' }] }],
  ['items[0].content', { items: [{ role: 'user', content: 7 }] }],
  ['items[0].content[0].type', { items: [{ role: 'user', content: [{ text: 'x' }] }] }],
  ['items', { items: Array.from({ length: 21 }, () => ({ role: 'user', content: 'x' })) }],
  ['items', { items: [{ role: 'user', content: 'x'.repeat(1_000_001) }] }],
  ['metadata', { metadata: [] }],
  ['metadata', { metadata: { a: 1 } }],
  ['metadata', { metadata: { a: 'x'.repeat(513) } }],
])('a body that is wrong in %s is refused by that name', async (param, body) => {
  const refused = await client.call('POST', '/v1/conversations', body);
  expect([refused.status, refused.json.error.param]).toEqual([400, param]);
});

test('ids that are none are unknown, and items keep the ids that they had unless there is one already', async () => {
  for (const id of ['%00', 'conv_%00', 'x'.repeat(300)]) {
    expect((await client.call('GET', `/v1/conversations/${id}`)).status).toBe(404);
    expect((await client.call('DELETE', `/v1/conversations/${id}/items/${id}`)).status).toBe(404);
  }
  expect((await ask('conv_\0')).status).toBe(400);
  const id = await create([
    { id: 'msg_own', role: 'user', content: 'a' },
    { id: 'msg_own', role: 'user', content: 'b' },
    { id: '', role: 'user', content: 'c' },
    { id: 7, role: 'user', content: 'd' },
  ]);
  const ids = (await itemRows(id)).map((row) => row.id);
  expect([ids[0], new Set(ids).size]).toEqual(['msg_own', 4]);
  const again = await client.call('POST', `/v1/conversations/${id}/items`, {
    items: [{ id: 'msg_own', role: 'user', content: 'e' }],
  });
  expect(again.json.data[0]?.id).not.toBe('msg_own');
  const page = await client.call('GET', `/v1/conversations/${id}/items?after=msg_none`);
  expect([page.status, page.json.error.param]).toEqual([400, 'after']);
  const named = await ask(id, { input: [{ type: 'item_reference', id: 'msg_own' }] });
  expect(named.status).toBe(200);
});

test('tokens of a conversation are counted without taking its turn', async () => {
  const id = await create([{ role: 'user', content: 'Hello there, this is a longer text.' }]);
  const count = async (conversation?: string) => {
    const body = { model: 'sandbox/chat', input: 'Hello', ...(conversation !== undefined && { conversation }) };
    const { text } = await client.call('POST', '/v1/responses/input_tokens', body);
    return Number(/"input_tokens":(\d+)/.exec(text)?.[1]);
  };
  expect(await count(id)).toBeGreaterThan(await count());
  expect([(await rowOf(id))?.turn, (await rowOf(id))?.items]).toEqual([null, 1]);
});

test('an account that keeps nothing has no conversations, and those that it had are deleted', async () => {
  const stranger = await service.client();
  const id = await create(undefined, stranger);
  await service.app.db.query('update accounts set keeps_responses = false where id = $1', [stranger.account_id]);
  service.app.authenticator.invalidate();
  expect((await stranger.call('POST', '/v1/conversations', {})).json.error).toMatchObject({
    code: 'unsupported_field',
  });
  expect((await ask(id, {}, stranger)).json.error).toMatchObject({ param: 'conversation', code: 'unsupported_field' });
  expect(await deleteConversations(service.app, stranger.account_id)).toBe(1);
});
