// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import type { UpstreamRequest, Script } from '../helpers/chat-upstream.ts';
import { elapse } from '../helpers/clock.ts';
import { completion, setStage, type Stage } from './setup.ts';
import { chunk, completionsStream } from './streams.ts';

/** Circuits of chat: which failures keep which accounts from a route. */

let stage: Stage;
let one: Client;
let two: Client;

beforeAll(async () => {
  stage = await setStage();
});
beforeEach(async () => {
  await stage.test.app.db.query('delete from route_health');
  elapse(1_100);
  one = await stage.test.client();
  two = await stage.test.client();
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

function ask(client: Client, content = 'Hello', stream = false): Promise<Answered> {
  const messages = [{ role: 'user', content }];
  return client.call('POST', '/v1/chat/completions', { model: 'acme/oai', messages, stream, max_tokens: 10 });
}

const fine: Script = { json: completion('Hi') };

/** An upstream that answers one account's words in one way, and everybody else's in another. */
function answer(words: string, script: Script, others: Script = fine): void {
  stage.upstream.script('gpt-x', ({ body }: UpstreamRequest) =>
    JSON.stringify(body['messages']).includes(words) ? script : others,
  );
}

const refusal = (status: number, headers = {}): Script => ({ status, headers, json: { error: { message: 'no' } } });

test.each([
  ['one 403', 1, refusal(403)],
  ['one 429', 1, refusal(429, { 'retry-after': '120' })],
  ['eleven 500s', 11, refusal(500)],
])('%s that one account causes closes the route for no other account', async (_, times, script) => {
  answer('attack', script);
  for (let i = 0; i < times; i++) expect((await ask(one, 'attack')).status).toBe(502);
  elapse(1_100);
  expect((await ask(two)).status).toBe(200);
});

test('an account whose failures opened the last route closes the circuit with its next successful call', async () => {
  answer('attack', refusal(500));
  for (let i = 0; i < 11; i++) expect((await ask(one, 'attack')).status).toBe(502);
  elapse(1_100);
  expect((await ask(one)).status).toBe(200);
  expect(await stage.test.app.db.query('select from route_health')).toEqual([]);
});

async function closeForAll(): Promise<void> {
  const late = new Date(Date.now() + 60_000);
  await stage.test.app.db.query(
    `insert into route_health (route, cause, openings, opened_at, retry_at) values ('acme/oai#oai', 'timeout', 1, $1, $1)`,
    [late],
  );
  elapse(1_100);
}

test('one call per account probes the last route, and the next waits two seconds and gets 502 with Retry-After', async () => {
  answer('hang', 'hang');
  await closeForAll();
  const open_before = stage.upstream.open();
  const leave = new AbortController();
  const hanging = [one, two].map((client) =>
    fetch(`${stage.test.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${client.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'acme/oai', messages: [{ role: 'user', content: 'hang' }], max_tokens: 10 }),
      signal: leave.signal,
    }).catch(() => 'left'),
  );
  await expect.poll(() => stage.upstream.open()).toBe(open_before + 2);
  const requests_before = stage.upstream.requests.length;
  const begun_ms = performance.now();
  const refused = await ask(one);
  expect(performance.now() - begun_ms).toBeGreaterThan(1_950);
  expect([refused.status, refused.json.error.type]).toEqual([502, 'upstream_error']);
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(stage.upstream.requests).toHaveLength(requests_before);
  leave.abort();
  await Promise.all(hanging);
  stage.upstream.letGo();
  await expect.poll(() => stage.upstream.open()).toBe(0);
});

test('a probe of the last route ends with its first content, and calls that wait for it go on', async () => {
  const slow: Script = { stream: [chunk({ content: 'first' }), 2_500, ...completionsStream([' last'])] };
  answer('slow', slow);
  await closeForAll();
  const requests_before = stage.upstream.requests.length;
  const first = ask(one, 'slow', true);
  await expect.poll(() => stage.upstream.requests.length).toBe(requests_before + 1);
  const others = await Promise.all([ask(one), ask(one), ask(one)]);
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200]);
  expect((await first).text).toContain(' last');
});
