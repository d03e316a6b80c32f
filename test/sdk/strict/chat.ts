import type { Stage } from '../../chat/setup.ts';
import { calls, says, type UpstreamStyle } from '../../chat/search-streams.ts';
import { completion, generated, message } from '../../chat/setup.ts';
import { response, messageItem } from '../../chat/responses-streams.ts';
import { chunk, done, event, messageStart, usageChunk } from '../../chat/streams.ts';
import type { Script } from '../../helpers/chat-upstream.ts';
import { onWire, type Piece } from '../../styles/wire.ts';
import { eventsIn, sampleOf } from './asking.ts';
import type { Sample } from './vendor-types.ts';

/** Chat of every style that callers speak, with upstreams of every style: whole and as a stream. */

type Caller = {
  path(model: string, stream: boolean): string;
  body(model: string, stream: boolean): object;
  search?: object;
  whole: string;
  event: string;
};

const parameters = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const streamed = (stream: boolean) => (stream ? { stream, stream_options: { include_usage: true } } : {});
const messages = [{ role: 'user', content: 'Hello' }];

const callers: { readonly [style: string]: Caller } = {
  completions: {
    path: () => '/v1/chat/completions',
    body: (model, stream) => ({
      model,
      messages,
      ...streamed(stream),
      tools: [{ type: 'function', function: { name: 'look', parameters } }],
    }),
    search: { web_search_options: {} },
    whole: 'OpenAI.Chat.ChatCompletion',
    event: 'OpenAI.Chat.ChatCompletionChunk',
  },
  messages: {
    path: () => '/v1/messages',
    body: (model, stream) => ({
      model,
      max_tokens: 100,
      messages,
      stream,
      tools: [{ name: 'look', input_schema: parameters }],
    }),
    search: { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    whole: 'Anthropic.Message',
    event: 'Anthropic.RawMessageStreamEvent | { type: "ping" }',
  },
  responses: {
    path: () => '/v1/responses',
    body: (model, stream) => ({
      model,
      input: 'Hello',
      stream,
      tools: [
        { type: 'function', name: 'look', parameters },
        { type: 'custom', name: 'note' },
      ],
    }),
    search: { tools: [{ type: 'web_search' }] },
    whole: 'OpenAI.Responses.Response',
    event: 'OpenAI.Responses.ResponseStreamEvent',
  },
  gemini: {
    path: (model, stream) => `/v1beta/models/${model}:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    body: () => ({
      contents: [{ role: 'user', parts: [{ text: 'Hello' }] }],
      tools: [{ functionDeclarations: [{ name: 'look', parametersJsonSchema: parameters }] }],
    }),
    search: { tools: [{ googleSearch: {} }] },
    whole: 'Google.GenerateContentResponse',
    event: 'Google.GenerateContentResponse',
  },
  texts: {
    path: () => '/v1/completions',
    body: (model, stream) => ({ model, prompt: 'Hello', ...streamed(stream) }),
    whole: 'OpenAI.Completion',
    event: 'OpenAI.Completion',
  },
};

export const upstreams: { readonly [style in UpstreamStyle]: readonly [model: string, behind: string] } = {
  completions: ['acme/oai', 'gpt-x'],
  messages: ['acme/ant', 'claude-x'],
  responses: ['acme/res', 'res-x'],
  gemini: ['acme/gem', 'gemini-x'],
};
const upstream_styles = ['completions', 'messages', 'responses', 'gemini'] as const;

const framing = { end: '\n', space: ' ', comments: false, spread: false };
const thought: Piece[] = [
  { say: 'thinking', text: 'Hm.' },
  { say: 'signature', text: 'c2lnbmF0dXJl' },
  { say: 'text', text: 'I look.' },
  { say: 'call', index: 0, name: 'look' },
  { say: 'arguments', index: 0, text: '{"city":"Rome"}' },
  { say: 'call', index: 1, name: 'note' },
  { say: 'arguments', index: 1, text: '{"input":"x"}' },
];
const called = [
  { name: 'look', input: { city: 'Rome' } },
  { name: 'note', input: { input: 'x' } },
];

/** An answer of the upstream for each of the ends that an answer may have. */
type Ending = { name: string; script(style: UpstreamStyle, stream: boolean): Script };

const endings: readonly Ending[] = [
  { name: 'text', script: (style, stream) => says(style, stream, 'Hi') },
  {
    name: 'thought and calls',
    script: (style, stream) =>
      stream ? { stream: [onWire(style, thought, framing)] } : calls(style, false, called, 'I look.'),
  },
  {
    name: 'cut at the limit',
    script: (style, stream) => (stream ? { stream: cut[style]() } : { json: cutWhole[style]() }),
  },
  {
    name: 'refusal',
    script: (style, stream) => (stream ? { stream: refused[style]() } : { json: refusedWhole[style]() }),
  },
];

const stopped = (body: object, more: object) => ({ ...body, ...more });
const gemini = (more: object) => `data: ${JSON.stringify(generated([{ text: 'Hi' }], undefined, more))}\n\n`;
const choice = (message_: object, finish_reason: string) => ({
  choices: [{ index: 0, message: { role: 'assistant', refusal: null, ...message_ }, logprobs: null, finish_reason }],
});
const cached = { input_tokens: 10, cache_read_input_tokens: 3, cache_creation_input_tokens: 4, output_tokens: 5 };

type Bodies<T> = { readonly [style in UpstreamStyle]: () => T };

const cutWhole: Bodies<object> = {
  completions: () => stopped(completion('Hi'), choice({ content: 'Hi', reasoning_content: 'Hm.' }, 'length')),
  messages: () => stopped(message('Hi', cached), { stop_reason: 'max_tokens' }),
  responses: () =>
    response([messageItem('Hi', 'incomplete')], {
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    }),
  gemini: () => generated([{ text: 'Hm.', thought: true }, { text: 'Hi' }], undefined, { finishReason: 'MAX_TOKENS' }),
};
const cut: Bodies<string[]> = {
  completions: () => [chunk({ role: 'assistant', content: 'Hi' }), chunk({}, {}, 'length'), usageChunk(10, 5), done],
  messages: () => [messageStart(), ...messagesText(), ...messagesEnd('max_tokens')],
  responses: () => [
    event({ type: 'response.created', response: response([], { status: 'in_progress', usage: null }) }),
    event({ type: 'response.output_text.delta', output_index: 0, item_id: 'msg_1', content_index: 0, delta: 'Hi' }),
    event({ type: 'response.incomplete', response: cutWhole.responses() }),
  ],
  gemini: () => [gemini({ finishReason: 'MAX_TOKENS' })],
};
const refusedWhole: Bodies<object> = {
  completions: () => stopped(completion(''), choice({ content: null, refusal: 'No.' }, 'content_filter')),
  messages: () =>
    stopped(message('Hi'), {
      stop_reason: 'refusal',
      stop_details: { type: 'refusal', category: 'cyber', explanation: 'No.' },
    }),
  responses: () =>
    response([{ id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'refusal', refusal: 'No.' }] }]),
  gemini: () => generated([{ text: 'Hi' }], undefined, { finishReason: 'SAFETY' }),
};
const refused: Bodies<string[]> = {
  completions: () => [chunk({ role: 'assistant', refusal: 'No.' }), chunk({}, {}, 'content_filter'), done],
  messages: () => [messageStart(), ...messagesText(), ...messagesEnd('refusal')],
  responses: () => [
    event({ type: 'response.created', response: response([], { status: 'in_progress', usage: null }) }),
    event({ type: 'response.refusal.delta', output_index: 0, item_id: 'msg_1', content_index: 0, delta: 'No.' }),
    event({ type: 'response.completed', response: refusedWhole.responses() }),
  ],
  gemini: () => [gemini({ finishReason: 'SAFETY' })],
};

function messagesText(): string[] {
  return [
    event({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
    event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }),
    event({ type: 'content_block_stop', index: 0 }),
  ];
}

function messagesEnd(stop_reason: string): string[] {
  const delta = { stop_reason, stop_sequence: null };
  return [event({ type: 'message_delta', delta, usage: { output_tokens: 5 } }), event({ type: 'message_stop' })];
}

/** Returns the answers of all callers from upstreams of all other styles: those of their own are the upstream's words. */
export async function chatSamples(stage: Stage): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (const upstream of upstream_styles)
    for (const { name, script } of endings)
      for (const stream of [false, true]) {
        stage.upstream.script(upstreams[upstream][1], script(upstream, stream));
        const others = Object.keys(callers).filter((caller) => caller !== upstream);
        for (const caller of others) samples.push(...(await ask(stage, caller, upstreams[upstream][0], stream, name)));
      }
  for (const caller of Object.keys(callers))
    for (const stream of [false, true]) samples.push(...(await ask(stage, caller, 'sandbox/chat', stream, 'text')));
  return samples;
}

/** Returns answers with a search that the service runs. */
export async function searchSamples(stage: Stage): Promise<Sample[]> {
  const samples: Sample[] = [];
  for (const caller of ['completions', 'messages', 'responses', 'gemini']) {
    const upstream = caller === 'completions' ? 'messages' : 'completions';
    for (const stream of [false, true]) {
      const [model, behind] = upstreams[upstream];
      stage.upstream.script(
        behind,
        calls(upstream, stream, [{ input: { query: 'q' } }], 'I look. '),
        says(upstream, stream, 'As [One](https://a.example/one) says.'),
      );
      samples.push(...(await ask(stage, caller, model, stream, 'a search', callers[caller]?.search)));
    }
  }
  return samples;
}

async function ask(
  { client }: Stage,
  caller: string,
  model: string,
  stream: boolean,
  name: string,
  more: object = {},
): Promise<Sample[]> {
  const own = callers[caller];
  if (!own) throw new Error(`no caller ${caller}`);
  const what = `${caller} of ${model}, ${stream ? 'streamed' : 'whole'}: ${name}`;
  const answer = await client.call('POST', own.path(model, stream), { ...own.body(model, stream), ...more });
  if (!stream) return [sampleOf(what, own.whole, answer)];
  return eventsIn(answer).map((value) => ({ what, type: own.event, value }));
}
