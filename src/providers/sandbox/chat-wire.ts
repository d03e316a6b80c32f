/** The sandbox's streams, in all styles as their own upstreams write them. */
import type { JsonObject } from '../../catalog/model.ts';
import { safeId } from '../../styles/calls.ts';
import type { CallerCodec } from '../../styles/codec.ts';
import { completions } from '../../styles/completions/codec.ts';
import { writeCompletionsAnswers, writeFinish } from '../../styles/completions/response.ts';
import { usage_format as completions_usage } from '../../styles/completions/usage.ts';
import type { ChatAnswer, ChatEvent, Usage } from '../../styles/conversation.ts';
import { messages } from '../../styles/messages/codec.ts';
import { messageHead, writeEnd, writeMessagesAnswer } from '../../styles/messages/response.ts';
import { writeDeltaUsage, writeUsage } from '../../styles/messages/usage.ts';
import { no_usage } from '../../styles/usage.ts';
import { responses } from '../../styles/responses/codec.ts';
import { writeResponsesAnswer } from '../../styles/responses/response.ts';
import { ResponsesWriter } from '../../styles/responses/stream.ts';
import type { ServedAnswer } from './chat-pieces.ts';

export type WireOptions = {
  model: string;
  request_id: string;
  /** Seconds since 1970. */
  created: number;
  /** Undefined if none is told. */
  usage: Usage | undefined;
  /** Completions: the caller reads `function_call`. */
  legacy_functions: boolean;
  /** Responses: what the answer says of its request. */
  echo: JsonObject;
};

/** The frames of a stream: those before the content, those with it, those that end it. */
export type Frames = { head: string[]; content: string[]; tail: string[] };

/** A style as its own upstreams speak it. */
export type Voice = {
  style: CallerCodec;
  whole(served: readonly ServedAnswer[], options: WireOptions): JsonObject;
  frames(served: readonly ServedAnswer[], options: WireOptions): Frames;
  /** The type of an error of the upstream's own. */
  failure: string;
  /** Only what the caller marks stays in the cache. */
  caches_marked: boolean;
};

/** All styles that the sandbox speaks, the usual one first. */
export const voices: readonly Voice[] = [
  {
    style: completions,
    whole: (served, options) => writeCompletionsAnswers(answersOf(served), options.usage, options),
    frames: completionsFrames,
    failure: 'server_error',
    caches_marked: false,
  },
  { style: messages, whole: messagesAnswer, frames: messagesFrames, failure: 'api_error', caches_marked: true },
  {
    style: responses,
    whole: ([first], options) => (first ? writeResponsesAnswer(first.answer, options.usage, options) : {}),
    frames: responsesFrames,
    failure: 'server_error',
    caches_marked: false,
  },
];

function answersOf(served: readonly ServedAnswer[]): ChatAnswer[] {
  return served.map(({ answer }) => answer);
}

/** Without usage where none is reported, which no upstream of this style does. */
function messagesAnswer([first]: readonly ServedAnswer[], { model, request_id, usage }: WireOptions): JsonObject {
  if (!first) return {};
  const { usage: counts, ...rest } = writeMessagesAnswer(first.answer, usage ?? no_usage, model, request_id);
  return usage && counts !== undefined ? { ...rest, usage: counts } : rest;
}

const no_frames: Frames = { head: [], content: [], tail: [] };

/** Several answers come at the same time, a piece of each in turn. */
function completionsFrames(served: readonly ServedAnswer[], options: WireOptions): Frames {
  const { usage, legacy_functions } = options;
  const chunk = (choices: JsonObject[], counts: JsonObject | null = null) => {
    const head = { id: `chatcmpl-${options.request_id}`, object: 'chat.completion.chunk', created: options.created };
    const body = { ...head, model: options.model, choices, ...(usage && { usage: counts }) };
    return `data: ${JSON.stringify(body)}\n\n`;
  };
  const choice = (index: number, delta: JsonObject, finish_reason: string | null = null) => [
    { index, delta, logprobs: null, finish_reason },
  ];
  const longest = Math.max(...served.map(({ events }) => events.length));
  const content = Array.from({ length: longest }, (_, at) =>
    served.flatMap(({ events }, index) => {
      const delta = events[at] && deltaOf(events[at], legacy_functions);
      return delta ? [chunk(choice(index, delta))] : [];
    }),
  ).flat();
  const ends = served.map(({ answer }, index) => {
    const has_calls = answer.parts.some(({ type }) => type === 'tool_call');
    return chunk(choice(index, {}, writeFinish(answer.finish.reason, has_calls, legacy_functions)));
  });
  return {
    head: served.map((_, index) => chunk(choice(index, { role: 'assistant', content: '', refusal: null }))),
    content,
    tail: [...ends, ...(usage ? [chunk([], completions_usage.write(usage))] : []), 'data: [DONE]\n\n'],
  };
}

function deltaOf(event: ChatEvent, legacy_functions: boolean): JsonObject | undefined {
  switch (event.type) {
    case 'text':
      return { content: event.text };
    case 'thinking':
      return { reasoning_content: event.text };
    case 'tool_call': {
      const called = { name: event.name, arguments: '' };
      if (legacy_functions) return event.index === 0 ? { function_call: called } : undefined;
      return { tool_calls: [{ index: event.index, id: event.id, type: 'function', function: called }] };
    }
    case 'tool_arguments': {
      const called = { arguments: event.json };
      if (legacy_functions) return event.index === 0 ? { function_call: called } : undefined;
      return { tool_calls: [{ index: event.index, function: called }] };
    }
    default:
      return undefined; // the style has no place for signatures
  }
}

function messagesFrames([served]: readonly ServedAnswer[], options: WireOptions): Frames {
  if (!served) return no_frames;
  const { model, request_id, usage } = options;
  const { answer } = served;
  const has_calls = answer.parts.some(({ type }) => type === 'tool_call');
  const begun = usage && { ...writeUsage(usage), output_tokens: 1, output_tokens_details: { thinking_tokens: 0 } };
  const message = { ...messageHead(model, request_id), ...(begun && { usage: begun }) };
  const delta = writeEnd(answer.finish, has_calls);
  return {
    head: [frame({ type: 'message_start', message }), frame({ type: 'ping' })],
    content: blockFrames(served.events),
    tail: [
      frame({ type: 'message_delta', delta, ...(usage && { usage: writeDeltaUsage(usage) }) }),
      frame({ type: 'message_stop' }),
    ],
  };
}

function responsesFrames([served]: readonly ServedAnswer[], options: WireOptions): Frames {
  if (!served) return no_frames;
  const writer = new ResponsesWriter(options);
  const write = (event: ChatEvent) => writer.write(event, () => options.usage);
  return {
    head: [write({ type: 'start' })],
    content: served.events.map(write),
    tail: [write({ type: 'finish', ...served.answer.finish }), write({ type: 'end' })],
  };
}

/** One block after the other, each opened, filled and closed. */
function blockFrames(events: readonly ChatEvent[]): string[] {
  const frames: string[] = [];
  let index = -1;
  let open = '';
  for (const event of events) {
    const block = blockOf(event);
    if (!block) continue;
    if (block.kind !== open || event.type === 'tool_call') {
      if (index >= 0) frames.push(frame({ type: 'content_block_stop', index }));
      index += 1;
      open = block.kind;
      frames.push(frame({ type: 'content_block_start', index, content_block: block.start }));
    }
    if (block.delta) frames.push(frame({ type: 'content_block_delta', index, delta: block.delta }));
  }
  if (index >= 0) frames.push(frame({ type: 'content_block_stop', index }));
  return frames;
}

type Block = { kind: string; start: JsonObject; delta?: JsonObject };

function blockOf(event: ChatEvent): Block | undefined {
  const thinking = { kind: 'thinking', start: { type: 'thinking', thinking: '', signature: '' } };
  switch (event.type) {
    case 'text':
      return { kind: 'text', start: { type: 'text', text: '' }, delta: { type: 'text_delta', text: event.text } };
    case 'thinking':
      return { ...thinking, delta: { type: 'thinking_delta', thinking: event.text } };
    case 'signature':
      return { ...thinking, delta: { type: 'signature_delta', signature: event.signature } };
    case 'tool_call':
      return { kind: 'tool', start: { type: 'tool_use', id: safeId(event.id), name: event.name, input: {} } };
    case 'tool_arguments':
      return { kind: 'tool', start: {}, delta: { type: 'input_json_delta', partial_json: event.json } };
    default:
      return undefined;
  }
}

function frame(data: { type: string; [field: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}
