import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { startChatUpstream, type ChatUpstream } from '../helpers/chat-upstream.ts';
import { startCollector, type CollectedSpan, type Collector } from '../helpers/collector.ts';
import { startReceiver, type Receiver } from '../helpers/receiver.ts';

const trace_id = '0af7651916cd43dd8448eb211c80319c';
const caller_span = 'b7ad6b7169203331';
const secret_word = 'a word that stays in the house';

let collector: Collector;
let upstream: ChatUpstream;
let receiver: Receiver;
let service: TestApp;
let client: Client;

beforeAll(async () => {
  collector = await startCollector();
  upstream = await startChatUpstream();
  receiver = await startReceiver();
  const yaml = `version: 1
net: { allow: ["127.0.0.0/8"] }
providers: { oai: { adapter: openai, base_url: "${upstream.url}/v1", allow_private: true } }
models:
  - id: acme/assistant
    kind: chat
    price: [{ unit: input_token, per: 1000000, amount: "1" }, { unit: output_token, per: 1000000, amount: "1" }]
    routes: [{ provider: oai, upstream_model: broken }, { provider: oai, upstream_model: gpt-x }]
`;
  service = await startTestApp({ yaml, env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } });
  client = await service.client();
  upstream.script('broken', { status: 500, json: { error: { message: 'no' } } });
  upstream.script('gpt-x', {
    json: {
      id: 'c1',
      object: 'chat.completion',
      model: 'gpt-x',
      choices: [{ index: 0, message: { role: 'assistant', content: secret_word }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 },
    },
  });
});
afterAll(async () => {
  await expectExactBooks(service.app);
  await service.stop();
  await receiver.stop();
  await upstream.stop();
  await collector.stop();
});

/** The spans of a trace, once these names are among them: they come in batches. */
async function spansOf(id: string, ...names: string[]): Promise<CollectedSpan[]> {
  const those = () => collector.spans.filter(({ traceId }) => traceId === id);
  await expect.poll(() => those().map(({ name }) => name)).toEqual(expect.arrayContaining(names));
  return those();
}

const named = (spans: CollectedSpan[], name: string) => {
  const matches = spans.filter((span) => span.name === name);
  expect(matches, name).toHaveLength(1);
  return matches[0] as CollectedSpan;
};

const chat = (headers: Record<string, string>) =>
  client.call(
    'POST',
    '/v1/chat/completions',
    { model: 'acme/assistant', messages: [{ role: 'user', content: secret_word }] },
    headers,
  );

test('a chat call continues its caller’s trace through both routes, and the upstreams are told', async () => {
  const { status } = await chat({ traceparent: `00-${trace_id}-${caller_span}-01` });
  expect(status).toBe(200);
  const names = ['chat broken', 'chat gpt-x', 'hold', 'settle'];
  const spans = await spansOf(trace_id, 'POST /v1/chat/completions', ...names);
  const root = named(spans, 'POST /v1/chat/completions');
  expect(root).toMatchObject({ parentSpanId: caller_span, kind: 2, facts: { 'http.response.status_code': '200' } });
  const [failed, answered] = [named(spans, 'chat broken'), named(spans, 'chat gpt-x')];
  for (const span of [failed, answered, named(spans, 'hold'), named(spans, 'settle')])
    expect(span.parentSpanId).toBe(root.spanId);
  expect(failed.status).toEqual({ code: 2, message: 'upstream_error' });
  expect(answered).toMatchObject({
    kind: 3,
    status: {},
    facts: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'oai',
      'gen_ai.usage.input_tokens': '9',
      'gen_ai.usage.output_tokens': '4',
      'medley.model': 'acme/assistant',
    },
  });
  const traceparents = upstream.requests.map(({ headers }) => headers['traceparent']);
  expect(traceparents).toEqual([failed, answered].map(({ spanId }) => `00-${trace_id}-${spanId}-01`));
});

test('a task is one trace from its request over the worker to the webhook', async () => {
  const own = trace_id.replace('0af', '1af');
  const created = await client.call(
    'POST',
    '/v1/generate?wait=120',
    { model: 'sandbox/image', input: { prompt: secret_word }, webhook_url: `${receiver.url}/traced` },
    { traceparent: `00-${own}-${caller_span}-01` },
  );
  expect(created.json.status).toBe('succeeded');
  const { headers } = await receiver.nth('/traced', 1);
  const ends = ['start sandbox/image', 'store outputs', 'end task'];
  const spans = await spansOf(own, 'POST /v1/generate', 'webhook task.succeeded', ...ends);
  const root = named(spans, 'POST /v1/generate');
  const start = named(spans, 'start sandbox/image');
  expect(start).toMatchObject({ parentSpanId: root.spanId, kind: 5 });
  const webhook = named(spans, 'webhook task.succeeded');
  expect(webhook).toMatchObject({ parentSpanId: root.spanId, kind: 3, facts: { 'http.response.status_code': '204' } });
  expect(headers['traceparent']).toBe(`00-${own}-${webhook.spanId}-01`);
  const ids = () => new Set(collector.spans.map(({ spanId }) => spanId));
  for (const span of spans.filter(({ spanId }) => spanId !== root.spanId))
    await expect.poll(ids).toContain(span.parentSpanId); // a parent ends, and comes, behind its children
  for (const span of spans) expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
});

test('a trace that its caller does not record is passed on, and not recorded here', async () => {
  const own = trace_id.replace('0af', '2af');
  const header = `00-${own}-${caller_span}-00`;
  upstream.requests.length = 0;
  await chat({ traceparent: header });
  await receiver.nth('/traced', 1);
  await client.call(
    'POST',
    '/v1/generate?wait=120',
    { model: 'sandbox/image', input: { prompt: 'x' }, webhook_url: `${receiver.url}/unrecorded` },
    { traceparent: header },
  );
  const { headers } = await receiver.nth('/unrecorded', 1);
  expect(headers['traceparent']).toBe(header);
  expect(upstream.requests.map((request) => request.headers['traceparent'])).toEqual([header, header]);
  await chat({});
  await expect.poll(() => collector.spans.filter(({ traceId }) => traceId !== trace_id).length).toBeGreaterThan(3);
  expect(collector.spans.filter(({ traceId }) => traceId === own)).toEqual([]);
});

test('a header that is no place in a trace begins one of its own, and costs no call', async () => {
  const before = collector.spans.length;
  const { status } = await chat({ traceparent: `00-${'0'.repeat(32)}-x-01` });
  expect(status).toBe(200);
  await expect
    .poll(() => collector.spans.slice(before).some(({ name }) => name === 'POST /v1/chat/completions'))
    .toBe(true);
});

test('a stream that its caller leaves ends its span with that', async () => {
  const own = trace_id.replace('0af', '3af');
  upstream.script('gpt-x', {
    stream: [
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', model: 'x', choices: [{ index: 0, delta: { content: 'Hi' } }] })}\n\n`,
    ],
    then: 'hang',
  });
  const leave = new AbortController();
  const response = await fetch(`${service.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${client.key}`,
      'content-type': 'application/json',
      traceparent: `00-${own}-${caller_span}-01`,
    },
    body: JSON.stringify({ model: 'acme/assistant', stream: true, messages: [{ role: 'user', content: 'x' }] }),
    signal: leave.signal,
  });
  await response.body?.getReader().read();
  leave.abort();
  const spans = await spansOf(own, 'settle', 'POST /v1/chat/completions');
  const root = named(spans, 'POST /v1/chat/completions');
  expect(root.status).toEqual({ code: 2, message: 'the caller left' });
  expect(named(spans, 'settle').parentSpanId).toBe(root.spanId);
});

test('no span has a prompt, an answer, a key, an account or an address with a query', () => {
  const all = collector.texts.join('\n');
  expect(all).not.toContain(secret_word);
  expect(all).not.toContain(client.key);
  expect(all).not.toContain(client.account_id);
  expect(all).not.toContain('?wait');
});
