// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectExactBooks, type Answered, type Client } from '../helpers/app.ts';
import type { UpstreamRequest, Script } from '../helpers/chat-upstream.ts';
import { elapse } from '../helpers/clock.ts';
import { completion, hello, message, setStage, type Stage } from './setup.ts';
import { chunk, completionsStream, done, event, messagesStream, messageStart } from './streams.ts';

/** Slow calls: which silence is a failure, and whose. */

let stage: Stage;
const more = `
  - id: slow/oai
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: slow-x, timeout: { first_byte: 700ms, idle: 700ms, total: 4s } }]
  - id: slow/ant
    kind: chat
    price: *price
    routes: [{ provider: ant, upstream_model: slow-y, timeout: { first_byte: 700ms, idle: 700ms, total: 4s } }]
  - id: calm/oai
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: slow-x, timeout: { first_byte: 60s, idle: 6s, total: 120s } }]
  - id: calm/ant
    kind: chat
    price: *price
    routes: [{ provider: ant, upstream_model: slow-y, timeout: { first_byte: 60s, idle: 6s, total: 120s } }]
  - { id: short/whole, kind: chat, price: *price, routes: &short [{ provider: oai, upstream_model: slow-x,
      timeout: { first_byte: 5s, idle: 5s, total: 5s } }] }
  - { id: short/stream, kind: chat, price: *price, routes: *short }
  - { id: short/several, kind: chat, price: *price, routes: *short }
  - { id: short/endless, kind: chat, price: *price, routes: *short }
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
let heavy: Client;
let light: Client;
beforeEach(async () => {
  await stage.test.app.db.query('delete from route_health');
  elapse(1_100);
  heavy = await stage.test.client();
  light = await stage.test.client();
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

const ask = (model: string, content = 'Hello', client = stage.client, stream = false): Promise<Answered> =>
  client.call('POST', '/v1/chat/completions', { model, messages: [{ role: 'user', content }], stream });
const messages = (model: string): Promise<Answered> =>
  stage.client.call('POST', '/v1/messages', { model, max_tokens: 100, messages: hello, stream: true });

const isHeavy = ({ body }: UpstreamRequest) => JSON.stringify(body['messages']).includes('heavy');
const byWeight =
  (slow: Script, fast: Script) =>
  (request: UpstreamRequest): Script =>
    isHeavy(request) ? slow : fast;

const routesOpen = () => stage.test.app.db.query(`select from route_health where account_id = ''`);

test.each([
  ['short/whole', false],
  ['short/stream', true],
])('requests of one account that time out close the route %s for no other account', async (model, stream) => {
  const fast = stream ? { stream: completionsStream(['Hi'], [10, 5]) } : { json: completion('Hi') };
  stage.upstream.script('slow-x', byWeight('hang', fast));
  expect((await ask(model, 'light', light, stream)).status).toBe(200);
  const late = await Promise.all(Array.from({ length: 12 }, () => ask(model, 'heavy', heavy, stream)));
  expect(new Set(late.map(({ status }) => status))).toEqual(new Set([504]));
  expect((await ask(model, 'light', light, stream)).status).toBe(200);
  expect(await routesOpen()).toHaveLength(0);
});

test('timeouts of several accounts close a route for all', async () => {
  stage.upstream.script('slow-x', 'hang');
  await Promise.all([heavy, light, heavy, light, heavy].map((client) => ask('short/several', 'x', client)));
  await expect.poll(routesOpen).toHaveLength(1);
  const refused = await ask('short/several', 'x', light);
  expect([refused.status, refused.json.error.type]).toEqual([504, 'timeout']);
});

test('a response that takes longer than a call may last does not count against its route', async () => {
  const endless = Array.from({ length: 70 }, () => [chunk({ content: 'more ' }), 100]).flat();
  stage.upstream.script('slow-x', { stream: endless });
  const answers = await Promise.all(Array.from({ length: 6 }, () => ask('short/endless', 'x', heavy, true)));
  for (const { text } of answers) expect(text).toMatch(/more [^]*"type":"timeout"/);
  expect(await routesOpen()).toHaveLength(0);
});

test("a request that alone exceeds the upstream's rate limit delays no other call", async () => {
  const words =
    'Request too large for gpt-x in organization org-12345678 on tokens per min (TPM): Limit 30000, Requested 60000.';
  const refusal = { status: 429, json: { error: { message: words, code: 'rate_limit_exceeded' } } };
  stage.upstream.script('slow-x', byWeight(refusal, { json: completion('Hi') }));
  expect((await ask('calm/oai', 'heavy', heavy)).status).toBe(502);
  expect((await ask('calm/oai', 'light', light)).status).toBe(200);
  expect(await routesOpen()).toHaveLength(0);
});

const ping = event({ type: 'ping' });
const pings = Array.from({ length: 5 }, () => [400, ping]).flat();
/** Together longer than the idle time of calm models, and each far shorter. */
const calm_pings = Array.from({ length: 13 }, () => [500, ping]).flat();

test('a model that thinks silently is not cut while its upstream sends signs of life', async () => {
  const thinking = { type: 'thinking', thinking: '', signature: '' };
  const begun = [messageStart(), event({ type: 'content_block_start', index: 0, content_block: thinking })];
  const rest = messagesStream(['at last']).slice(1);
  stage.upstream.script('slow-y', { stream: [...begun, ...calm_pings, ...rest] });
  const role = chunk({ role: 'assistant', content: '' });
  const comments = calm_pings.map((part) => (part === ping ? ': still here\n\n' : part));
  stage.upstream.script('slow-x', { stream: [role, ...comments, ...completionsStream(['at last'])] });
  const models = ['calm/ant', 'calm/oai'];
  const asking = models.flatMap((model) => [messages(model), ask(model, 'x', stage.client, true)]);
  for (const { text } of await Promise.all(asking)) expect(text).toContain('at last');
});

test('a model that has not begun is cut despite signs of life, and so is one that falls silent', async () => {
  stage.upstream.script('slow-y', { stream: [...pings, ...messagesStream(['too late'])] });
  expect((await messages('slow/ant')).status).toBe(504);
  stage.upstream.script('slow-y', { stream: [messageStart(), 2_000, ...messagesStream(['too late']).slice(1)] });
  expect((await messages('slow/ant')).status).toBe(504);
  stage.upstream.script('slow-x', { stream: [': queued\n\n', 400, ': queued\n\n', 400, ': queued\n\n', 400, done] });
  expect((await ask('slow/oai', 'x', stage.client, true)).status).toBe(504);
});

test('callers get a Retry-After of at most a minute, however long the upstream asks for', async () => {
  stage.upstream.script('slow-y', { status: 429, headers: { 'retry-after': '86400' }, json: message('x') });
  for (const times of [1, 2]) {
    const { status, headers } = await ask('calm/ant');
    expect([times, status, headers.get('retry-after')]).toEqual([times, 502, '60']);
  }
});
