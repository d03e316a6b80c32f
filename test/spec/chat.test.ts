// isolated: it moves the monotonic clock of its process
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { completion, hello, message, setStage, type Stage } from '../chat/setup.ts';
import { chunk, completionsStream, done, event, messagesStream, messageStart } from '../chat/streams.ts';
import { expectExactBooks, type Answered } from '../helpers/app.ts';
import { elapse, stopElapsing } from '../helpers/clock.ts';

/** Specification 4.3, 4.4 and the decisions about chat, but for its money (chat-money.test.ts). */

let stage: Stage;

/** Its routes have time enough to be silent for. */
const more = `
  - id: acme/slow
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: first }, { provider: ant, upstream_model: second }]
`;

beforeAll(async () => {
  stage = await setStage({ more });
});
beforeEach(() => forgetHealth());
afterEach(async () => {
  stopElapsing(false);
  await expectExactBooks(stage.test.app);
});
afterAll(() => stage.stop());

/** Nodes believe what they have read of routes for a second. */
async function forgetHealth(): Promise<void> {
  await stage.test.app.db.query('delete from route_health');
  elapse(1_100);
}

const paths = ['/v1/chat/completions', '/v1/messages'] as const;
type Path = (typeof paths)[number];

const bodyOf = (path: Path, body: object) => ({
  messages: hello,
  ...(path === '/v1/messages' && { max_tokens: 100 }),
  ...body,
});
const ask = (path: Path, body: object, headers?: Record<string, string>): Promise<Answered> =>
  stage.client.call('POST', path, bodyOf(path, body), headers);

/** Resolves when the status line is there. */
const open = (path: Path, model: string): Promise<Response> =>
  fetch(stage.test.url + path, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf(path, { model, stream: true })),
  });

/** A stream is looked at each second, in real time: so long nothing may come before its time. */
const look_ms = 1_500;
const pause = (duration_ms: number) => new Promise((resolve) => setTimeout(resolve, duration_ms));

/** Reads a stream until its text has so much, and then the rest; each returns all text so far. */
function readerOf(response: Response) {
  const chunks = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const readWhile = async (isUnread: () => boolean): Promise<string> => {
    while (isUnread()) {
      const { done: is_over, value = '' } = (await chunks?.read()) ?? { done: true };
      if (is_over) break;
      text += value;
    }
    return text;
  };
  return { until: (part: string) => readWhile(() => !text.includes(part)), rest: () => readWhile(() => true) };
}

const namesOf = (text: string) => [...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);
const chunksOf = (text: string) =>
  [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data]) => JSON.parse(data ?? '') as { object: string; id: string });

async function recordOf(answer: { headers: Headers }): Promise<Answered> {
  const path = `/v1/chat/${answer.headers.get('x-request-id')}`;
  await expect.poll(async () => (await stage.client.call('GET', path)).status).toBe(200);
  return stage.client.call('GET', path);
}

it('S4.3-1 POST /v1/chat/completions takes requests and returns responses of the chat-completions style', async () => {
  stage.upstream.script('claude-x', { json: message('Hi') });
  const { json } = await ask('/v1/chat/completions', { model: 'acme/ant', temperature: 0.5, stop: ['x'] });
  expect(json).toEqual({
    id: expect.stringMatching(/^chatcmpl-req_\w{26}$/),
    object: 'chat.completion',
    created: expect.any(Number),
    model: 'acme/ant',
    system_fingerprint: null,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: 'Hi', refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: expect.objectContaining({ prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }),
  });
});

it('S4.3-2 the field model of a chat request selects the model', async () => {
  stage.upstream.script('gpt-x', { json: completion('one') });
  stage.upstream.script('claude-x', { json: message('two') });
  for (const path of paths) {
    expect((await ask(path, { model: 'acme/oai' })).text).toContain('one');
    expect((await ask(path, { model: 'acme/ant' })).text).toContain('two');
  }
});

it('S4.3-4 a stream of POST /v1/chat/completions is chunks that end with [DONE]', async () => {
  stage.upstream.script('claude-x', { stream: messagesStream(['Hi', ' there']) });
  const { text, headers } = await ask('/v1/chat/completions', { model: 'acme/ant', stream: true });
  expect(headers.get('content-type')).toMatch(/^text\/event-stream/);
  expect(new Set(chunksOf(text).map((one) => `${one.object} ${one.id}`))).toEqual(
    new Set([`chat.completion.chunk chatcmpl-${headers.get('x-request-id')}`]),
  );
  expect(text.endsWith(done)).toBe(true);
});

it('S4.4-1 POST /v1/messages takes requests and returns responses of the messages style', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const { json } = await ask('/v1/messages', { model: 'acme/oai', system: 'Be short.', stop_sequences: ['x'] });
  expect(json).toEqual({
    id: expect.stringMatching(/^msg_req_\w{26}$/),
    type: 'message',
    role: 'assistant',
    model: 'acme/oai',
    content: [{ type: 'text', text: 'Hi' }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    stop_details: null,
    container: null,
    diagnostics: null,
    usage: expect.objectContaining({ input_tokens: 10, output_tokens: 5 }),
  });
});

it('S4.4-2 a stream of POST /v1/messages is named events from message_start to message_stop', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi', ' there'], [10, 5]) });
  const { text } = await ask('/v1/messages', { model: 'acme/oai', stream: true });
  expect(namesOf(text)).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
});

it('S6-2 chat endpoints send no webhook events', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const answer = await ask('/v1/chat/completions', { model: 'acme/oai', webhook_url: 'https://example.com/hook' });
  expect((await recordOf(answer)).json.status).toBe(200);
  expect(await stage.test.app.db.query('select from deliveries')).toHaveLength(0);
});

it('D-models-12 POST /v1/generate with a chat model gets a 404 not_found that names the right endpoint', async () => {
  const answer = await stage.client.call('POST', '/v1/generate', { model: 'acme/oai', input: {} });
  expect(answer).toMatchObject({ status: 404, json: { error: { type: 'not_found' } } });
  expect(answer.json.error.message).toMatch(/\/v1\/chat\/completions.*\/v1\/messages/);
});

it("D-auth-6 the caller's anthropic-version and anthropic-beta are passed to an upstream of the same style", async () => {
  stage.upstream.script('claude-x', { json: message('Hi') });
  const headers = { 'anthropic-version': '2026-10-21', 'anthropic-beta': 'claude-code-20250219,effort-2025-11-24' };
  await ask('/v1/messages', { model: 'acme/ant' }, headers);
  expect(stage.upstream.requests.at(-1)?.headers).toMatchObject(headers);
});

it("D-errors-15 the message of an upstream's 400, 404, 413 or 422 about the request is passed to the caller", async () => {
  for (const status of [400, 404, 413, 422]) {
    stage.upstream.script('gpt-x', { status, json: { error: { message: 'messages.3: the file is too large' } } });
    const { status: refused_status, json } = await ask('/v1/chat/completions', { model: 'acme/oai' });
    expect([refused_status, json.error.type], `${status}`).toEqual([400, 'invalid_request']);
    expect(json.error.message).toBe('messages.3: the file is too large');
  }
});

it("D-errors-16 an upstream's message is passed on without its keys, URLs and account ids", async () => {
  const words = 'Bad input for org-0123456789abcdef by sk-upstream-secret-0123456789, see https://x.y/z';
  stage.upstream.script('gpt-x', { status: 400, json: { error: { message: words } } });
  const { json } = await ask('/v1/chat/completions', { model: 'acme/oai' });
  expect(json.error.message).toBe('Bad input for [id] by [key], see [link]');
});

it("D-errors-17 an upstream's other errors get a generic message", async () => {
  stage.upstream.script('gpt-x', { status: 500, json: { error: { message: 'db-internal-7 exploded' } } });
  const { status, text } = await ask('/v1/chat/completions', { model: 'acme/oai' });
  expect(status).toBe(502);
  expect(text).not.toContain('db-internal');
});

it("D-errors-18 an upstream's 429 on all routes becomes a 502 with Retry-After", async () => {
  const limited = { status: 429, headers: { 'retry-after': '7' }, json: { error: { message: 'slow down' } } };
  stage.upstream.script('first', limited);
  stage.upstream.script('second', limited);
  const { status, json, headers } = await ask('/v1/chat/completions', { model: 'acme/two' });
  expect([status, json.error.type, headers.get('retry-after')]).toEqual([502, 'upstream_error', '7']);
});

it("D-errors-19 an upstream's 401 or 403 becomes a 502", async () => {
  for (const status of [401, 403]) {
    await forgetHealth();
    stage.upstream.script('gpt-x', { status, json: { error: { message: 'no access' } } });
    const answer = await ask('/v1/chat/completions', { model: 'acme/oai' });
    expect([answer.status, answer.json.error.type]).toEqual([502, 'upstream_error']);
  }
});

it('D-chat-19 POST /v1/messages/count_tokens returns the input tokens of a request', async () => {
  const answer = await stage.client.call('POST', '/v1/messages/count_tokens', { model: 'acme/oai', messages: hello });
  expect([answer.status, JSON.parse(answer.text)]).toEqual([200, { input_tokens: expect.any(Number) }]);
});

it('D-chat-20 both styles reach every chat model, whatever style its upstream speaks', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  stage.upstream.script('claude-x', { json: message('Hi') });
  for (const path of paths) {
    for (const [model, upstream_path] of [
      ['acme/oai', '/v1/chat/completions'],
      ['acme/ant', '/v1/messages'],
    ] as const) {
      expect((await ask(path, { model, ...(path === '/v1/messages' && { system: 'Be kind.' }) })).status).toBe(200);
      const { path: request, body } = stage.upstream.requests.at(-1) ?? { body: {} };
      expect([request, 'system' in body]).toEqual([upstream_path, path === upstream_path && path === '/v1/messages']);
    }
  }
});

it('D-chat-21 the status line of a stream is sent with the first content', async () => {
  stage.upstream.script('gpt-x', {
    stream: [chunk({ role: 'assistant', content: '' }), 700, ...completionsStream(['Hi'])],
  });
  const begun_ms = Date.now();
  const response = await open('/v1/chat/completions', 'acme/oai');
  expect(Date.now() - begun_ms).toBeGreaterThan(600);
  await response.text();
});

it('D-chat-22 the status line of a stream is sent after 15 s without content', async () => {
  const content = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', { stream: [content.promise, ...completionsStream(['late'])] });
  const asked_before = stage.upstream.requests.length;
  stopElapsing(true);
  const opening = open('/v1/chat/completions', 'acme/oai');
  await expect.poll(() => stage.upstream.requests.length).toBe(asked_before + 1);
  elapse(14_000);
  expect(await Promise.race([opening, pause(look_ms)])).toBeUndefined();
  elapse(1_000);
  expect(await opening).toMatchObject({ status: 200 }); // its text is still to come
  content.resolve();
  expect(await (await opening).text()).toContain('late');
});

it('D-chat-23 a silent stream gets a comment or a ping every 15 s', async () => {
  const content = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', { stream: [content.promise, ...completionsStream(['late'])] });
  stage.upstream.script('claude-x', { stream: [content.promise, ...messagesStream(['late'])] });
  const asked_before = stage.upstream.requests.length;
  stopElapsing(true);
  const opening = Promise.all([open('/v1/chat/completions', 'acme/oai'), open('/v1/messages', 'acme/ant')]);
  await expect.poll(() => stage.upstream.requests.length).toBe(asked_before + 2);
  elapse(15_000);
  const [first, second] = await opening;
  await pause(look_ms); // nothing more before its time
  elapse(15_000);
  const ping = 'event: ping\ndata: {"type":"ping"}\n\n';
  const [of_first, of_second] = [readerOf(first), readerOf(second)];
  expect(await of_first.until(': keep-alive\n\n: keep-alive\n\n')).not.toContain('data');
  expect(await of_second.until(ping + ping)).not.toContain('message_start');
  content.resolve();
  expect(await of_first.rest()).toMatch(/^: keep-alive\n\n: keep-alive\n\ndata: \{/);
  expect((await of_second.rest()).startsWith(`${ping}${ping}event: message_start`)).toBe(true);
});

it('D-chat-24 a stream that fails before any content goes to the next route', async () => {
  stage.upstream.script('second', { json: message('from the second') });
  stage.upstream.script('first', { status: 500, json: {} });
  expect((await ask('/v1/messages', { model: 'acme/two' })).text).toContain('from the second');
  stage.upstream.script('first', { stream: [chunk({ role: 'assistant', content: '' })], then: 'cut' });
  stage.upstream.script('second', { stream: messagesStream(['from the second']) });
  const { text } = await ask('/v1/messages', { model: 'acme/two', stream: true });
  expect(namesOf(text).filter((name) => name === 'message_start')).toHaveLength(1);
  expect(text).toContain('from the second');
});

/** The first route says nothing until the caller has had a sign of life, and fails. */
async function failAfterSign(path: Path): Promise<string> {
  const end = Promise.withResolvers<void>();
  stage.upstream.script('first', { stream: [end.promise], then: 'cut' });
  const asked_before = stage.upstream.requests.length;
  stopElapsing(true); // one sign, however long this takes
  const opening = open(path, 'acme/slow');
  await expect.poll(() => stage.upstream.requests.length).toBe(asked_before + 1);
  elapse(15_000);
  const response = await opening;
  end.resolve();
  return response.text();
}

it('D-chat-25 a stream that fails after pings but before any content goes to the next route', async () => {
  stage.upstream.script('second', { stream: messagesStream(['from the second']) });
  const text = await failAfterSign('/v1/messages');
  expect(text).toMatch(/^event: ping\n/);
  expect(text).toContain('from the second');
});

it('D-chat-26 a stream whose routes all fail before a byte was sent gets an HTTP error', async () => {
  stage.upstream.script('gpt-x', { stream: [chunk({ role: 'assistant', content: '' })], then: 'cut' });
  for (const path of paths) {
    const { status, json } = await ask(path, { model: 'acme/oai', stream: true });
    expect([status, json.error.type]).toEqual([502, 'upstream_error']);
  }
});

it('D-chat-27 a stream whose routes all fail after pings gets the error event of its style', async () => {
  stage.upstream.script('second', { status: 500, json: {} });
  expect(await failAfterSign('/v1/messages')).toMatch(
    /^event: ping\n.*\n\nevent: error\ndata: \{"type":"error","error":\{"type":"upstream_error",.*\n\n$/,
  );
  await forgetHealth();
  expect(await failAfterSign('/v1/chat/completions')).toMatch(
    /^: keep-alive\n\ndata: \{"error":\{.*"type":"upstream_error".*\n\n$/,
  );
});

const half = [
  messageStart(),
  event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Half' } }),
];

it('D-chat-28 a stream that fails after content ends with an error event, never with a clean end', async () => {
  stage.upstream.script('claude-x', { stream: half });
  expect(namesOf((await ask('/v1/messages', { model: 'acme/ant', stream: true })).text).at(-1)).toBe('error');
  const { text } = await ask('/v1/chat/completions', { model: 'acme/ant', stream: true });
  expect(text).toMatch(/"upstream_error"[^\n]*\n\n$/);
  expect(text).not.toContain('[DONE]');
});

it('D-chat-29 a stream that fails after content is never sent to another route', async () => {
  stage.upstream.script('first', { stream: [chunk({ content: 'Half' })], then: 'cut' });
  stage.upstream.script('second', { stream: messagesStream(['from the second']) });
  // The second route speaks messages: of their style the call could go there as it is.
  for (const path of ['/v1/chat/completions', '/v1/messages'] as const) {
    const asked_before = stage.upstream.requests.length;
    const { text } = await ask(path, { model: 'acme/two', stream: true });
    expect(text).toContain('Half');
    expect(text).not.toContain('from the second');
    expect(stage.upstream.requests.length - asked_before).toBe(1);
  }
});

it('D-chat-30 each call leaves a record of its model, routes, tokens, times, finish reason, status and cost', async () => {
  stage.upstream.script('first', { status: 500, json: {} });
  stage.upstream.script('second', { stream: messagesStream(['Hi']) });
  const { json } = await recordOf(await ask('/v1/messages', { model: 'acme/two', stream: true }));
  expect(json).toMatchObject({
    model: 'acme/two',
    attempts: [
      { route: 'acme/two#oai', outcome: 'failed' },
      { route: 'acme/two#ant', outcome: 'answered' },
    ],
    usage: { input_tokens: 10, output_tokens: 5 },
    first_content_ms: expect.any(Number),
    total_ms: expect.any(Number),
    finish: 'end_turn',
    status: 200,
    cost: { exact: '0.000070' },
  });
});

it('D-chat-31 the record of a call holds nothing of its content', async () => {
  stage.upstream.script('gpt-x', { json: completion('a secret answer') });
  await recordOf(
    await ask('/v1/chat/completions', { model: 'acme/oai', messages: [{ role: 'user', content: 'a secret wish' }] }),
  );
  const rows = await stage.test.app.db.query<{ row: string }>(
    'select to_json(chat_calls)::text as row from chat_calls',
  );
  expect(rows.map(({ row }) => row).join()).not.toContain('secret');
});

it('D-chat-32 a response that is not streamed reports its exact cost in x-cost-amount and x-cost-currency', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  const { headers } = await ask('/v1/chat/completions', { model: 'acme/oai' });
  expect([headers.get('x-cost-amount'), headers.get('x-cost-currency')]).toEqual(['0.000070', 'USD']);
});

it('D-chat-33 GET /v1/chat/{request_id} reports the exact cost of a stream', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const answer = await ask('/v1/chat/completions', { model: 'acme/oai', stream: true });
  expect(answer.headers.has('x-cost-amount')).toBe(false);
  expect((await recordOf(answer)).json.cost).toEqual({ amount: '0.01', currency: 'USD', exact: '0.000070' });
});

async function openRoute(cause: string, retry_in_ms: number): Promise<void> {
  await stage.test.app.db.query(
    `insert into route_health (route, cause, openings, opened_at, retry_at)
     values ('acme/oai#oai', $1, 1, $2, $3)`,
    [cause, new Date(Date.now() - 60_000), new Date(Date.now() + retry_in_ms)],
  );
  elapse(1_100);
}

it('D-chat-34 a chat model whose circuits are all open serves one call of an account at a time; others get 502 after two seconds', async () => {
  for (const path of paths) {
    const end = Promise.withResolvers<void>();
    stage.upstream.script('gpt-x', { stream: [end.promise, ...completionsStream(['Hi'], [10, 5])] });
    await forgetHealth();
    await openRoute('upstream_error', 60_000);
    const probe = ask(path, { model: 'acme/oai', stream: true });
    await expect.poll(() => stage.upstream.open()).toBe(1);
    const asked_before = stage.upstream.requests.length;
    const answer = await ask(path, { model: 'acme/oai' });
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([502, expect.stringMatching(/^\d+$/)]);
    expect(stage.upstream.requests.length).toBe(asked_before);
    end.resolve();
    expect((await probe).status).toBe(200);
  }
});

it('D-chat-35 a half-open route lets one call through, and its success closes the circuit', async () => {
  stage.upstream.script('gpt-x', { json: completion('Hi') });
  await openRoute('upstream_error', -1);
  expect((await ask('/v1/chat/completions', { model: 'acme/oai' })).status).toBe(200);
  expect(await stage.test.app.db.query('select from route_health')).toHaveLength(0);
});

it('D-chat-36 a failure that a sandbox directive causes opens no circuit', async () => {
  const say = (content: string) =>
    ask('/v1/chat/completions', { model: 'sandbox/chat', messages: [{ role: 'user', content }] });
  for (let i = 0; i < 6; i++) expect((await say('[[error 503]]')).status).toBe(502);
  expect((await say('Hello')).status).toBe(200);
});
