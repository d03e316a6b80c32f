import { mock } from 'node:test';
import sharp from 'sharp';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../../src/catalog/model.ts';
import { SseSplitter } from '../../../src/net/sse.ts';
import { InputRefused, NotStarted, type ChatCall } from '../../../src/providers/provider.ts';
import { sandbox } from '../../../src/providers/sandbox/adapter.ts';
import { prober } from '../../helpers/prober.ts';
import { countTokens } from '../../../src/providers/sandbox/tokens.ts';
import { readCompletionsAnswers } from '../../../src/styles/completions/response.ts';
import type { ChatAnswer, ChatEvent } from '../../../src/styles/conversation.ts';
import { readMessagesAnswer } from '../../../src/styles/messages/response.ts';
import { callerNamed, type Style } from '../../styles/by-name.ts';

const provider = sandbox.openChat(undefined, { prober });
const never = new AbortController().signal;
const styles: Style[] = ['completions', 'messages'];

function callOf(style: Style, body: JsonObject, more: Partial<ChatCall> = {}): ChatCall {
  const timeout_ms = { connect: 1_000, first_byte: 1_000, idle: 1_000, start: 1_000, total: 1_000 };
  const call = {
    request_id: 'req_1',
    style: callerNamed(style),
    model: 'chat',
    headers: {},
    timeout_ms,
    options: {},
    ...more,
  };
  return { ...call, stream: more.stream ?? false, body: { model: 'chat', max_tokens: 1_000, ...body } };
}

const say = (text: string, more: JsonObject = {}): JsonObject => ({
  messages: [{ role: 'user', content: text }],
  ...more,
});

async function bytesOf(call: ChatCall, signal = never): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of (await provider.send(call, signal)).body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

const raw = async (style: Style, body: JsonObject): Promise<JsonObject> =>
  JSON.parse(await bytesOf(callOf(style, body)));

/** All answers to a request, in the neutral form. */
async function answers(style: Style, body: JsonObject): Promise<ChatAnswer[]> {
  const body_text = await raw(style, body);
  return style === 'completions' ? readCompletionsAnswers(body_text, 'req_1') : [readMessagesAnswer(body_text)];
}

async function answer(style: Style, body: JsonObject): Promise<ChatAnswer> {
  const [first] = await answers(style, body);
  if (!first) throw new Error('there is no answer');
  return first;
}

const streamBytes = (style: Style, body: JsonObject): Promise<string> => {
  const options = style === 'completions' ? { stream_options: { include_usage: true } } : {};
  return bytesOf(callOf(style, { ...options, ...body, stream: true }, { stream: true }));
};

/** Returns the events of a stream, read as that of any upstream. */
async function events(style: Style, body: JsonObject): Promise<ChatEvent[]> {
  const reader = callerNamed(style).upstream.openReader('req_1');
  const splitter = new SseSplitter(100_000);
  const events_read = splitter
    .push(Buffer.from(await streamBytes(style, body)))
    .flatMap((frame) => [...reader.read(frame)]);
  return [...events_read, ...reader.end()];
}

const textOf = ({ parts }: ChatAnswer) => parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
const callsOf = ({ parts }: ChatAnswer) => parts.flatMap((part) => (part.type === 'tool_call' ? [part] : []));
const streamedText = (all: readonly ChatEvent[]) =>
  all.map((event) => (event.type === 'text' ? event.text : '')).join('');

/** A tool in either style. */
function tools(style: Style, ...names: string[]): JsonObject {
  const schema = { type: 'object', properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 3 } } };
  const list = names.map((name) =>
    style === 'completions'
      ? { type: 'function', function: { name, parameters: schema } }
      : { name, input_schema: schema },
  );
  return { tools: list };
}

const insist = (style: Style, name?: string): JsonObject => {
  if (style === 'messages') return { tool_choice: name === undefined ? { type: 'any' } : { type: 'tool', name } };
  return { tool_choice: name === undefined ? 'required' : { type: 'function', function: { name } } };
};

/** Messages with the user's text, the calls that were answered to it and their results. */
function afterCalls(style: Style, question: string, called: ChatAnswer, results: string[], then = ''): JsonObject[] {
  const calls = callsOf(called);
  if (style === 'completions') {
    const tool_calls = calls.map(({ id, name, arguments: json }) => ({
      id,
      type: 'function',
      function: { name, arguments: json },
    }));
    return [
      { role: 'user', content: question },
      { role: 'assistant', content: null, tool_calls },
      ...calls.map(({ id }, index) => ({ role: 'tool', tool_call_id: id, content: results[index] ?? '' })),
      ...(then === '' ? [] : [{ role: 'user', content: then }]),
    ];
  }
  const uses = calls.map(({ id, name, arguments: json }) => ({ type: 'tool_use', id, name, input: JSON.parse(json) }));
  const results_sent = calls.map(({ id }, index) => ({
    type: 'tool_result',
    tool_use_id: id,
    content: results[index] ?? '',
  }));
  return [
    { role: 'user', content: question },
    { role: 'assistant', content: uses },
    { role: 'user', content: [...results_sent, ...(then === '' ? [] : [{ type: 'text', text: then }])] },
  ];
}

describe.each(styles)('a sandbox response in %s style', (style) => {
  it('repeats what was said, the same every time', async () => {
    const first = await answer(style, say('Two red bicycles'));
    expect(textOf(first)).toContain('“Two red bicycles”');
    expect(first.finish.reason).toBe('stop');
    expect(await answer(style, say('Two red bicycles'))).toEqual(first);
  });

  it('knows the system prompt and the length of the conversation', async () => {
    const system = style === 'completions' ? [{ role: 'system', content: 'Be brief.' }] : [];
    const messages = [
      ...system,
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ];
    const text = textOf(await answer(style, { messages, ...(style === 'messages' && { system: 'Be brief.' }) }));
    expect(text).toContain('“Be brief.”');
    expect(text).toContain('turn 2');
  });

  it('is counted by a public tokenizer', async () => {
    const { usage, parts } = await answer(style, say('Grüße 😀 an alle'));
    expect(usage?.output_tokens).toBe(await countTokens(textOf({ parts, finish: { reason: 'stop' } })));
    expect(usage?.input_tokens).toBe((await countTokens('Grüße 😀 an alle')) + 6);
    expect(usage?.cached_input_tokens).toBe(0);
  });

  it('has the same words and counts in pieces when it is streamed', async () => {
    const all = await events(style, say('Two red bicycles 😀'));
    const plain = await answer(style, say('Two red bicycles 😀'));
    expect(streamedText(all)).toBe(textOf(plain));
    expect(all.filter(({ type }) => type === 'text').length).toBeGreaterThan(10);
    expect(all.filter(({ type }) => type === 'error')).toEqual([]);
    expect(all.at(-1)).toEqual({ type: 'end' });
    const reported = all.flatMap((event) => (event.type === 'usage' ? [event.usage] : []));
    expect(Object.assign({}, ...reported)).toEqual(plain.usage); // later values replace earlier ones
  });

  it('ends at max_tokens', async () => {
    const short = await answer(style, say('x', { max_tokens: 5 }));
    expect([short.finish.reason, short.usage?.output_tokens]).toEqual(['length', 5]);
    expect(await countTokens(textOf(short))).toBe(5);
  });

  it('ends before a stop sequence', async () => {
    const stop = style === 'completions' ? { stop: 'zebra' } : { stop_sequences: ['zebra'] };
    const stopped = await answer(style, say('one zebra two', stop));
    expect(textOf(stopped)).toMatch(/one $/);
    const ending = style === 'messages' ? { reason: 'stop_sequence', stop_sequence: 'zebra' } : { reason: 'stop' };
    expect(stopped.finish).toEqual(ending);
  });

  it('counts large parts that were sent before as cached', async () => {
    const long = 'Many words are here. '.repeat(400);
    const mark = style === 'messages' ? { cache_control: { type: 'ephemeral' } } : {};
    const messages = [
      { role: 'user', content: long },
      { role: 'assistant', content: 'b' },
      { role: 'user', content: 'c' },
    ];
    const { usage } = await answer(style, { messages, ...mark });
    expect(usage?.cached_input_tokens).toBeGreaterThan(1_500);
    expect((usage?.cached_input_tokens ?? 1) % 128).toBe(0);
    const unmarked = (await answer(style, { messages })).usage?.cached_input_tokens;
    expect(unmarked === 0).toBe(style === 'messages');
  });

  it('describes images by their size', async () => {
    const image = await sharp({ create: { width: 30, height: 20, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    const data = image.toString('base64');
    const part =
      style === 'completions'
        ? { type: 'image_url', image_url: { url: `data:image/png;base64,${data}` } }
        : { type: 'image', source: { type: 'base64', media_type: 'image/png', data } };
    const seen = await answer(style, { messages: [{ role: 'user', content: [part, { type: 'text', text: 'x' }] }] });
    expect(textOf(seen)).toContain(`an image of 30 × 20 pixels (image/png, ${image.length} bytes)`);
    expect(seen.usage?.input_tokens).toBe(6 + 1 + 1); // 600 of 750 pixels, and a letter
  });

  it('is refused for an unreadable conversation', async () => {
    const refusal = provider.send(callOf(style, { messages: [{ role: 'user', content: 5 }] }), never);
    await expect(refusal).rejects.toMatchObject({ name: 'InputRefused', type: 'invalid_request' });
    await expect(refusal).rejects.toThrow('messages[0].content');
  });
});

describe.each(styles)('a sandbox tool in %s style', (style) => {
  it('is not called unless it is requested', async () => {
    expect(callsOf(await answer(style, say('x', tools(style, 'weather'))))).toEqual([]);
    const none = style === 'completions' ? 'none' : { type: 'none' };
    const call_text = say('[[tool weather]]', { ...tools(style, 'weather'), tool_choice: none });
    expect(callsOf(await answer(style, call_text))).toEqual([]);
  });

  it('is called when tool_choice insists, with arguments that fit', async () => {
    const any = await answer(style, say('x', { ...tools(style, 'first', 'second'), ...insist(style) }));
    expect(any.finish.reason).toBe('tool_calls');
    expect(callsOf(any)).toMatchObject([{ name: 'first', arguments: '{"city":"Sandbox city","days":3}' }]);
    const one = await answer(style, say('x', { ...tools(style, 'first', 'second'), ...insist(style, 'second') }));
    expect(callsOf(one)).toMatchObject([{ name: 'second' }]);
  });

  const two = 'Look [[tool weather {"city":"Łódź","at":[[1,2]]}]] and [[tool news]] please';

  it('is called as directives say, several at once', async () => {
    const called = await answer(style, say(two, tools(style, 'weather', 'news')));
    const [weather, news] = callsOf(called);
    expect(JSON.parse(weather?.arguments ?? '')).toEqual({ city: 'Łódź', at: [[1, 2]] });
    expect(news?.name).toBe('news');
    expect(weather?.id).not.toBe(news?.id);
    const all = await events(style, say(two, tools(style, 'weather', 'news')));
    expect(all.flatMap((event) => (event.type === 'tool_call' ? [event.name] : []))).toEqual(['weather', 'news']);
    const json = all.map((event) => (event.type === 'tool_arguments' && event.index === 0 ? event.json : '')).join('');
    expect(JSON.parse(json)).toEqual({ city: 'Łódź', at: [[1, 2]] });
  });

  it('has its result repeated once and is not called again', async () => {
    const offered = tools(style, 'weather', 'news');
    const called = await answer(style, say(two, offered));
    const after = await answer(style, { messages: afterCalls(style, two, called, ['Rain', 'None']), ...offered });
    expect(callsOf(after)).toEqual([]);
    expect(textOf(after)).toMatch(/“Rain”.*“None”/);
    const next = await answer(style, {
      messages: afterCalls(style, two, called, ['Rain', 'None'], 'Thanks'),
      ...offered,
    });
    expect(textOf(next)).toContain('“Thanks”');
  });

  it('is called one at a time when several at once are not permitted', async () => {
    const single =
      style === 'completions'
        ? { parallel_tool_calls: false }
        : { tool_choice: { type: 'auto', disable_parallel_tool_use: true } };
    const offered = { ...tools(style, 'weather', 'news'), ...single };
    const first = await answer(style, say(two, offered));
    expect(callsOf(first)).toMatchObject([{ name: 'weather' }]);
    const second = await answer(style, { messages: afterCalls(style, two, first, ['Rain']), ...offered });
    expect(callsOf(second)).toMatchObject([{ name: 'news' }]);
  });

  it('that does not exist is reported', async () => {
    const answered = await answer(style, say('[[tool nothing {}]]', tools(style, 'weather')));
    expect(textOf(answered)).toContain('no tool nothing');
  });
});

describe('JSON of the sandbox', () => {
  const format = (response_format: JsonObject) => ({ response_format });

  it('is one object in JSON mode', async () => {
    const text = textOf(await answer('completions', say('Hello', format({ type: 'json_object' }))));
    expect(JSON.parse(text)).toEqual({ answer: expect.stringContaining('“Hello”') });
  });

  it('fits a schema in both styles', async () => {
    const schema = {
      type: 'object',
      required: ['size'],
      properties: { size: { enum: ['S', 'M'] }, left: { type: 'integer' } },
    };
    const response_format = format({ type: 'json_schema', json_schema: { name: 'shirt', schema } });
    expect(JSON.parse(textOf(await answer('completions', say('x', response_format))))).toEqual({ size: 'S', left: 1 });
    const output_config = { format: { type: 'json_schema', schema } };
    expect(JSON.parse(textOf(await answer('messages', say('x', { output_config }))))).toEqual({ size: 'S', left: 1 });
  });
});

describe('thinking of the sandbox', () => {
  it.each(styles)('comes before the response and counts as output after [[think]] (%s)', async (style) => {
    const thought = await answer(style, say('Well [[think]]'));
    expect(thought.parts.map(({ type }) => type)).toEqual(['thinking', 'text']);
    expect(thought.usage?.reasoning_tokens).toBeGreaterThan(5);
    expect(thought.usage?.output_tokens).toBeGreaterThan(thought.usage?.reasoning_tokens ?? 0);
    const all = await events(style, say('Well [[think]]'));
    expect(all.findIndex(({ type }) => type === 'thinking')).toBeLessThan(all.findIndex(({ type }) => type === 'text'));
  });

  it('is signed in messages style and refused when it comes back changed', async () => {
    const { content } = await raw('messages', say('Well [[think]]'));
    const again = (assistant: Json = null) =>
      answer('messages', {
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: assistant },
          { role: 'user', content: 'b' },
        ],
      });
    expect(textOf(await again(content))).toContain('“b”');
    const forged = JSON.parse(JSON.stringify(content).replace('The user', 'A user'));
    await expect(again(forged)).rejects.toThrow('Invalid signature');
    expect((await events('messages', say('[[think]]'))).filter(({ type }) => type === 'signature')).toHaveLength(1);
  });

  it('comes without a directive when there is a budget', async () => {
    const budget = { thinking: { type: 'enabled', budget_tokens: 1_024 } };
    expect((await answer('messages', say('x', budget))).parts[0]?.type).toBe('thinking');
    expect((await answer('messages', say('x', { thinking: { type: 'adaptive' } }))).parts[0]?.type).toBe('text');
  });
});

describe('several sandbox responses', () => {
  it('differ, are counted together and come at the same time', async () => {
    const both = await answers('completions', say('x', { n: 2 }));
    expect(new Set(both.map(textOf)).size).toBe(2);
    const tokens = await Promise.all(both.map((one) => countTokens(textOf(one))));
    expect(both[0]?.usage?.output_tokens).toBe((tokens[0] ?? 0) + (tokens[1] ?? 0));
    const stream = await streamBytes('completions', say('x', { n: 2 }));
    const order = [...stream.matchAll(/"index":([01]),"delta":\{"content":"[^"]/g)].map(([, index]) => index);
    expect(order.slice(0, 4)).toEqual(['0', '1', '0', '1']);
  });

  it('are refused when they are very many', async () => {
    await expect(answers('completions', say('x', { n: 9 }))).rejects.toThrow('n must be at most 8');
  });
});

describe('the older function calls', () => {
  it('are answered in their own form, streamed or not', async () => {
    const body = say('x', { functions: [{ name: 'old', parameters: {} }], function_call: { name: 'old' } });
    const body_text = JSON.stringify(await raw('completions', body));
    expect(body_text).toContain('"function_call":{"name":"old","arguments":"{}"}');
    expect(body_text).toContain('"finish_reason":"function_call"');
    const stream = await streamBytes('completions', body);
    expect(stream).toContain('"delta":{"function_call":{"name":"old","arguments":""}}');
    expect(stream).toContain('"finish_reason":"function_call"');
  });
});

describe('directives of sandbox chat', () => {
  const failure = (text: string, stream = false, options: JsonObject = {}) =>
    provider.send(callOf('completions', say(text, { stream }), { stream, options }), never).then(
      () => new Error('it was answered'),
      (error: unknown) => error,
    );

  it.each([
    ['[[fail before start]]', { reason: 'refused' }],
    ['[[fail]]', { reason: 'unavailable' }],
    ['[[cut]]', { reason: 'unavailable' }],
    ['[[error 401]]', { reason: 'rejected_credentials' }],
    ['[[error 404]]', { reason: 'unavailable' }],
    ['[[error 429]]', { reason: 'rate_limited', retry_after_ms: 5_000 }],
    ['[[error 503]]', { reason: 'unavailable' }],
    ['[[error 504]]', { reason: 'timeout' }],
  ])('permit another route and affect no circuit: %s', async (text, expected) => {
    const error = await failure(text);
    expect(error).toBeInstanceOf(NotStarted);
    expect(error).toMatchObject({ ...expected, simulated: true });
  });

  it.each([
    ['[[moderate]]', 'content_policy_violation'],
    ['[[error 400]]', 'invalid_request'],
    ['[[error 422]]', 'invalid_request'],
  ])("are the caller's own mistake: %s", async (text, type) => {
    const error = await failure(text);
    expect(error).toBeInstanceOf(InputRefused);
    expect(error).toMatchObject({ type, simulated: true });
  });

  it.each(styles)('end a stream in the middle after [[cut]] and with an error after [[fail]] (%s)', async (style) => {
    const send = (text: string) => provider.send(callOf(style, say(text), { stream: true }), never);
    expect((await send('[[cut]]')).simulated).toBe(true);
    const cut = await events(style, say('Hello [[cut]]'));
    expect(streamedText(cut).length).toBeGreaterThan(10);
    expect(cut.some(({ type }) => type === 'end' || type === 'finish')).toBe(false);
    expect((await send('[[fail]]')).simulated).toBe(true);
    const failed = await events(style, say('Hello [[fail]]'));
    expect(streamedText(failed).length).toBeGreaterThan(10);
    expect(failed.find(({ type }) => type === 'error')).toMatchObject({
      message: expect.stringContaining('as requested'),
    });
    expect((await send('Hello')).simulated).toBeUndefined();
  });

  it.each(styles)('leave out usage after [[no usage]], streamed or not (%s)', async (style) => {
    expect((await answer(style, say('[[no usage]] x'))).usage).toBeUndefined();
    expect((await events(style, say('[[no usage]] x'))).filter(({ type }) => type === 'usage')).toEqual([]);
  });

  it.each(styles)('set the exact length after [[tokens 500]], within max_tokens (%s)', async (style) => {
    const long = await answer(style, say('[[tokens 500]]'));
    expect([long.usage?.output_tokens, await countTokens(textOf(long))]).toEqual([500, 500]);
    const cut = await answer(style, say('[[tokens 5000]]', { max_tokens: 40 }));
    expect([cut.usage?.output_tokens, cut.finish.reason]).toEqual([40, 'length']);
  });

  describe('about time', () => {
    beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
    afterEach(() => mock.timers.reset());

    it('delay the response by 3 s and no less: [[delay 3s]]', async () => {
      let is_answered = false;
      const waiting = answer('completions', say('[[delay 3s]] x')).then((one) => ((is_answered = true), one));
      mock.timers.tick(2_999);
      await new Promise((resolve) => setImmediate(resolve));
      expect(is_answered).toBe(false);
      mock.timers.tick(1);
      expect(textOf(await waiting)).toContain('“x”');
    });

    it('end the call by its time limit of 20 s: [[hang]]', async () => {
      const waiting = failure('[[hang]]', true);
      mock.timers.tick(19_999);
      const soon = new Promise((resolve) => setImmediate(() => resolve('waits')));
      expect(await Promise.race([waiting, soon])).toBe('waits');
      mock.timers.tick(1);
      expect(await waiting).toMatchObject({ name: 'NotStarted', reason: 'timeout', simulated: true });
    });
  });

  it('wait no longer than the caller does', async () => {
    const stop = new AbortController();
    const waiting = provider.send(callOf('completions', say('[[hang]]')), stop.signal);
    stop.abort();
    await expect(waiting).rejects.toMatchObject({ name: 'AbortError' });
  });

  it('count in the last user message only', async () => {
    const messages = [
      { role: 'user', content: '[[fail]]' },
      { role: 'assistant', content: '[[moderate]]' },
      { role: 'user', content: 'x' },
    ];
    expect(textOf(await answer('completions', { messages }))).toContain('“x”');
  });

  it('count as text when they are malformed', async () => {
    const text = '[[delay 6m]] [[error 200]] [[tool x {"a":]] [[explode]]';
    expect(textOf(await answer('completions', say(text)))).toContain(text);
  });

  it('can be in the options of a route, too', async () => {
    const options = { behaviour: { fail: 'before_start' } };
    expect(await failure('x', false, options)).toMatchObject({ reason: 'refused', simulated: true });
  });
});

describe('a sandbox stream', () => {
  it('stops when its caller disconnects', async () => {
    const stop = new AbortController();
    const { body } = await provider.send(callOf('messages', say('[[tokens 900]]'), { stream: true }), stop.signal);
    let chunks = 0;
    const read = async () => {
      for await (const _ of body) if (++chunks === 3) stop.abort();
    };
    await expect(read()).rejects.toMatchObject({ name: 'AbortError' });
    expect(chunks).toBe(3);
  });
});

describe('counting tokens in the sandbox', () => {
  it('returns the tokens that a call has', async () => {
    const body = say('How many?', { system: 'Count.', ...tools('messages', 'weather') });
    const { usage } = await answer('messages', body);
    expect(await provider.countTokens?.(callOf('messages', body), never)).toBe(usage?.input_tokens);
  });
});
