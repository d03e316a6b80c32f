import { request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks, type Client } from '../helpers/app.ts';
import { stopElapsingInTest } from '../helpers/clock.ts';
import { releaseForgotten } from '../../src/chat/sweep.ts';
import { makeHoldBatcher } from '../../src/money/holds.ts';
import { completion, hello, setStage, yamlOf, type Stage } from './setup.ts';
import { chunk, completionsStream, messagesStream } from './streams.ts';

let stage: Stage;

beforeAll(async () => {
  stage = await setStage();
});
afterAll(() => stage.stop());

/** The same storm for the same seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** One stream, hung up after so much time; resolves when the socket is closed. */
function leaveAfter(client: Client, model: string, duration_ms: number): Promise<void> {
  const is_messages = model === 'acme/ant';
  const url = `${stage.test.url}/v1/${is_messages ? 'messages' : 'chat/completions'}`;
  return new Promise((resolve) => {
    const headers = { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' };
    const outgoing = request(url, { method: 'POST', headers, agent: false });
    outgoing.on('error', () => undefined);
    outgoing.on('response', (response) => response.on('error', () => undefined).resume());
    outgoing.on('close', resolve);
    outgoing.end(JSON.stringify({ model, stream: true, max_tokens: 500, messages: hello }));
    setTimeout(() => outgoing.destroy(), duration_ms);
  });
}

test('T13, T23: 1,000 streams that lose their callers at random moments leave no hold, no upstream connection, no memory and exact books', async () => {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const random = randomFrom(seed);
  const words = Array.from({ length: 20 }, (_, i) => [chunk({ content: `word ${i} ` }), 5]).flat();
  stage.upstream.script('gpt-x', { stream: [10, ...words, ...completionsStream(['end'], [10, 40])] });
  stage.upstream.script('claude-x', { stream: messagesStream(['a', 'b', 'c']).flatMap((part) => [part, 8]) });
  const clients = await Promise.all(Array.from({ length: 8 }, () => stage.test.client()));
  let left = 1_000;
  const loop = async (client: Client) => {
    while (left-- > 0) await leaveAfter(client, random() < 0.5 ? 'acme/oai' : 'acme/ant', random() * 150);
  };
  await Promise.all(Array.from({ length: 48 }, (_, i) => loop(clients[i % clients.length] ?? stage.client)));
  const { app } = stage.test;
  // A slow machine still has calls to begin whose callers have left: it is at rest when ten looks are alike.
  const looks: string[] = [];
  const look = async () => {
    for (const { account_id } of clients) await app.holds.flush(account_id);
    const [counts] = await app.db.query(`select (select count(*) from open_holds)::int as holds,
      (select count(*) from ledger_entries)::int as entries, (select count(*) from chat_calls)::int as records`);
    looks.push(JSON.stringify({ upstream: stage.upstream.open(), ...counts }));
    return looks.length >= 10 && new Set(looks.slice(-10)).size === 1 ? looks.at(-1) : 'at work';
  };
  await expect.poll(look, { message: `seed ${seed}` }).toMatch(/^\{"upstream":0,"holds":0,/);
  const unwritten = `select count(*)::int as count from ledger_entries e
    where event = 'close' and kind = 'chat' and not exists (select from chat_calls c where c.id = e.ref)`;
  await expect.poll(() => app.db.query(unwritten)).toEqual([{ count: 0 }]);
  const [row] = await app.db.query<{ wrong: number }>(
    `select count(*)::int as wrong from chat_calls c
      where (attempts @> '[{"outcome": "answered"}]') <> (cost > 0)
         or (first_content_ms is not null and cost = 0)`,
  );
  expect(row?.wrong, `seed ${seed}: whose upstream answered pays, also for what was let go`).toBe(0);
  await expectExactBooks(app);
});

test('the sweep releases a hold whose node died', async () => {
  const { app } = stage.test;
  const { account_id, key_id } = stage.client;
  const hold = {
    account_id,
    key_id,
    ref: 'req_of_a_dead_node',
    amount: 5n,
    model: 'acme/oai',
    kind: 'chat',
    expires_in_ms: 120_000,
  };
  await makeHoldBatcher(app.db, () => new Date(app.clock.now()), { node_id: 'of a dead process' }).hold(hold);
  expect(await releaseForgotten(app)).toBe(0);
  expect(await releaseForgotten(app, new Date(Date.now() + 180_000))).toBe(1);
  await expectExactBooks(app);
});

test('both chat paths share one rate limit of the key', async () => {
  stopElapsingInTest();
  stage.upstream.script('gpt-x', { json: completion('x') });
  await stage.test.configure(yamlOf(stage.upstream, '', '', { chat_per_minute: 5 }));
  const client = await stage.test.client();
  const statuses: number[] = [];
  for (let i = 0; i < 4; i++) {
    statuses.push((await client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages: hello })).status);
    statuses.push(
      (await client.call('POST', '/v1/messages', { model: 'acme/oai', max_tokens: 9, messages: hello })).status,
    );
  }
  expect(statuses).toEqual([200, 200, 200, 200, 200, 429, 429, 429]);
});
