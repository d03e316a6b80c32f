import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../src/catalog/model.ts';
import { renderAnswer } from '../../../src/styles/answer.ts';
import type { CallerCodec } from '../../../src/styles/codec.ts';
import { completions } from '../../../src/styles/completions/codec.ts';
import { converse } from '../../../src/styles/converse/codec.ts';
import { gemini } from '../../../src/styles/gemini/codec.ts';
import { messages } from '../../../src/styles/messages/codec.ts';
import { openRelay } from '../../../src/styles/relay.ts';
import { readChatRequest } from '../../../src/styles/request.ts';
import { responses } from '../../../src/styles/responses/codec.ts';
import { eventsOf, examples, streamOf } from './corpus.ts';

const options = { model: 'public', request_id: 'req_1', created: 5, input_tokens_estimated: 11 };
const bodies: [CallerCodec, JsonObject][] = [
  [completions, { model: 'm', messages: [{ role: 'user', content: 'Hi' }] }],
  [messages, { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }],
  [responses, { model: 'm', input: 'Hi' }],
  [gemini, { model: 'm', contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }],
];
const usage = {
  input_tokens: 30,
  output_tokens: 20,
  cached_input_tokens: 8,
  cache_write_tokens: 4,
  cache_write_1h_tokens: 3,
};

const good = examples.filter(({ finish }) => finish);
const bad = examples.filter(({ finish }) => !finish);
const titled = <Each extends { name: string }>(list: readonly Each[]) => list.map((each) => [each.name, each] as const);

function wholeFor(style: CallerCodec, body: JsonObject, answer: JsonObject) {
  const rendered = renderAnswer(readChatRequest(style, body), converse, Buffer.from(JSON.stringify(answer)), options);
  return { ...rendered, json: JSON.parse(rendered.bytes.toString()) };
}

function relayFor(style: CallerCodec, body: JsonObject, bytes: Buffer, step = bytes.length) {
  const request = readChatRequest(style, { ...body, stream: true });
  const relay = openRelay(request, converse, { ...options, line_bytes_max: 1_000_000 });
  let text = '';
  for (let at = 0; at < bytes.length; at += step) text += relay.push(bytes.subarray(at, at + step))?.toString() ?? '';
  text += relay.end()?.toString() ?? '';
  return { relay, text };
}

describe.each(bodies.map(([style, body]) => [style.name, style, body] as const))(
  'an answer of Converse to a caller of %s style',
  (_, style, body) => {
    it.each(titled(good))('has %s, whole and streamed alike', (__, { answer, content, finish }) => {
      const whole = wholeFor(style, body, answer);
      expect(whole.usage).toEqual(usage);
      const reread = style.upstream.parseResponse(whole.json, 'req_1')[0];
      const partsOf = (type: string) => reread?.parts.filter((part) => part.type === type) ?? [];
      expect(
        partsOf('text')
          .map((part) => 'text' in part && part.text)
          .join(''),
      ).toBe(content.text);
      expect(
        partsOf('tool_call').map((part) => 'arguments' in part && [part.name, JSON.parse(part.arguments)]),
      ).toEqual(content.calls.map(({ name, input }) => [name, input]));
      const bytes = streamOf(eventsOf(answer));
      for (const step of [bytes.length, 7, 1]) {
        const { relay } = relayFor(style, body, bytes, step);
        expect(relay.failure).toBeUndefined();
        expect({ complete: relay.is_complete, usage: relay.usage }).toEqual({ complete: true, usage });
        expect(relay.delivered).toEqual(whole.delivered);
        expect(relay.finish).toBe(whole.finish);
      }
      const expected = { completions: finish?.[0], messages: finish?.[1] }[style.name] ?? whole.finish;
      expect(whole.finish).toBe(expected);
    });

    it.each(titled(bad))('that is %s is a failure of the model, whole and streamed', (__, { answer }) => {
      expect(() => wholeFor(style, body, answer)).toThrow('The model could not finish its answer (malformed_');
      const { relay } = relayFor(style, body, streamOf(eventsOf(answer)));
      expect(relay.failure).toMatchObject({ type: 'unfinished' });
    });
  },
);

describe('an answer of Converse', () => {
  it('has its thinking with the signature, and what is encrypted, for callers that can send it back', () => {
    const { answer } = examples.find(({ content }) => content.thinking !== '') ?? { answer: {} };
    const [, [style, body] = [messages, {}]] = bodies;
    expect(wholeFor(style, body, answer).json.content).toEqual([
      { type: 'thinking', thinking: 'Let me see.', signature: 'c2lnbmF0dXJl' },
      { type: 'redacted_thinking', data: 'ZW5jcnlwdGVk' },
      { type: 'text', text: 'Good day. ☀' },
    ]);
    const { text } = relayFor(style, body, streamOf(eventsOf(answer)));
    expect(text).toContain('"delta":{"type":"signature_delta","signature":"c2lnbmF0dXJl"}');
    expect(text).toContain('"content_block":{"type":"redacted_thinking","data":"ZW5jcnlwdGVk"}');
  });

  it('has the text of what it cites', () => {
    const content = [
      { citationsContent: { content: [{ text: 'As ' }, { text: 'written.' }], citations: [{ title: 'x' }] } },
    ];
    const answer = { output: { message: { role: 'assistant', content } }, stopReason: 'end_turn' };
    const [[style, body] = [completions, {}]] = bodies;
    expect(wholeFor(style, body, answer).json.choices[0].message.content).toBe('As written.');
  });

  it.each([{}, { output: {} }, { output: { message: { content: 'x' } } }, { message: 'Slow down.' }])(
    'is none if it is %j',
    (answer) => {
      const [[style, body] = [completions, {}]] = bodies;
      expect(() => wholeFor(style, body, answer)).toThrow('The answer has no message.');
    },
  );
});

describe('a stream of Converse', () => {
  const events = eventsOf(examples[0]?.answer ?? {});
  const [[style, body] = [completions, {}]] = bodies;

  it('is complete without its usage, if that is lost after the reason for the end', () => {
    const { relay } = relayFor(style, body, streamOf(events.slice(0, -1)));
    expect({ complete: relay.is_complete, failure: relay.failure, usage: relay.usage }).toEqual({
      complete: true,
      failure: undefined,
      usage: undefined,
    });
  });

  it.each([1, 2, 3, 4])('that is cut after %i events is broken', (count) => {
    expect(relayFor(style, body, streamOf(events.slice(0, count))).relay.failure).toMatchObject({ type: 'cut' });
  });

  it('whose encrypted thinking does not end is broken, before it fills the memory', () => {
    const delta = { reasoningContent: { redactedContent: 'A'.repeat(400_000) } };
    const endless = Array.from({ length: 4 }, (): [string, JsonObject] => [
      'contentBlockDelta',
      { contentBlockIndex: 0, delta },
    ]);
    const { relay } = relayFor(style, body, streamOf([...events.slice(0, 1), ...endless]));
    expect(relay.failure).toMatchObject({ type: 'malformed' });
  });

  it('that has an exception ends with it', () => {
    const error: [string, JsonObject] = ['error', { error: { type: 'throttlingException', message: 'Slow down.' } }];
    const { relay } = relayFor(style, body, streamOf([...events.slice(0, 2), error]));
    expect(relay.failure).toMatchObject({ type: 'throttlingException', message: 'Slow down.' });
  });

  it.each([
    ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: 7 } }],
    ['contentBlockDelta', { delta: null }],
    ['contentBlockDelta', { contentBlockIndex: 9, delta: { toolUse: { input: '{' } } }],
    ['contentBlockStart', { contentBlockIndex: 0, start: { toolUse: { name: 5 } } }],
    ['metadata', { usage: { inputTokens: -1, outputTokens: 1e300, cacheDetails: 'x' } }],
    ['surprise', { anything: [1] }],
  ])('goes on after an event that says nothing: %s %j', (name, data) => {
    const { relay } = relayFor(
      style,
      body,
      streamOf([...events.slice(0, 2), [name, data as JsonObject], ...events.slice(2)]),
    );
    expect({ complete: relay.is_complete, failure: relay.failure }).toEqual({ complete: true, failure: undefined });
    expect(relay.usage).toEqual(usage);
  });
});
