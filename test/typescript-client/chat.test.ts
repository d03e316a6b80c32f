import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import * as sdk from '../../clients/typescript/src/index.ts';
import { expectExactBooks, startTestApp, type Client, type TestApp } from '../helpers/app.ts';
import { local_clients } from '../helpers/catalog.ts';
import { startReceiver } from '../helpers/receiver.ts';
import { startCuttingProxy, type CuttingProxy } from './cutting-proxy.ts';
import { startEventServer, type EventServer } from './event-server.ts';

let service: TestApp;
let proxy: CuttingProxy;
let own: Client;
let medley: sdk.Medley;

beforeAll(async () => {
  service = await startTestApp({ yaml: local_clients });
  proxy = await startCuttingProxy(service.url);
});
afterAll(async () => {
  await proxy?.stop();
  await service?.stop();
});
beforeEach(async () => {
  own = await service.client();
  medley = clientOf();
  proxy.seen.length = 0;
  proxy.decide = () => 'pass';
});
afterEach(() => expectExactBooks(service.app));

const clientOf = (options: sdk.MedleyOptions = {}) =>
  new sdk.Medley({ base_url: proxy.url, api_key: own.key, ...options });
const refusal = (error: unknown) => error;
const ask = (content: string, more: Partial<sdk.ChatRequest> = {}): sdk.ChatRequest => ({
  model: 'sandbox/chat',
  messages: [{ role: 'user', content }],
  ...more,
});
const calls = () => proxy.seen.filter(({ method }) => method === 'POST');
const recordOf = async (request_id: string | undefined): Promise<sdk.ChatRecord> => {
  const get = () => medley.chat.get(request_id ?? '').catch(() => undefined);
  return vi.waitUntil(get, { timeout: 120_000 });
};
const all = async <T>(items: AsyncIterable<T>): Promise<T[]> => {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
};
const weather = {
  type: 'function',
  function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};

describe('a whole answer', () => {
  test('has its text, usage, cost and id, by which it gets feedback', async () => {
    const answer = await medley.chat.create(ask('Hello [[tokens 20]]', { max_tokens: 100 }));
    expect(answer).toMatchObject({ finish_reason: 'stop', usage: { completion_tokens: 20 }, tool_calls: [] });
    expect(answer.body).toMatchObject({ object: 'chat.completion', model: 'sandbox/chat' });
    expect(answer.text).toBe(answer.body.choices[0]?.message.content);
    const { cost, request_id } = await recordOf(answer.request_id);
    expect(answer.cost).toEqual({ exact: cost.exact, currency: 'USD' });
    await medley.feedback.give(answer.request_id, true);
    expect(await medley.feedback.list({ reference_id: request_id }).take(2)).toMatchObject([{ score: 1 }]);
  });

  test('has calls of tools, and its message goes on with the conversation', async () => {
    const first = ask('How warm? [[tool weather {"city":"Oslo"}]]', { tools: [weather] });
    const { message, tool_calls, finish_reason } = await medley.chat.create(first);
    const [call] = tool_calls;
    expect([finish_reason, call?.function]).toEqual(['tool_calls', { name: 'weather', arguments: '{"city":"Oslo"}' }]);
    const result: sdk.ChatMessage = { role: 'tool', tool_call_id: call?.id ?? '', content: 'Ten degrees.' };
    const { text } = await medley.chat.create({ ...first, messages: [...first.messages, message, result] });
    expect(text).toContain('Ten degrees.');
  });

  test('is asked for again after an error of the service, not after a lost answer or the error of a proxy', async () => {
    const headers = { 'retry-after': '0', 'content-type': 'application/json' };
    proxy.decide = (_method, _path, nth) => (nth === 1 ? { status: 502, headers } : 'pass');
    expect((await medley.chat.create(ask('Hi'))).text).not.toBe('');
    expect(calls()).toHaveLength(2);
    for (const act of ['cut', { status: 504, headers, body: '<h1>Gateway Time-out</h1>' }] as const) {
      proxy.seen.length = 0;
      proxy.decide = () => act;
      const error = await medley.chat.create(ask('Hi')).catch(refusal);
      expect(error).toMatchObject(act === 'cut' ? { name: 'ConnectionError' } : { status: 504, type: 'unknown' });
      expect(calls()).toHaveLength(1);
    }
  });

  test('is no answer of something else, and errors have their class', async () => {
    await expect(medley.chat.create(ask('Hi', { model: 'no/model' }))).rejects.toBeInstanceOf(sdk.NotFoundError);
    await expect(medley.chat.create(ask('Hi', { messages: [] }))).rejects.toBeInstanceOf(sdk.InvalidRequestError);
    await expect(medley.chat.get('req_none')).rejects.toBeInstanceOf(sdk.NotFoundError);
    for (const body of ['<html>', '[]', '{"choices":[{}]}'])
      await expect(answeredWith(body).chat.create(ask('Hi'))).rejects.toThrow('no chat completion');
  });
});

describe('a streamed answer', () => {
  test('comes as text, and ends with the whole answer, its usage, cost and id', async () => {
    const stream = medley.chat.stream(ask('One two three [[tokens 30]]'));
    const texts = await all(stream.texts());
    expect(texts.length).toBeGreaterThan(1);
    const answer = await stream.final();
    expect([texts.join(''), stream.text]).toEqual([answer.text, answer.text]);
    expect(answer).toMatchObject({ finish_reason: 'stop', usage: { completion_tokens: 30 } });
    const { cost, status } = await recordOf(stream.request_id);
    expect([answer.request_id, answer.cost, status]).toEqual([
      stream.request_id,
      { exact: cost.exact, currency: 'USD' },
      200,
    ]);
    await medley.feedback.give(answer.request_id, false, { comment: 'Too long' });
  });

  test.each([
    ['a text', ask('Hello there')],
    ['thoughts', ask('Hello [[think]]')],
    [
      'several calls of tools',
      ask('[[tool weather {"city":"Oslo"}]] [[tool weather {"city":"Rome"}]]', { tools: [weather] }),
    ],
    ['JSON', ask('Hello', { response_format: { type: 'json_object' } })],
  ])('with %s is the same in the end as one that is not streamed', async (_name, request) => {
    const whole = await medley.chat.create(request);
    const streamed = await medley.chat.stream(request).final();
    const { tool_calls, finish_reason, usage, cost } = whole;
    const { reasoning_details: _, ...message } = whole.message; // the sandbox signs no thoughts in a stream
    expect(streamed).toMatchObject({ message, tool_calls, finish_reason, usage, cost });
  });

  test('comes in parts as the service sends them, and with the options of the caller', async () => {
    const parts = await all(medley.chat.stream(ask('Hi', { stream_options: { include_usage: false } })));
    expect(new Set(parts.map(({ object }) => object))).toEqual(new Set(['chat.completion.chunk']));
    expect(parts.some(({ usage }) => usage)).toBe(false);
  });

  test('that a loop leaves is left at the service, and costs what had come', async () => {
    const stream = medley.chat.stream(ask('[[tokens 16000]]', { max_tokens: 16_000 }));
    for await (const text of stream.texts()) if (text !== '') break;
    await expect(stream.final()).rejects.toThrow('left before its end');
    await expect(all(stream)).rejects.toThrow('left before its end');
    const { status, usage, cost } = await recordOf(stream.request_id);
    expect([status, usage.output_tokens > 0]).toEqual([499, true]);
    expect(await stream.cost()).toEqual(cost);
    const spent = async () => (await medley.key()).spent.exact;
    await expect.poll(spent, { timeout: 120_000 }).toBe(cost.exact);
  });

  test.each(['abort', 'signal'] as const)('ends with the reason of an abort by %s, at the service too', async (how) => {
    const controller = new AbortController();
    const long = ask('[[tokens 16000]]', { max_tokens: 16_000 });
    const stream = medley.chat.stream(long, { signal: controller.signal });
    const reason = new Error('enough');
    const leave = how === 'abort' ? () => stream.abort(reason) : () => controller.abort(reason);
    const read = async () => {
      for await (const text of stream.texts()) if (text !== '') leave();
    };
    expect(await read().catch(refusal)).toBe(reason);
    expect(await stream.final().catch(refusal)).toBe(reason);
    expect((await recordOf(stream.request_id)).status).toBe(499);
  });

  test('sends nothing before it is read, and nothing after an abort', async () => {
    const stream = medley.chat.stream(ask('Hi'));
    stream.abort();
    await expect(stream.final()).rejects.toMatchObject({ name: 'AbortError' });
    const aborted = medley.chat.stream(ask('Hi'), { signal: AbortSignal.abort(new Error('before')) });
    await expect(all(aborted)).rejects.toThrow('before');
    medley.chat.stream(ask('Hi'));
    expect([proxy.seen, await stream.cost()]).toEqual([[], undefined]);
  });

  test('is read to its end by final() within a loop, and by both at once', async () => {
    const within = medley.chat.stream(ask('One two three [[tokens 30]]'));
    const texts: string[] = [];
    let answer: sdk.ChatAnswer | undefined;
    for await (const text of within.texts()) {
      texts.push(text);
      answer ??= await within.final();
    }
    expect(texts.join('')).toBe(answer?.text);
    const both = medley.chat.stream(ask('One two three [[tokens 30]]'));
    const [whole, parts] = await Promise.all([both.final(), all(both.texts())]);
    expect(parts.join('')).toBe(whole.text);
  });

  test('that fails or is cut ends with the error, and what had come stays', async () => {
    const failed = medley.chat.stream(ask('Hello [[fail]]'));
    const error = await all(failed).catch(refusal);
    expect(error).toBeInstanceOf(sdk.UpstreamError);
    expect(error).toMatchObject({ status: 502, request_id: failed.request_id });
    expect(await failed.final().catch(refusal)).toBe(error);
    await expect(all(medley.chat.stream(ask('Hello [[cut]]')))).rejects.toBeInstanceOf(sdk.MedleyError);
    expect(calls()).toHaveLength(2);
  });

  test('is asked for again before it has begun', async () => {
    const headers = { 'retry-after': '0', 'content-type': 'application/json' };
    proxy.decide = (_method, _path, nth) => (nth === 1 ? { status: 503, headers } : 'pass');
    expect((await medley.chat.stream(ask('Hi')).final()).text).not.toBe('');
    expect(calls()).toHaveLength(2);
    proxy.decide = () => ({ status: 503, headers: { ...headers, 'x-should-retry': 'false' } });
    await expect(all(medley.chat.stream(ask('Hi')))).rejects.toMatchObject({ status: 503 });
    expect(calls()).toHaveLength(3);
  });

  test('reads the service a byte at a time', async () => {
    const slow = clientOf({
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        return new Response(response.body?.pipeThrough(new TransformStream({ transform: intoBytes })), response);
      },
    });
    const request = ask('Zażółć gęślą jaźń 🚲');
    expect((await slow.chat.stream(request).final()).message).toEqual((await medley.chat.create(request)).message);
  });
});

describe('a stream that is none, or no whole one,', () => {
  const hello = 'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n';
  let server: EventServer;
  let send: (write: (text: string) => void, end: () => void) => void;

  beforeAll(async () => {
    server = await startEventServer((response) =>
      send(
        (text) => response.write(text),
        () => response.end(),
      ),
    );
  });
  afterAll(() => server?.stop());
  beforeEach(() => {
    server.count = 0;
  });

  const streamOf = (body: string) => {
    send = (write, end) => {
      write(body);
      end();
    };
    return clientOf({ base_url: server.url }).chat.stream(ask('Hi'));
  };

  test.each([
    ['is cut before any content', '', 'ConnectionError', ''],
    [
      'is cut behind its finish reason',
      `${hello}data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n`,
      'ConnectionError',
      'Hello',
    ],
    ['is cut in an event', `${hello}data: {"choices"`, 'ConnectionError', 'Hello'],
    ['has an event that is no JSON', `${hello}data: <html>\n\n`, 'MedleyError', 'Hello'],
    ['has an event that is no object', `${hello}data: []\n\n`, 'MedleyError', 'Hello'],
    [
      'has an error of a type',
      `${hello}data: {"error":{"type":"rate_limit","message":"Slow down."}}\n\n`,
      'RateLimitError',
      'Hello',
    ],
    ['has an error beside a part', `data: {"choices":[],"error":{"message":"x"}}\n\n`, 'ApiError', ''],
    ['has an error that is a text', 'data: {"error":"x"}\n\ndata: [DONE]\n\n', 'ApiError', ''],
  ])('and %s throws, is not asked for again, and keeps its text', async (_name, body, name, text) => {
    const stream = streamOf(body);
    const error = await all(stream).catch(refusal);
    expect(error).toMatchObject({ name });
    expect(await stream.final().catch(refusal)).toBe(error);
    expect([stream.text, stream.request_id, server.count]).toEqual([text, 'req_1', 1]);
  });

  test('and has comments, other events and what comes behind its end, ends well', async () => {
    const stream = streamOf(
      `: keep-alive\r\n\r\nevent: x\r\n\r\n${hello}data: [DONE]\n\n${hello}data: {"error":"late"}\n\n`,
    );
    expect([await all(stream.texts()), stream.text]).toEqual([['Hello'], 'Hello']);
  });

  test('and does not close behind its end mark ends a second later', async () => {
    send = (write) => write(`${hello}data: [DONE]\n\n`);
    const left = new Promise<void>((resolve) => (server.onLeft = resolve));
    expect(await all(clientOf({ base_url: server.url }).chat.stream(ask('Hi')).texts())).toEqual(['Hello']);
    await left;
  });

  test('and is left by its loop loses its connection', async () => {
    send = (write) => write(hello);
    const left = new Promise<void>((resolve) => (server.onLeft = resolve));
    for await (const text of clientOf({ base_url: server.url }).chat.stream(ask('Hi')).texts()) if (text) break;
    await expect(left).resolves.toBeUndefined();
  });

  test('and does not begin within timeout_ms throws', async () => {
    const silent = await startReceiver();
    silent.answer('/v1/chat/completions', 'hang');
    const stream = clientOf({ base_url: silent.url, timeout_ms: 50 }).chat.stream(ask('Hi'));
    await expect(all(stream)).rejects.toBeInstanceOf(sdk.RequestTimeoutError);
    await silent.stop();
  });
});

function answeredWith(body: string): sdk.Medley {
  return clientOf({ fetch: async () => new Response(body) });
}

function intoBytes(chunk: Uint8Array, controller: TransformStreamDefaultController<Uint8Array>): void {
  for (const byte of chunk) controller.enqueue(Uint8Array.of(byte));
}
