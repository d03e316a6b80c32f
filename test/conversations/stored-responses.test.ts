import { afterAll, beforeAll, expect, test } from 'vitest';
import { encryptAgain, removeOldResponses } from '../../src/conversations/removal.ts';
import { contentKeys } from '../../src/db/content.ts';
import { removeAllOld } from '../../src/worker.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';

const secret = 'the first secret of this service';
const yaml = 'version: 1\nresponses: { response_mb_max: 1, account_mb_max: 1 }\n';

let service: TestApp;
let beside: TestApp;
let client: Client;

beforeAll(async () => {
  // Without a worker, whose upkeep of each minute would remove and encrypt in the middle of a test.
  service = await startTestApp({ yaml, worker: false, env: { MEDLEY_SECRET: secret } });
  beside = await service.beside({ yaml, env: { MEDLEY_SECRET: secret } });
  client = await service.client();
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await beside.stop();
  await service.stop();
});

const ask = (body: object, on: Client = client) =>
  on.call('POST', '/v1/responses', { model: 'sandbox/chat', input: 'Hello', ...body });

const rows = (id: string) =>
  service.app.db.query<{ key_id: string | null; content: Buffer }>(
    'select key_id, content from stored_responses where id = $1',
    [id],
  );

test('a response is continued on another node as soon as its stream has ended', async () => {
  const { text } = await ask({ stream: true });
  const id = /"id":"(resp_[^"]+)"/.exec(text)?.[1] ?? '';
  const answer = await fetch(`${beside.url}/v1/responses`, {
    method: 'POST',
    headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'sandbox/chat', input: 'And now?', previous_response_id: id }),
  });
  const body = await answer.text();
  expect(answer.status).toBe(200);
  expect(body).toContain('We are at turn 2 of yours.');
  expect(body).toContain(`"previous_response_id":"${id}"`);
});

test('a response of another account is unknown, as is one that was not to be stored', async () => {
  const stranger = await service.client();
  const { json: first } = await ask({});
  const { json: unstored } = await ask({ store: false });
  expect(await rows(unstored.id)).toEqual([]);
  for (const [id, caller] of [
    [first.id, stranger],
    [unstored.id, client],
  ] as const) {
    expect((await caller.call('GET', `/v1/responses/${id}`)).status).toBe(404);
    expect((await caller.call('DELETE', `/v1/responses/${id}`)).status).toBe(404);
    expect((await caller.call('GET', `/v1/responses/${id}/input_items`)).status).toBe(404);
    expect((await caller.call('POST', `/v1/responses/${id}/cancel`)).status).toBe(404);
    const refused = await ask({ previous_response_id: id }, caller);
    expect([refused.status, refused.json.error.code]).toEqual([400, 'previous_response_not_found']);
  }
  const input = [
    { role: 'user', content: 'a' },
    { type: 'item_reference', id: 'msg_of_nobody' },
  ];
  expect((await ask({ input })).json.error).toMatchObject({ code: 'item_not_found', param: 'input[1]' });
  expect((await client.call('GET', `/v1/responses/${first.id}`)).json).toEqual(first);
});

test('what is stored is encrypted, can be read under the secret before, and is encrypted again', async () => {
  const { json: first } = await ask({ input: 'a very private word' });
  const [row] = await rows(first.id);
  expect(row?.key_id).toBe(service.app.content_keys.current?.id);
  const rotated = contentKeys({ secret: 'the second secret of this service', secret_before: secret });
  const { db, log } = service.app;
  expect(await encryptAgain({ db, log, content_keys: rotated })).toBeGreaterThan(0);
  expect(await encryptAgain({ db, log, content_keys: rotated })).toBe(0);
  expect((await rows(first.id))[0]?.key_id).toBe(rotated.current?.id);
  expect((await client.call('GET', `/v1/responses/${first.id}`)).status).toBe(404); // this node has the old secret
  const back = contentKeys({ secret, secret_before: 'the second secret of this service' });
  await encryptAgain({ db, log, content_keys: back });
  expect((await client.call('GET', `/v1/responses/${first.id}`)).json).toEqual(first);
});

test('one that is damaged on the disk keeps no other from being encrypted again, and goes', async () => {
  const { db, log } = service.app;
  const { json: damaged } = await ask({ input: 'a word that the disk forgets' });
  const { json: whole } = await ask({ input: 'a word that stays' });
  const [row] = await rows(damaged.id);
  const content = Buffer.from(row?.content ?? '');
  content.writeUInt8(content.readUInt8(40) ^ 1, 40);
  await db.query('update stored_responses set content = $2 where id = $1', [damaged.id, content]);
  const second = 'the second secret of this service';
  const rotated = contentKeys({ secret: second, secret_before: secret });
  await encryptAgain({ db, log, content_keys: rotated });
  expect(await rows(damaged.id)).toEqual([]);
  expect((await rows(whole.id))[0]?.key_id).toBe(rotated.current?.id);
  await encryptAgain({ db, log, content_keys: contentKeys({ secret, secret_before: second }) });
  expect((await client.call('GET', `/v1/responses/${whole.id}`)).json).toEqual(whole);
});

test('a response goes when it has expired, when it is the oldest of too many, and is not stored when it is too large', async () => {
  const { db } = service.app;
  const { json: first } = await ask({});
  await db.query('update stored_responses set expires_at = now() where id = $1', [first.id]);
  expect((await client.call('GET', `/v1/responses/${first.id}`)).status).toBe(404);
  await removeAllOld(service.app, new AbortController().signal);
  expect(await rows(first.id)).toEqual([]);
  const { json: second } = await ask({});
  const { json: third } = await ask({});
  await db.query('update stored_responses set size_bytes = 600000 where id = any($1)', [[second.id, third.id]]);
  expect(await removeOldResponses(service.app)).toBeGreaterThan(0);
  expect([(await rows(second.id)).length, (await rows(third.id)).length]).toEqual([0, 1]);
  const { json: large } = await ask({ input: 'a'.repeat(1_000_001) });
  expect(large).toMatchObject({ store: false });
  expect(await rows(large.id)).toEqual([]);
});

test('a conversation takes its memory before it is read, and one that is too long is not read', async () => {
  const { db, limits } = service.app;
  const { json: first } = await ask({});
  const size = (bytes: number) =>
    db.query('update stored_responses set json_bytes = $2 where id = $1', [first.id, bytes]);
  const acquire = limits.body_memory.acquire.bind(limits.body_memory);
  const weights: (number | undefined)[] = [];
  limits.body_memory.acquire = (name, options) => {
    weights.push(options?.weight);
    return acquire(name, options);
  };
  try {
    await size(1_000_000);
    expect((await ask({ previous_response_id: first.id })).status).toBe(200);
    expect(weights).toEqual([1_000_000]);
    await size(32_000_001);
    const refused = await ask({ previous_response_id: first.id });
    expect([refused.status, refused.json.error.code]).toEqual([400, 'context_length_exceeded']);
    expect(weights).toHaveLength(1);
  } finally {
    limits.body_memory.acquire = acquire;
  }
  await expect.poll(() => limits.body_memory.state.in_use).toBe(0);
});
