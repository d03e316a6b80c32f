import type { Script } from '../helpers/chat-upstream.ts';
import { begun, delta, response, messageItem } from './responses-streams.ts';
import { completion, generated, message } from './setup.ts';
import { chunk, done, event, messagesStream, messageStart, usageChunk } from './streams.ts';

/** Answers of upstreams of each style that call functions, or say a text: whole and streamed. */

export type UpstreamStyle = 'completions' | 'messages' | 'gemini' | 'responses';

export const upstream_models: { readonly [style in UpstreamStyle]: string } = {
  completions: 'gpt-x',
  messages: 'claude-x',
  gemini: 'gemini-x',
  responses: 'native-x',
};

export type Called = { name?: string; input: object };

const idOf = (index: number) => `call_${index}`;
const nameOf = ({ name = 'web_search' }: Called) => name;
const geminiUsage = { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 };

/** Says a text before the calls. */
export function calls(style: UpstreamStyle, stream: boolean, all: Called[], before = ''): Exclude<Script, string> {
  return stream ? { stream: callStream(style, all, before) } : { json: callAnswer(style, all, before) };
}

/** Says a text. */
export function says(style: UpstreamStyle, stream: boolean, text: string): Script {
  switch (style) {
    case 'completions':
      if (!stream) return { json: completion(text) };
      return { stream: [chunk({ role: 'assistant', content: text }), chunk({}, {}, 'stop'), usageChunk(10, 5), done] };
    case 'messages':
      return stream ? { stream: messagesStream([text]) } : { json: message(text) };
    case 'gemini':
      return stream ? { stream: [geminiFrame([{ text }])] } : { json: generated([{ text }]) };
    case 'responses':
      if (!stream) return { json: response([messageItem(text)]) };
      return {
        stream: [
          ...begun(),
          delta(text),
          event({ type: 'response.output_item.done', sequence_number: 8, output_index: 0, item: messageItem(text) }),
          event({ type: 'response.completed', sequence_number: 9, response: response([messageItem(text)]) }),
        ],
      };
  }
}

function geminiFrame(parts: object[]): string {
  return `data: ${JSON.stringify(generated(parts, geminiUsage))}\n\n`;
}

function callAnswer(style: UpstreamStyle, all: Called[], before: string): object {
  switch (style) {
    case 'completions': {
      const tool_calls = all.map((call, index) => ({ id: idOf(index), type: 'function', function: functionOf(call) }));
      const answer = completion(before);
      return {
        ...answer,
        choices: [
          { index: 0, message: { role: 'assistant', content: before, tool_calls }, finish_reason: 'tool_calls' },
        ],
      };
    }
    case 'messages': {
      const uses = all.map((call, index) => ({
        type: 'tool_use',
        id: idOf(index),
        name: nameOf(call),
        input: call.input,
      }));
      return { ...message(before), content: [{ type: 'text', text: before }, ...uses], stop_reason: 'tool_use' };
    }
    case 'gemini':
      return generated([{ text: before }, ...all.map(geminiCall)]);
    case 'responses':
      return response([...(before === '' ? [] : [messageItem(before)]), ...all.map(callItem)]);
  }
}

function functionOf(call: Called): object {
  return { name: nameOf(call), arguments: JSON.stringify(call.input) };
}

function geminiCall(call: Called): object {
  return { functionCall: { name: nameOf(call), args: call.input }, thoughtSignature: 'c2lnbmVk' };
}

function callItem(call: Called, index: number): object {
  const { name, input } = { name: nameOf(call), input: JSON.stringify(call.input) };
  return {
    type: 'function_call',
    id: `fc_${index}`,
    call_id: idOf(index),
    name,
    arguments: input,
    status: 'completed',
  };
}

function callStream(style: UpstreamStyle, all: Called[], before: string): string[] {
  switch (style) {
    case 'completions': {
      const pieces = all.map((call, index) =>
        chunk({ tool_calls: [{ index, id: idOf(index), type: 'function', function: functionOf(call) }] }),
      );
      const text = before === '' ? [] : [chunk({ content: before })];
      return [...text, ...pieces, chunk({}, {}, 'tool_calls'), usageChunk(10, 5), done];
    }
    case 'messages':
      return messagesCalls(all, before);
    case 'gemini':
      return [geminiFrame([...(before === '' ? [] : [{ text: before }]), ...all.map(geminiCall)])];
    case 'responses':
      return responsesCalls(all, before);
  }
}

function messagesCalls(all: Called[], before: string): string[] {
  const blocks = [
    { start: { type: 'text', text: '' }, delta: { type: 'text_delta', text: before } },
    ...all.map((call, index) => ({
      start: { type: 'tool_use', id: idOf(index), name: nameOf(call), input: {} },
      delta: { type: 'input_json_delta', partial_json: JSON.stringify(call.input) },
    })),
  ];
  return [
    messageStart(),
    ...blocks.flatMap(({ start, delta: piece }, index) => [
      event({ type: 'content_block_start', index, content_block: start }),
      event({ type: 'content_block_delta', index, delta: piece }),
      event({ type: 'content_block_stop', index }),
    ]),
    event({
      type: 'message_delta',
      delta: { stop_reason: 'tool_use', stop_sequence: null },
      usage: { output_tokens: 5 },
    }),
    event({ type: 'message_stop' }),
  ];
}

function responsesCalls(all: Called[], before: string): string[] {
  const first = before === '' ? 0 : 1;
  const items = all.map(callItem);
  const whole = [...(before === '' ? [] : [messageItem(before)]), ...items];
  return [
    ...(before === '' ? begun().slice(0, 2) : [...begun(), delta(before)]),
    ...items.flatMap((item, index) => {
      const place = { sequence_number: 5, output_index: first + index };
      return [
        event({ type: 'response.output_item.added', ...place, item: { ...item, arguments: '' } }),
        event({ type: 'response.output_item.done', ...place, item }),
      ];
    }),
    event({ type: 'response.completed', sequence_number: 9, response: response(whole) }),
  ];
}
