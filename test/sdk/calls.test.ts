import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { completion, generated, message } from '../chat/setup.ts';
import { expectExactBooks } from '../helpers/app.ts';
import { onWire } from '../styles/wire.ts';
import { caller_names, cells, setSdkStage, type SdkStage } from './stage.ts';
import { question } from './task.ts';

let sdk: SdkStage;

beforeAll(async () => {
  sdk = await setSdkStage();
});
afterAll(async () => {
  await expectExactBooks(sdk.stage.test.app);
  await sdk.stop();
});

const framing = { end: '\n', space: ' ', comments: false, spread: false };
const calls = [
  { id: 'call_0', name: 'look', input: { city: 'Łódź 😀' } },
  { id: 'call_1', name: 'wait', input: {} },
];

/** The same answer of either upstream. */
const text = {
  completions: completion('Grüße 😀'),
  messages: message('Grüße 😀'),
  gemini: generated([{ text: 'Grüße 😀' }]),
};
const thought_signature = 'c2VhbA+/==';
const tools = {
  completions: {
    ...completion(''),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          refusal: null,
          tool_calls: calls.map(({ id, name, input }) => ({
            id,
            type: 'function',
            function: { name, arguments: JSON.stringify(input) },
          })),
        },
        logprobs: null,
        finish_reason: 'tool_calls',
      },
    ],
  },
  messages: { ...message(''), content: calls.map((call) => ({ type: 'tool_use', ...call })), stop_reason: 'tool_use' },
  gemini: generated(
    calls.map(({ id, name, input }, index) => ({
      functionCall: { id, name, args: input },
      ...(index === 0 && { thoughtSignature: thought_signature }),
    })),
  ),
};
const thinking = {
  completions: {
    ...completion('So.'),
    choices: [
      { index: 0, message: { role: 'assistant', content: 'So.', reasoning_content: 'Hm.' }, finish_reason: 'stop' },
    ],
  },
  messages: {
    ...message(''),
    content: [
      { type: 'thinking', thinking: 'Hm.', signature: 'c2ln' },
      { type: 'text', text: 'So.' },
    ],
  },
  gemini: generated([{ text: 'Hm.', thought: true }, { text: 'So.' }]),
};
const tools_streamed = [
  { say: 'call', index: 0, name: 'look' },
  { say: 'arguments', index: 0, text: '{"city":"Łódź' },
  { say: 'arguments', index: 0, text: ' 😀"}' },
  { say: 'call', index: 1, name: 'wait' },
] as const;
const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

type Upstream = 'completions' | 'messages' | 'gemini';

/** Returns the results of tools in the upstream's request, by the ids of their calls, whatever the style. */
function resultRequests(upstream: Upstream): unknown {
  if (upstream === 'gemini') {
    const results = geminiTurns()
      .at(-1)
      ?.parts.map(({ functionResponse }) => functionResponse);
    return results?.map((result) => [result?.id, result?.response.output]);
  }
  const messages = sdk.upstream.requests.at(-1)?.body['messages'] as SentMessage[];
  const of_tools = messages.filter(({ role }) => role === 'tool');
  if (upstream === 'completions') return of_tools.map((each) => [each.tool_call_id, plain(each.content)]);
  const last = messages.at(-1)?.content;
  if (!Array.isArray(last)) throw new Error('no blocks');
  return last.map(({ tool_use_id, content }) => [tool_use_id, plain(content ?? '')]);
}

/** Returns the contents of the last request to Gemini. */
function geminiTurns(): GeminiTurn[] {
  return sdk.upstream.requests.at(-1)?.body['contents'] as GeminiTurn[];
}

type GeminiTurn = {
  parts: { thoughtSignature?: string; functionResponse?: { id: string; response: { output: string } } }[];
};

type SentMessage = { role: string; tool_call_id?: string; content: Content };
type Content = string | { text?: string; tool_use_id?: string; content?: Content }[];

function plain(content: Content): string {
  return typeof content === 'string' ? content : content.map((part) => part.text).join('');
}

test.each(['@anthropic-ai/sdk 0', '@anthropic-ai/sdk 1', '@ai-sdk/anthropic', '@langchain/anthropic'])(
  'signed thinking returns to the upstream unchanged through %s, streamed',
  async (name) => {
    const thought = { say: 'thinking', text: 'Größe 😀' } as const;
    const signature = { say: 'signature', text: 'c2ln+bmF0/dXJl==' } as const;
    sdk.upstream.script('claude-x', { stream: [onWire('messages', [thought, signature, ...tools_streamed], framing)] });
    const got = await sdk.caller(name).ask({ model: 'acme/ant', stream: true, tools: true });
    sdk.upstream.script('claude-x', { stream: [onWire('messages', [{ say: 'text', text: 'So.' }], framing)] });
    expect((await got.answer(['1', '2'])).text).toBe('So.');
    const turns = sdk.upstream.requests.at(-1)?.body['messages'] as { content: object[] }[] | undefined;
    expect(turns?.[1]?.content[0]).toMatchObject({
      type: 'thinking',
      thinking: thought.text,
      signature: signature.text,
    });
  },
);

/** They keep what they do not know of a call, or the thinking before it; the others lose the seal. */
const keepers = [
  'openai 6',
  'openai 7',
  '@ai-sdk/openai-compatible',
  '@anthropic-ai/sdk 0',
  '@anthropic-ai/sdk 1',
  '@ai-sdk/anthropic',
  '@langchain/anthropic',
];

describe.each(caller_names)('the SDK %s', (name) => {
  test.each([false, true])('returns a call signed by Gemini with its signature (streamed: %s)', async (stream) => {
    const thought = { say: 'thinking', text: 'Größe 😀' } as const;
    const signature = { say: 'signature', text: thought_signature } as const;
    const streamed = { stream: [onWire('gemini', [thought, signature, ...tools_streamed], framing)] };
    sdk.upstream.script('gemini-x', stream ? streamed : { json: tools.gemini });
    const got = await sdk.caller(name).ask({ model: 'acme/gem', stream, tools: true });
    const answer = { stream: [onWire('gemini', [{ say: 'text', text: 'So.' }], framing)] };
    sdk.upstream.script('gemini-x', stream ? answer : { json: generated([{ text: 'So.' }]) });
    expect((await got.answer(['1', '2'])).text).toBe('So.');
    const signatures = geminiTurns().map(({ parts }) => parts.map(({ thoughtSignature }) => thoughtSignature));
    const expected = keepers.includes(name) ? thought_signature : 'skip_thought_signature_validator';
    expect(signatures.slice(1)).toEqual([
      [expected, undefined],
      [undefined, undefined],
    ]);
  });
});

describe.each(cells)('the SDK %s with %s', (name, model, { behind, upstream }) => {
  const caller = () => sdk.caller(name);

  test('gets text', async () => {
    sdk.upstream.script(behind, { json: text[upstream] });
    const got = await caller().ask({ model, stream: false });
    expect([got.text, got.calls]).toEqual(['Grüße 😀', []]);
    expect(got.finish).toMatch(/^(stop|end_turn)$/);
    expect(JSON.stringify(sdk.upstream.requests.at(-1)?.body)).toContain(question);
  });

  test.each([false, true])('makes parallel tool calls and sends their results back (streamed: %s)', async (stream) => {
    const streamed = { stream: [onWire(upstream, tools_streamed, framing)] };
    sdk.upstream.script(behind, stream ? streamed : { json: tools[upstream] });
    const got = await caller().ask({ model, stream, tools: true });
    expect(got.calls).toEqual(calls.map(({ name: tool, input }) => ({ name: tool, input })));
    const seven = {
      completions: completion('7 °C'),
      messages: message('7 °C'),
      gemini: generated([{ text: '7 °C' }]),
    };
    const answer = { stream: [onWire(upstream, [{ say: 'text', text: '7 °C' }], framing)] };
    sdk.upstream.script(behind, stream ? answer : { json: seven[upstream] });
    const next = await got.answer(['7 °C', 'waited']);
    expect(next.text).toBe('7 °C');
    expect(resultRequests(upstream)).toEqual([
      ['call_0', '7 °C'],
      ['call_1', 'waited'],
    ]);
  });

  test('sends an image', async () => {
    sdk.upstream.script(behind, { json: text[upstream] });
    await caller().ask({ model, stream: false, image: png });
    const body = sdk.upstream.requests.at(-1)?.body;
    const body_text = JSON.stringify(body?.['messages'] ?? body?.['contents']);
    const image = {
      completions: `"url":"data:image/png;base64,${png}"`,
      messages: `"media_type":"image/png","data":"${png}"`,
      gemini: `"mimeType":"image/png","data":"${png}"`,
    };
    expect(body_text).toContain(image[upstream]);
  });

  test('gets structured output', async () => {
    const weather = { city: 'Łódź', degrees: 7 };
    const json = JSON.stringify(weather);
    const answers = { completions: completion(json), messages: message(json), gemini: generated([{ text: json }]) };
    const called = { ...tools.messages, content: [{ type: 'tool_use', id: 'toolu_1', name: 'json', input: weather }] };
    // Some callers of messages style force a tool instead of asking by a schema.
    const forced = {
      messages: called,
      gemini: generated([{ functionCall: { id: 'c', name: 'json', args: weather } }]),
      completions: {
        ...completion(''),
        choices: [
          {
            index: 0,
            message: {
              content: null,
              tool_calls: [{ id: 'c', type: 'function', function: { name: 'json', arguments: json } }],
            },
            finish_reason: 'tool_calls',
          },
        ],
      },
    };
    sdk.upstream.script(behind, ({ body }) => ({ json: (body['tools'] === undefined ? answers : forced)[upstream] }));
    expect(await caller().structured(model)).toEqual(weather);
    const body = sdk.upstream.requests.at(-1)?.body ?? {};
    const native = {
      completions: body['response_format'],
      messages: body['output_config'],
      gemini: body['generationConfig'],
    };
    expect(JSON.stringify(body['tools'] ?? native[upstream])).toContain('degrees');
  });

  test('gets thinking', async () => {
    sdk.upstream.script(behind, { json: thinking[upstream] });
    const got = await caller().ask({ model, stream: false });
    expect(got.text).toBe('So.');
    // One SDK of completions style has no place for what is thought.
    expect(name === '@ai-sdk/openai' ? 'Hm.' : got.thinking).toBe('Hm.');
  });

  test.each([false, true])(
    'ends a stream upstream when it aborts, while a whole response is waited for (streamed: %s)',
    async (stream) => {
      sdk.upstream.script(
        behind,
        stream
          ? { stream: [upTo('Half', onWire(upstream, [{ say: 'text', text: 'Half' }], framing))], then: 'hang' }
          : 'hang',
      );
      const leave = new AbortController();
      const answer = caller()
        .ask({ model, stream, signal: leave.signal })
        .then(
          () => 'answered',
          () => 'aborted',
        );
      await expect.poll(() => sdk.upstream.open()).toBe(1);
      leave.abort();
      expect(await answer).toBe('aborted');
      if (!stream) sdk.upstream.letGo();
      await expect.poll(() => sdk.upstream.open()).toBe(0);
    },
  );
});

/** The frames of a stream up to the one with these words: nothing yet says that the answer is finished. */
function upTo(words: string, stream: string): string {
  const frame_end = /\r?\n\r?\n/g;
  frame_end.lastIndex = stream.indexOf(words);
  const end = frame_end.exec(stream);
  if (!end) throw new Error(`no frame has ${words}`);
  return stream.slice(0, frame_end.lastIndex);
}
