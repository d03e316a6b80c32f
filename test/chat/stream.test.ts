// isolated: it measures its process
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectExactBooks } from '../helpers/app.ts';
import { rereadRoutes } from '../helpers/routes.ts';
import { untilStill } from '../helpers/still.ts';
import { hello, message, setStage, type Stage, withUpstreamIds } from './setup.ts';
import { chunk, completionsStream, done, event, messagesStream, messageStart, usageChunk } from './streams.ts';

let stage: Stage;

beforeAll(async () => {
  const more = `
  - id: acme/stalled
    kind: chat
    price: *price
    routes: [{ provider: oai, upstream_model: stalled, timeout: { total: 2s } }]
`;
  stage = await setStage({ more });
});
beforeEach(async () => {
  await stage.test.app.db.query('delete from route_health');
  await rereadRoutes(stage.test.app);
});
afterEach(() => expectExactBooks(stage.test.app));
afterAll(() => stage.stop());

type Streamed = { status: number; id: string; text: string; type: string };

async function stream(path: 'chat/completions' | 'messages', body: object, signal?: AbortSignal): Promise<Response> {
  return fetch(`${stage.test.url}/v1/${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${stage.client.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: hello, stream: true, ...(path === 'messages' && { max_tokens: 100 }), ...body }),
    ...(signal && { signal }),
  });
}

async function whole(path: 'chat/completions' | 'messages', body: object): Promise<Streamed> {
  const response = await stream(path, body);
  const id = response.headers.get('x-request-id') ?? '';
  return { status: response.status, id, text: await response.text(), type: response.headers.get('content-type') ?? '' };
}

/** Begins a stream; resolves at its first bytes. */
async function begun(path: 'chat/completions' | 'messages', body: object) {
  const reader = (await stream(path, body)).body?.getReader();
  const read = async () => Buffer.from((await reader?.read())?.value ?? []).toString();
  const rest = async () => {
    let text = '';
    for (let more; (more = await read()) !== '';) text += more;
    return text;
  };
  return { bytes: await read(), rest };
}

type Record_ = {
  status: number;
  error_type: string | null;
  cost: { exact: string };
  usage: Record<string, number>;
  counted_here: boolean;
  attempts: { route: string; outcome: string }[];
};

async function recordOf(id: string): Promise<Record_> {
  await expect
    .poll(async () => (await stage.client.call('GET', `/v1/chat/${id}`)).status, { timeout: 120_000 })
    .toBe(200);
  return JSON.parse((await stage.client.call('GET', `/v1/chat/${id}`)).text) as Record_;
}

async function held(): Promise<string> {
  return (await stage.client.call('GET', '/v1/balance')).json.held.exact;
}

test('a completions stream of the same style is relayed with only the model renamed, and the usage that we request is removed', async () => {
  const texts = ['Grü', 'ße ', '😀'];
  stage.upstream.script('gpt-x', { stream: completionsStream(texts, [10, 5]) });
  const { status, text, type, id } = await whole('chat/completions', { model: 'acme/oai' });
  expect([status, type]).toEqual([200, 'text/event-stream; charset=utf-8']);
  expect(withUpstreamIds(text)).toBe(completionsStream(texts).join('').replaceAll('gpt-x', 'acme/oai'));
  expect(stage.upstream.requests.at(-1)?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  expect(await recordOf(id)).toMatchObject({ status: 200, cost: { exact: '0.000070' }, counted_here: false });
});

test('a completions stream of the same style passes on usage that the caller requested', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]) });
  const { text } = await whole('chat/completions', { model: 'acme/oai', stream_options: { include_usage: true } });
  expect(withUpstreamIds(text)).toBe(completionsStream(['Hi'], [10, 5]).join('').replaceAll('gpt-x', 'acme/oai'));
});

test('a messages stream of the same style is relayed with only the model renamed', async () => {
  stage.upstream.script('claude-x', { stream: messagesStream(['Grüße', ' 😀']) });
  const { text, id } = await whole('messages', { model: 'acme/ant' });
  expect(withUpstreamIds(text)).toBe(messagesStream(['Grüße', ' 😀']).join('').replaceAll('claude-x', 'acme/ant'));
  expect(await recordOf(id)).toMatchObject({ cost: { exact: '0.000070' }, counted_here: false });
});

test('each style gets its own stream from an upstream of the other style', async () => {
  stage.upstream.script('claude-x', { stream: messagesStream(['Hi', ' there']) });
  const first = await whole('chat/completions', { model: 'acme/ant', stream_options: { include_usage: true } });
  const chunks = first.text
    .split('\n\n')
    .filter((part) => part.startsWith('data: {'))
    .map((part) => JSON.parse(part.slice(6)));
  expect(chunks.map((one) => one.choices[0]?.delta?.content ?? '').join('')).toBe('Hi there');
  expect(chunks.at(-1)).toMatchObject({
    choices: [],
    usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
  });
  expect(first.text.endsWith(done)).toBe(true);
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi', ' there'], [10, 5]) });
  const second = await whole('messages', { model: 'acme/oai' });
  const types = [...second.text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name);
  expect(types).toEqual([
    'message_start',
    'content_block_start',
    'content_block_delta',
    'content_block_delta',
    'content_block_stop',
    'message_delta',
    'message_stop',
  ]);
  expect((await recordOf(second.id)).cost.exact).toBe('0.000070');
});

test.each([
  ['an error as the first event', [`data: {"error":{"message":"overloaded"}}\n\n`], 'end'],
  ['a role, then an error', [chunk({ role: 'assistant', content: '' }), `data: {"error":{"message":"x"}}\n\n`], 'end'],
  ['a cut before anything', [], 'cut'],
  ['a cut after the role', [chunk({ role: 'assistant', content: '' })], 'cut'],
  ['an end without a word', [], 'end'],
  ['what is no stream', ['<html>oops</html>'], 'end'],
  ['silence', [': ping\n\n'], 'hang'],
] as const)('a stream goes to the next route before the first content after %s', async (_, parts, then) => {
  stage.upstream.script('first', { stream: [...parts], then });
  stage.upstream.script('second', { stream: messagesStream(['from the second']) });
  const { status, text, id } = await whole('messages', { model: 'acme/two' });
  expect(status).toBe(200);
  expect(withUpstreamIds(text)).toBe(messagesStream(['from the second']).join('').replaceAll('claude-x', 'acme/two'));
  expect(text.match(/event: message_start/g)).toHaveLength(1);
  expect((await recordOf(id)).attempts.map(({ outcome }) => outcome)).toEqual(['failed', 'answered']);
  await expect.poll(() => stage.upstream.open()).toBe(0);
});

test('a stream whose routes all fail before any content gets an HTTP error in its style', async () => {
  stage.upstream.script('first', { stream: [], then: 'cut' });
  stage.upstream.script('second', {
    stream: [messageStart(), event({ type: 'error', error: { type: 'overloaded_error', message: 'x' } })],
  });
  const { status, text, id } = await whole('messages', { model: 'acme/two' });
  expect(status).toBe(502);
  expect(JSON.parse(text)).toMatchObject({ type: 'error', error: { type: 'upstream_error' } });
  expect(await recordOf(id)).toMatchObject({ status: 502, cost: { exact: '0.000000' } });
  expect(await held()).toBe('0.000000');
});

test.each(['cut', 'end'] as const)(
  'a stream that breaks after content (%s) ends with an error event, and the delivered text is charged',
  async (then) => {
    stage.upstream.script('gpt-x', {
      stream: [chunk({ role: 'assistant', content: '' }), chunk({ content: 'Half of it' })],
      then,
    });
    const { text, id } = await whole('chat/completions', { model: 'acme/oai' });
    expect(text).toContain('Half of it');
    expect(text).not.toContain('[DONE]');
    expect(JSON.parse(text.trim().split('\n\n').at(-1)?.slice(6) ?? '')).toMatchObject({
      error: { type: 'upstream_error', param: null },
    });
    const record = await recordOf(id);
    expect(record).toMatchObject({ status: 502, error_type: 'upstream_error', counted_here: true });
    expect(Number(record.cost.exact)).toBeGreaterThan(0);
    stage.upstream.script('claude-x', { stream: messagesStream(['Half']).slice(0, 4), then });
    const other = await whole('messages', { model: 'acme/ant' });
    expect(other.text).not.toContain('message_stop');
    expect(other.text).toMatch(/event: error\ndata: \{"type":"error","error":\{"type":"upstream_error"/);
    expect(await recordOf(other.id)).toMatchObject({ usage: { input_tokens: 10 } }); // told at the start
  },
);

test('an upstream that falls silent after content ends the stream with a timeout error', async () => {
  stage.upstream.script('first', { stream: [chunk({ content: 'Half' })], then: 'hang' });
  const { text, id } = await whole('chat/completions', { model: 'acme/two' });
  expect(text).toContain('"type":"timeout"');
  expect(await recordOf(id)).toMatchObject({ status: 504, error_type: 'timeout' });
  await expect.poll(() => stage.upstream.open()).toBe(0);
});

test('a tool call without arguments counts as output in a stream without usage, as in a whole response', async () => {
  const name = 'look_at_the_weather_in_all_places';
  const call = { index: 0, id: 'c', type: 'function', function: { name, arguments: '' } };
  stage.upstream.script('gpt-x', { stream: [chunk({ tool_calls: [call] }), chunk({}, {}, 'tool_calls'), done] });
  const block = { type: 'tool_use', id: 'c', name, input: {} };
  stage.upstream.script('claude-x', {
    stream: [
      messageStart({ input_tokens: 10 }),
      event({ type: 'content_block_start', index: 0, content_block: block }),
      event({ type: 'content_block_stop', index: 0 }),
      event({ type: 'message_delta', delta: { stop_reason: 'tool_use' } }),
      event({ type: 'message_stop' }),
    ],
  });
  for (const model of ['acme/oai', 'acme/ant']) {
    for (const path of ['chat/completions', 'messages'] as const) {
      const { id } = await whole(path, { model });
      const usage = { output_tokens: Math.ceil(name.length / 4) };
      expect(await recordOf(id), `${model} ${path}`).toMatchObject({ usage });
    }
  }
});

test('a stream that is cut before its usage is charged for the text that was relayed', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['four words are here']) });
  const { id } = await whole('chat/completions', { model: 'acme/oai' });
  expect(await recordOf(id)).toMatchObject({ status: 200, counted_here: true });
  expect(Number((await recordOf(id)).cost.exact)).toBeGreaterThan(0);
  stage.upstream.script('gpt-x', { stream: [chunk({ content: 'words' }), chunk({}, {}, 'stop')], then: 'cut' });
  const late = await whole('chat/completions', { model: 'acme/oai' });
  expect(Number((await recordOf(late.id)).cost.exact)).toBeGreaterThan(0);
});

test('usage in the last content chunk is accepted', async () => {
  const last = chunk(
    { content: '!' },
    { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } },
    'stop',
  );
  stage.upstream.script('gpt-x', { stream: [chunk({ role: 'assistant', content: '' }), last, done] });
  const { text, id } = await whole('chat/completions', { model: 'acme/oai' });
  expect(text).not.toContain('prompt_tokens');
  expect((await recordOf(id)).cost.exact).toBe('0.000070');
});

test('a caller who disconnects before content releases the upstream at its first byte and pays for the input', async () => {
  const before = (await stage.client.call('GET', '/v1/balance')).json.balance.exact;
  stage.upstream.script('gpt-x', { stream: [chunk({ role: 'assistant', content: '' })], then: 'hang' });
  const leave = new AbortController();
  const left = stream('chat/completions', { model: 'acme/oai' }, leave.signal).catch(() => 'left');
  await expect.poll(() => stage.upstream.open()).toBe(1);
  leave.abort();
  expect(await left).toBe('left');
  await expect.poll(() => stage.upstream.open()).toBe(0);
  await expect.poll(held).toBe('0.000000');
  const after = (await stage.client.call('GET', '/v1/balance')).json.balance.exact;
  expect(Number(before) - Number(after)).toBeCloseTo(5 * 0.000002, 6); // five tokens
});

test('a caller who disconnects at [DONE] before the upstream closes leaves a successful call', async () => {
  stage.upstream.script('gpt-x', { stream: completionsStream(['Hi'], [10, 5]), then: 'hang' });
  const leave = new AbortController();
  const response = await stream('chat/completions', { model: 'acme/oai' }, leave.signal);
  const reader = response.body?.getReader();
  let text = '';
  while (!text.includes(done)) text += Buffer.from((await reader?.read())?.value ?? []).toString();
  leave.abort();
  const record = await recordOf(response.headers.get('x-request-id') ?? '');
  expect(record).toMatchObject({ status: 200, error_type: null, counted_here: false, cost: { exact: '0.000070' } });
});

test('a caller who disconnects after content releases the upstream at once and pays for what was produced', async () => {
  const before = (await stage.client.call('GET', '/v1/balance')).json.balance.exact;
  const endless = Array.from({ length: 2_000 }, () => [chunk({ content: 'more and more ' }), 5]).flat();
  stage.upstream.script('gpt-x', { stream: endless });
  const leave = new AbortController();
  const response = await stream('chat/completions', { model: 'acme/oai' }, leave.signal);
  const reader = response.body?.getReader();
  await reader?.read();
  leave.abort();
  await expect.poll(() => stage.upstream.open()).toBe(0);
  await expect.poll(held).toBe('0.000000');
  const record = await recordOf(response.headers.get('x-request-id') ?? '');
  expect(record).toMatchObject({ status: 499, counted_here: true });
  expect(Number(record.cost.exact)).toBeGreaterThan(0);
  const after = (await stage.client.call('GET', '/v1/balance')).json.balance.exact;
  expect(Number(before) - Number(after)).toBeCloseTo(Number(record.cost.exact), 6);
});

test('a caller who reads slowly slows its upstream down', async () => {
  const megabyte = chunk({ content: 'x'.repeat(1_000_000) });
  let written = 0;
  const parts = Array.from({ length: 60 }, () => megabyte);
  stage.upstream.script('gpt-x', { stream: parts.map((part) => ((written += 1), part)) });
  const response = await stream('chat/completions', { model: 'acme/oai' });
  const before = process.memoryUsage().arrayBuffers;
  await untilStill(() => process.memoryUsage().arrayBuffers);
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(40_000_000);
  expect(written).toBe(60);
  await response.body?.cancel();
  await expect.poll(held).toBe('0.000000');
});

test('a stream that is silent for 15 s sends a ping and can still go to the next route', async () => {
  const silence = Promise.withResolvers<void>();
  stage.upstream.script('gpt-x', { stream: [silence.promise, ...completionsStream(['late'])] });
  stage.upstream.script('claude-x', { stream: [silence.promise, ...messagesStream(['late'])] });
  const [first, second] = await Promise.all([
    begun('chat/completions', { model: 'acme/oai' }),
    begun('messages', { model: 'acme/ant' }),
  ]);
  silence.resolve(); // both have had their ping
  expect([first.bytes, second.bytes]).toEqual([': keep-alive\n\n', 'event: ping\ndata: {"type":"ping"}\n\n']);
  expect(withUpstreamIds(await first.rest())).toBe(
    completionsStream(['late']).join('').replaceAll('gpt-x', 'acme/oai'),
  );
  expect(await second.rest()).toMatch(/^event: message_start/);
});

test('a response that is not streamed is never a stream', async () => {
  stage.upstream.script('claude-x', { json: message('x') });
  const response = await stream('messages', { model: 'acme/ant', stream: false });
  expect(response.headers.get('content-type')).toMatch(/^application\/json/);
  await response.text();
});

test('a usage chunk alone is not content', async () => {
  stage.upstream.script('first', { stream: [usageChunk(10, 0)], then: 'cut' });
  stage.upstream.script('second', { stream: messagesStream(['ok']) });
  expect((await whole('chat/completions', { model: 'acme/two' })).text).toContain('ok');
});

test('a call whose caller never reads is settled when its time is over, and its route is not blamed', async () => {
  const megabyte = chunk({ content: 'x'.repeat(1_000_000) });
  stage.upstream.script('stalled', { stream: Array.from({ length: 40 }, () => megabyte), then: 'hang' });
  const asked_before = stage.upstream.requests.length;
  const { port } = new URL(stage.test.url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.on('error', () => undefined);
  const body = JSON.stringify({ model: 'acme/stalled', stream: true, messages: hello });
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${stage.client.key}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  socket.pause();
  await expect.poll(() => stage.upstream.requests.length).toBeGreaterThan(asked_before);
  await expect.poll(() => stage.upstream.open()).toBe(0);
  await expect.poll(held).toBe('0.000000');
  expect(await stage.test.app.db.query('select from route_health')).toHaveLength(0);
  socket.destroy();
});
