import { createOpenAI } from '@ai-sdk/openai';
import { generateText, isStepCount, jsonSchema, tool as defineTool } from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { response, messageItem } from '../chat/responses-streams.ts';
import { completion, generated, message } from '../chat/setup.ts';
import type { ChatEvent } from '../../src/styles/conversation.ts';
import { ResponsesWriter } from '../../src/styles/responses/stream.ts';
import { expectExactBooks } from '../helpers/app.ts';
import type { CallerStyle as WireStyle } from '../styles/by-name.ts';
import { onWire, type Piece } from '../styles/wire.ts';
import { caller_names, setSdkStage, type SdkStage } from './stage.ts';

/** SDKs that speak the responses style with upstreams of every style, and all others with one of the responses style. */

let sdk: SdkStage;

beforeAll(async () => {
  sdk = await setSdkStage();
});
afterAll(async () => {
  await expectExactBooks(sdk.stage.test.app);
  await sdk.stop();
});

type Cell = { model: string; behind: string; upstream: WireStyle };

const own: Cell = { model: 'acme/res', behind: 'res-x', upstream: 'responses' };
const others: Cell[] = [
  { model: 'acme/oai', behind: 'gpt-x', upstream: 'completions' },
  { model: 'acme/ant', behind: 'claude-x', upstream: 'messages' },
  { model: 'acme/gem', behind: 'gemini-x', upstream: 'gemini' },
];
const speakers = ['@ai-sdk/openai, responses', '@langchain/openai, responses'];
const cells = [
  ...speakers.flatMap((name) => [own, ...others].map((cell) => [name, cell.model, cell] as const)),
  ...caller_names.map((name) => [name, own.model, own] as const),
];

const framing = { end: '\n', space: ' ', comments: false, spread: false };
const calls = [
  { id: 'call_0', name: 'look', input: { city: 'Łódź 😀' } },
  { id: 'call_1', name: 'wait', input: {} },
];
const wanted_calls = calls.map(({ name, input }) => ({ name, input }));
const called: Piece[] = [
  { say: 'thinking', text: 'Hm.' },
  { say: 'call', index: 0, name: 'look' },
  { say: 'arguments', index: 0, text: '{"city":"Łódź' },
  { say: 'arguments', index: 0, text: ' 😀"}' },
  { say: 'call', index: 1, name: 'wait' },
];

/** A whole answer with this text. */
const text = (words: string): { readonly [style in WireStyle]: object } => ({
  completions: completion(words),
  messages: message(words),
  gemini: generated([{ text: words }]),
  responses: response([messageItem(words)]),
});

/** A whole answer with these calls. */
const tools: { readonly [style in WireStyle]: object } = {
  completions: {
    ...completion(''),
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: null,
          tool_calls: calls.map(({ id, name, input }) => ({
            id,
            type: 'function',
            function: { name, arguments: JSON.stringify(input) },
          })),
        },
        finish_reason: 'tool_calls',
      },
    ],
  },
  messages: { ...message(''), content: calls.map((call) => ({ type: 'tool_use', ...call })), stop_reason: 'tool_use' },
  gemini: generated(calls.map(({ id, name, input: args }) => ({ functionCall: { id, name, args } }))),
  responses: response([
    { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' },
    ...calls.map(({ id, name, input }, index) => ({
      type: 'function_call',
      id: `fc_${index}`,
      call_id: id,
      name,
      arguments: JSON.stringify(input),
      status: 'completed',
    })),
  ]),
};

/** SDKs of the responses style want every event of it, as its own servers send them. */
const streamed = (upstream: WireStyle, script: readonly Piece[]) => ({
  stream: [upstream === 'responses' ? inFull(script) : onWire(upstream, script, framing)],
});

function inFull(script: readonly Piece[]): string {
  const writer = new ResponsesWriter({ model: 'res-x', request_id: 'up', created: 1, echo: {} });
  const tokens = { input_tokens: 10, cached_input_tokens: 0, cache_write_tokens: 0, cache_write_1h_tokens: 0 };
  const usage = () => ({ ...tokens, output_tokens: 5, reasoning_tokens: 0 });
  const events: ChatEvent[] = [
    { type: 'start' },
    ...script.map(eventOf),
    { type: 'finish', reason: 'stop' },
    { type: 'end' },
  ];
  return events.map((event) => writer.write(event, usage)).join('');
}

function eventOf(piece: Piece): ChatEvent {
  if (piece.say === 'call') {
    return { type: 'tool_call', index: piece.index, id: `call_${piece.index}`, name: piece.name };
  }
  if (piece.say === 'arguments') return { type: 'tool_arguments', index: piece.index, json: piece.text };
  return piece.say === 'signature'
    ? { type: 'signature', signature: piece.text }
    : { type: piece.say, text: piece.text };
}

describe.each(cells)('the SDK %s with %s', (name, model, { behind, upstream }) => {
  const caller = () => sdk.caller(name);
  const lastBody = () => JSON.stringify(sdk.upstream.requests.at(-1)?.body);

  test('gets text', async () => {
    sdk.upstream.script(behind, { json: text('Grüße 😀')[upstream] });
    const got = await caller().ask({ model, stream: false });
    expect([got.text, got.calls]).toEqual(['Grüße 😀', []]);
    const { path } = sdk.upstream.requests.at(-1) ?? {};
    expect(path === '/v1/responses').toBe(upstream === 'responses');
  });

  test('completes a loop of tools', async () => {
    sdk.upstream.script(behind, { json: tools[upstream] });
    const got = await caller().ask({ model, stream: false, tools: true });
    expect(got.calls).toEqual(wanted_calls);
    sdk.upstream.script(behind, { json: text('7 °C')[upstream] });
    expect((await got.answer(['seven', 'waited'])).text).toBe('7 °C');
    for (const word of ['call_0', 'seven', 'call_1', 'waited']) expect(lastBody()).toContain(word);
  });

  test('completes a streamed loop of tools', async () => {
    sdk.upstream.script(behind, streamed(upstream, called));
    const got = await caller().ask({ model, stream: true, tools: true });
    expect(got.calls).toEqual(wanted_calls);
    sdk.upstream.script(behind, streamed(upstream, [{ say: 'text', text: '7 °C' }]));
    expect((await got.answer(['seven', 'waited'])).text).toBe('7 °C');
    for (const word of ['call_0', 'seven', 'call_1', 'waited']) expect(lastBody()).toContain(word);
  });

  test('gets structured output', async () => {
    const weather = { city: 'Łódź', degrees: 7 };
    const answers = text(JSON.stringify(weather));
    const forced = response([
      { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'json', arguments: JSON.stringify(weather) },
    ]);
    // Some callers of messages style force a tool instead of asking by a schema.
    sdk.upstream.script(behind, ({ body }) => ({ json: body['tools'] === undefined ? answers[upstream] : forced }));
    expect(await caller().structured(model)).toEqual(weather);
    expect(lastBody()).toContain('degrees');
  });
});

test('an SDK that refers to earlier items by their ids goes on with what was stored, and without storing', async () => {
  const openai = createOpenAI({ baseURL: `${sdk.stage.test.url}/v1`, apiKey: sdk.stage.client.key });
  const model = openai('sandbox/chat');
  const hello = { role: 'user', content: 'Hello' } as const;
  const first = await generateText({ model, messages: [hello], maxRetries: 0 });
  const next = { model, messages: [hello, ...first.response.messages, hello], maxRetries: 0 };
  expect((await generateText(next)).text).toContain('We are at turn 2 of yours.');
  const stored_nowhere = { providerOptions: { openai: { store: false } } };
  expect((await generateText({ ...next, ...stored_nowhere })).text).toContain('We are at turn 2 of yours.');
});

test('an SDK that refers to no earlier items needs no such setting in loops of tools, with or without thinking', async () => {
  const openai = createOpenAI({ baseURL: `${sdk.stage.test.url}/v1`, apiKey: sdk.stage.client.key });
  const look = defineTool({ inputSchema: jsonSchema<object>({ type: 'object' }), execute: () => 'rain' });
  const settings = { model: openai('sandbox/chat'), tools: { look }, stopWhen: isStepCount(3), maxRetries: 0 };
  for (const prompt of ['Look [[tool look {}]]', 'Look [[think]] [[tool look {}]]']) {
    expect((await generateText({ ...settings, prompt })).text).toContain('The tool answered: “rain”.');
  }
});
