import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/catalog/model.ts';
import { argumentsOf, inputOf, safeId, safeName, shortId } from '../../src/styles/calls.ts';
import { readCompletions } from '../../src/styles/completions/request.ts';
import type { Conversation } from '../../src/styles/conversation.ts';
import { readGenerateContent } from '../../src/styles/gemini/caller-request.ts';
import { readMessages } from '../../src/styles/messages/request.ts';
import { plainest_answer } from './carried/answers.ts';
import { readAsk, renderAnswer, upstreamBody, type CallerStyle } from './by-name.ts';

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }).map((each) => `${each}.`);
const base64 = fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString('base64'));
const input = fc
  .dictionary(fc.string({ unit: 'grapheme', minLength: 1 }), fc.jsonValue(), { maxKeys: 3 })
  .map((value) => JSON.parse(JSON.stringify(value)) as JsonObject);

/** One exchange: what the user says, what the assistant answers, which tools it calls and what they found. */
const exchange = fc.record({
  question: text,
  image: fc.option(base64),
  answer: text,
  calls: fc.array(fc.record({ input, result: text }), { maxLength: 3 }),
});
const exchanges = fc.array(exchange, { minLength: 1, maxLength: 4 });
type Exchange = typeof exchange extends fc.Arbitrary<infer E> ? E : never;

const rest = { temperature: 0.5, stop: ['END'], user: 'somebody', parallel_tool_calls: false };

function completionsBody(list: readonly Exchange[], system: string): JsonObject {
  const messages = list.flatMap(({ question, image, answer, calls }, turn): JsonObject[] => [
    {
      role: 'user',
      content: [
        { type: 'text', text: question },
        ...(image === null ? [] : [{ type: 'image_url', image_url: { url: `data:image/png;base64,${image}` } }]),
      ],
    },
    {
      role: 'assistant',
      content: answer,
      ...(calls.length > 0 && {
        tool_calls: calls.map((call, index) => ({
          id: `call_${turn}_${index}`,
          type: 'function',
          function: { name: 'f', arguments: JSON.stringify(call.input) },
        })),
      }),
    },
    ...calls.map(({ result }, index) => ({ role: 'tool', tool_call_id: `call_${turn}_${index}`, content: result })),
  ]);
  const tools = [{ type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } }];
  return { model: 'm', max_tokens: 100, messages: [{ role: 'system', content: system }, ...messages], tools, ...rest };
}

function messagesBody(list: readonly Exchange[], system: string): JsonObject {
  const messages = list.flatMap(({ question, image, answer, calls }, turn): JsonObject[] => [
    {
      role: 'user',
      content: [
        { type: 'text', text: question },
        ...(image === null
          ? []
          : [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: image } }]),
      ],
    },
    {
      role: 'assistant',
      content: [
        { type: 'text', text: answer },
        ...calls.map((call, index) => ({
          type: 'tool_use',
          id: `call_${turn}_${index}`,
          name: 'f',
          input: call.input,
        })),
      ],
    },
    ...results(calls, turn),
  ]);
  return {
    model: 'm',
    max_tokens: 100,
    system,
    messages,
    tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' } }],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    temperature: rest.temperature,
    stop_sequences: rest.stop,
    metadata: { user_id: rest.user },
  };
}

function results(calls: Exchange['calls'], turn: number): JsonObject[] {
  if (calls.length === 0) return [];
  const content = calls.map(({ result }, index) => ({
    type: 'tool_result',
    tool_use_id: `call_${turn}_${index}`,
    content: result,
  }));
  return [{ role: 'user', content }];
}

/** Without where in the body things stood, which is not the same in both. */
function meant(conversation: Conversation): unknown {
  const { tool_choice: _, ...others } = conversation;
  return JSON.parse(JSON.stringify(others, (key, value: unknown) => (key === 'at' ? undefined : value)));
}

function sent(from: CallerStyle, to: CallerStyle, body: JsonObject): JsonObject {
  return upstreamBody(readAsk(from, body), { style: to, model: 'm', max_tokens: 4000, quirks: {} }).body;
}

describe('a conversation keeps its meaning', () => {
  it('from chat completions to messages and back', () => {
    fc.assert(
      fc.property(exchanges, text, (list, system) => {
        const body = completionsBody(list, system);
        const there = sent('completions', 'messages', body);
        expect(meant(readMessages(there))).toEqual(meant(readCompletions(body)));
        const back = sent('messages', 'completions', there);
        expect(meant(readCompletions(back))).toEqual(meant(readCompletions(body)));
      }),
    );
  });

  it('from messages to chat completions and back', () => {
    fc.assert(
      fc.property(exchanges, text, (list, system) => {
        const body = messagesBody(list, system);
        const there = sent('messages', 'completions', body);
        expect(meant(readCompletions(there))).toEqual(meant(readMessages(body)));
        const back = sent('completions', 'messages', there);
        expect(meant(readMessages(back))).toEqual(meant(readMessages(body)));
      }),
    );
  });

  it('from messages to Gemini’s style and back', () => {
    fc.assert(
      fc.property(exchanges, text, (list, system) => {
        const { tool_choice: _, ...body } = messagesBody(list, system);
        const there = sent('messages', 'gemini', body);
        const turns = (conversation: Conversation) =>
          meant({ turns: conversation.turns, tools: [], stop: conversation.stop });
        expect(turns(readGenerateContent(there))).toEqual(turns(readMessages(body)));
        const back = sent('gemini', 'messages', { model: 'm', ...there });
        expect(turns(readMessages(back))).toEqual(turns(readMessages(body)));
      }),
    );
  });

  it('T35: with parallel results, which are one user turn in the order of the calls', () => {
    fc.assert(
      fc.property(exchanges, text, (list, system) => {
        const { messages } = sent('completions', 'messages', completionsBody(list, system));
        const roles = Array.isArray(messages) ? messages.map((each) => JSON.stringify(each).slice(9, 13)) : [];
        expect(roles.filter((role, index) => role === roles[index - 1])).toEqual([]);
      }),
    );
  });
});

describe('T37: signed thinking returns unchanged through a caller of chat completions', () => {
  const thinking = [
    { type: 'thinking', thinking: 'Hm.', signature: 'EqQB+/=' },
    { type: 'redacted_thinking', data: 'x' },
    { type: 'thinking', thinking: '', signature: 'omitted' },
  ];
  const call = { type: 'tool_use', id: 'toolu_1', name: 'f', input: { x: 1 } };
  const question = { role: 'user', content: 'Hi' };

  it('byte for byte in a loop of tools', () => {
    const ask = readAsk('completions', { model: 'm', messages: [question] });
    const upstream_answer = { ...plainest_answer.messages, content: [...thinking, call], stop_reason: 'tool_use' };
    const options = { model: 'm', request_id: 'req_1', created: 1, input_tokens_estimated: 3 };
    const { bytes } = renderAnswer(ask, 'messages', Buffer.from(JSON.stringify(upstream_answer)), options);
    const [choice] = (JSON.parse(bytes.toString()) as { choices: { message: JsonObject }[] }).choices;
    const result = { role: 'tool', tool_call_id: 'toolu_1', content: '7' };
    const next = { model: 'm', messages: [question, choice?.message ?? {}, result], reasoning_effort: 'high' };
    for (const kind of ['adaptive', 'budget'] as const) {
      const target = { style: 'messages' as const, model: 'm', max_tokens: 9000, quirks: { thinking: kind } };
      const { body } = upstreamBody(readAsk('completions', next), target);
      expect(body).toMatchObject({ messages: [{}, { role: 'assistant', content: [...thinking, call] }, {}] });
      expect(body).toHaveProperty('thinking');
    }
  });

  it('unless the caller drops it, and then the loop continues without thinking where models insist', () => {
    const history = { role: 'assistant', tool_calls: [{ id: 'a', function: { name: 'f', arguments: '{}' } }] };
    const messages = [question, history, { role: 'tool', tool_call_id: 'a', content: '7' }];
    const target = {
      style: 'messages' as const,
      model: 'm',
      max_tokens: 9000,
      quirks: { thinking: 'budget' as const },
    };
    const { body } = upstreamBody(readAsk('completions', { model: 'm', messages, reasoning_effort: 'high' }), target);
    expect(body).not.toHaveProperty('thinking');
  });
});

it('T38: thinking of a model of the other style never reaches an upstream of messages style', () => {
  const assistant = {
    role: 'assistant',
    content: 'A',
    reasoning_content: 'Hm.',
    reasoning_details: [{ type: 'reasoning.text', text: 'Hm.' }],
  };
  const messages = [{ role: 'user', content: 'Hi' }, assistant, { role: 'user', content: 'Hi' }];
  expect(JSON.stringify(sent('completions', 'messages', { model: 'm', messages }))).not.toContain('Hm.');
});

describe('a translated id, name or argument', () => {
  const anyText = fc.string({ unit: 'binary', maxLength: 90 });

  it('fits the target, stays the same when translated again, and differs from others', () => {
    fc.assert(
      fc.property(anyText, anyText, (one, two) => {
        for (const [make, form] of [
          [(id: string) => safeId(id || 'x'), /^[a-zA-Z0-9_-]+$/],
          [(id: string) => shortId(id), /^.{0,40}$/su],
          [(name: string) => safeName(name || 'x'), /^[a-zA-Z0-9_-]{1,64}$/],
        ] as const) {
          expect(make(one)).toMatch(form);
          expect(make(make(one))).toBe(make(one));
          expect(make(one) === make(two)).toBe((one || 'x') === (two || 'x'));
        }
      }),
    );
  });

  it('T31: becomes an object as an argument, and comes back unchanged', () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.json()), (raw_input) => {
        const tool_input = inputOf(raw_input);
        expect(typeof tool_input === 'object' && !Array.isArray(tool_input)).toBe(true);
        const back = argumentsOf(tool_input);
        expect(inputOf(back)).toEqual(tool_input);
      }),
    );
    const deep = `{"a":${'['.repeat(64)}${']'.repeat(64)}}`;
    expect(inputOf(deep)).toEqual({ _raw: deep });
    expect(inputOf('{"a":"[[{\\"["}')).toEqual({ a: '[[{"[' });
    expect([inputOf(''), inputOf(' '), inputOf('{}')]).toEqual([{}, {}, {}]);
    expect([argumentsOf(undefined), argumentsOf(null), argumentsOf({})]).toEqual(['{}', '{}', '{}']);
  });
});
