/** The sandbox's streams, in all styles as their own upstreams write them. */
import type { JsonObject } from '../../catalog/model.ts';
import { safeId } from '../../styles/calls.ts';
import { writeFinish } from '../../styles/completions/response.ts';
import type { CallerStyle, ChatEvent, Usage } from '../../styles/conversation.ts';
import { writeStop } from '../../styles/messages/response.ts';
import { ResponsesWriter } from '../../styles/responses/stream-writer.ts';
import { writeUsage } from '../../styles/usage.ts';
import type { Served } from './chat-pieces.ts';

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

export function framesOf(style: CallerStyle, served: readonly Served[], options: WireOptions): Frames {
  const [first] = served;
  if (style === 'completions' || !first) return completionsFrames(served, options);
  if (style === 'responses') return responsesFrames(first, options);
  return messagesFrames(first, options);
}

/** Several answers come at the same time, a piece of each in turn. */
function completionsFrames(served: readonly Served[], options: WireOptions): Frames {
  const { usage, legacy_functions } = options;
  const chunk = (choices: JsonObject[], told: JsonObject | null = null) => {
    const head = { id: `chatcmpl-${options.request_id}`, object: 'chat.completion.chunk', created: options.created };
    const body = { ...head, model: options.model, choices, ...(usage && { usage: told }) };
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
    tail: [...ends, ...(usage ? [chunk([], writeUsage('completions', usage))] : []), 'data: [DONE]\n\n'],
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

function messagesFrames(served: Served, options: WireOptions): Frames {
  const { model, request_id, usage } = options;
  const { answer } = served;
  const has_calls = answer.parts.some(({ type }) => type === 'tool_call');
  const counted = usage && writeUsage('messages', usage);
  const message = {
    id: `msg_${request_id}`,
    type: 'message',
    role: 'assistant',
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    ...(counted && { usage: { ...counted, output_tokens: 1, output_tokens_details: { thinking_tokens: 0 } } }),
  };
  const delta = {
    stop_reason: writeStop(answer.finish.reason, has_calls),
    stop_sequence: answer.finish.stop_sequence ?? null,
  };
  return {
    head: [frame({ type: 'message_start', message }), frame({ type: 'ping' })],
    content: blockFrames(served.events),
    tail: [
      frame({ type: 'message_delta', delta, ...(counted && { usage: counted }) }),
      frame({ type: 'message_stop' }),
    ],
  };
}

function responsesFrames(served: Served, options: WireOptions): Frames {
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
