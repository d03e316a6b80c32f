import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { openRelay, readAsk, renderAnswer, upstreamBody, type CallerStyle } from './by-name.ts';

/** Answers in the forms of Mistral, Together and LocalAI; see src/styles/completions/plain-choice.ts. */

const parts = [
  {
    type: 'thinking',
    thinking: [
      { type: 'text', text: 'Two and ' },
      { type: 'text', text: 'two.' },
    ],
  },
  { type: 'text', text: 'Four' },
  { type: 'text', text: '.' },
];
const usage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const options = {
  model: 'acme/x',
  request_id: 'req_1',
  created: 1,
  input_tokens_estimated: 3,
  line_bytes_max: 1_000_000,
};

const ask = (style: CallerStyle) =>
  readAsk(style, { model: 'acme/x', max_tokens: 100, messages: [{ role: 'user', content: 'Hi' }] });

function whole(style: CallerStyle, message: JsonObject, finish_reason: string): unknown {
  const answer = {
    id: 'c',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason }],
    usage,
  };
  return JSON.parse(
    String(renderAnswer(ask(style), 'completions', Buffer.from(JSON.stringify(answer)), options).bytes),
  );
}

function streamed(style: CallerStyle, choices: JsonObject[]): JsonObject[] {
  const relay = openRelay({ ...options, caller: style, upstream: 'completions', wants_usage: false });
  const chunks = choices.map((choice) => ({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, ...choice }],
  }));
  const text = `${chunks.map((each) => `data: ${JSON.stringify(each)}\n\n`).join('')}data: [DONE]\n\n`;
  const sent = [relay.push(Buffer.from(text)), relay.end()].map((bytes) => bytes?.toString() ?? '').join('');
  expect(relay.failure).toBeUndefined();
  return [...sent.matchAll(/^data: (\{.*)$/gm)].map((match) => JSON.parse(match[1] ?? '') as JsonObject);
}

describe('an answer in parts', () => {
  it('is a text and a thought for callers of the same style', () => {
    expect(whole('completions', { role: 'assistant', content: parts }, 'stop')).toMatchObject({
      choices: [{ message: { content: 'Four.', reasoning_content: 'Two and two.' }, finish_reason: 'stop' }],
    });
  });

  it('is a block of thinking and one of text for callers of messages style', () => {
    expect(whole('messages', { role: 'assistant', content: parts }, 'stop')).toMatchObject({
      content: [
        { type: 'thinking', thinking: 'Two and two.' },
        { type: 'text', text: 'Four.' },
      ],
    });
  });

  it.each(['completions', 'messages'] as const)('is pieces of both in a stream for callers of %s', (style) => {
    const frames = streamed(style, [
      { delta: { role: 'assistant', content: '' }, finish_reason: null },
      ...parts.map((part) => ({ delta: { content: [part] }, finish_reason: null })),
      { delta: { content: '' }, finish_reason: 'stop' },
    ]);
    const text = JSON.stringify(frames);
    expect(text).not.toContain('"content":[{');
    expect(text).toMatch(/"(?:reasoning_content|thinking)":"Two and two\."/);
    expect(text).toMatch(/"(?:content|text)":"Four"/);
  });
});

describe('a finish reason that the style lacks', () => {
  it.each([
    ['eos', { content: 'Hi' }, 'stop'],
    [
      'eos',
      { content: null, tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      'tool_calls',
    ],
    ['model_length', { content: 'Hi' }, 'length'],
    ['insufficient_system_resource', { content: 'Hi' }, 'length'],
    ['sensitive', { content: 'Hi' }, 'content_filter'],
    ['content_filter', { content: 'Hi' }, 'content_filter'],
  ])('%s of %j is %s', (reason, message, expected) => {
    expect(whole('completions', { role: 'assistant', ...message }, reason)).toMatchObject({
      choices: [{ finish_reason: expected }],
    });
  });

  it('is one of the style in a stream too', () => {
    const frames = streamed('completions', [{ delta: { content: 'Hi' } }, { delta: {}, finish_reason: 'eos' }]);
    expect(frames.at(-1)).toMatchObject({ choices: [{ finish_reason: 'stop' }] });
  });

  it.each(['completions', 'messages'] as const)('that is empty ends no stream for callers of %s', (style) => {
    const frames = streamed(style, [
      { delta: { content: 'A' }, finish_reason: '' },
      { delta: { content: 'B' }, finish_reason: '' },
      { delta: {}, finish_reason: 'stop' },
    ]);
    expect(JSON.stringify(frames)).toMatch(/"A".*"B".*"(?:stop|end_turn)"/);
    expect(JSON.stringify(frames)).not.toContain('"finish_reason":""');
  });

  it('that stays empty to the end is a stream that was cut off', () => {
    const relay = openRelay({ ...options, caller: 'completions', upstream: 'completions', wants_usage: false });
    const choices = [{ index: 0, delta: { content: 'A' }, finish_reason: '' }];
    relay.push(Buffer.from(`data: ${JSON.stringify({ choices })}\n\n`));
    expect([relay.end(), relay.failure]).toEqual([
      undefined,
      expect.objectContaining({ message: 'The stream was cut off.' }),
    ]);
  });
});

describe('ids of tool calls in nine letters', () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
  const target = { style: 'completions', model: 'm', max_tokens: 100, quirks: { tool_ids: 'nine_letters' } } as const;

  it('are the same in a call and its result, and stay where they are so', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: null, tool_calls: [call('call_long-enough'), call('AbCdEf123')] },
      { role: 'tool', tool_call_id: 'call_long-enough', content: 'A' },
      { role: 'tool', tool_call_id: 'AbCdEf123', content: 'B' },
    ];
    const { body } = upstreamBody(readAsk('completions', { model: 'm', messages }), target);
    const id = expect.stringMatching(/^[a-z0-9]{9}$/);
    expect(body['messages']).toEqual([
      messages[0],
      { ...messages[1], tool_calls: [{ ...call(''), id }, call('AbCdEf123')] },
      { ...messages[2], tool_call_id: id },
      messages[3],
    ]);
    const [, calling, answered] = body['messages'] as { tool_calls: { id: string }[]; tool_call_id: string }[];
    expect(answered?.tool_call_id).toBe(calling?.tool_calls[0]?.id);
  });

  it('are so in a request of messages style', () => {
    const messages = [
      { role: 'user', content: 'Hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_01A', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_01A', content: 'A' }] },
    ];
    const { body } = upstreamBody(readAsk('messages', { model: 'm', max_tokens: 10, messages }), target);
    const ids = JSON.stringify(body['messages']).match(/"(?:id|tool_call_id)":"[a-z0-9]{9}"/g);
    expect(ids?.map((each) => each.split(':')[1])).toEqual([ids?.[0]?.split(':')[1], ids?.[0]?.split(':')[1]]);
    expect(ids).toHaveLength(2);
  });
});
