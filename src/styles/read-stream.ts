import type { Json, JsonObject } from '../catalog/model.ts';
import type { SseFrame } from '../net/sse.ts';
import { readFinish, readThinking, textOf } from './completions/response.ts';
import type { ChatEvent, UpstreamStyle } from './conversation.ts';
import { isObject } from './fields.ts';
import { ContentsReader } from './gemini/stream.ts';
import { readStop } from './messages/response.ts';
import { ResponsesReader } from './responses/stream.ts';
import { cut, empty, errorEventOf, objectOf, start, type StreamReader } from './stream-reader.ts';
import { readStartUsage, readUsage } from './usage.ts';

export function makeReader(style: UpstreamStyle, request_id: string): StreamReader {
  switch (style) {
    case 'completions':
      return new CompletionsReader(request_id);
    case 'messages':
      return new MessagesReader();
    case 'contents':
      return new ContentsReader(request_id);
    case 'responses':
      return new ResponsesReader();
  }
}

/** Only the first choice: the other style has no more. */
class CompletionsReader implements StreamReader {
  readonly #request_id: string;
  #started = false;
  #finish: Json | undefined;
  #is_done = false;
  #has_content = false;
  #has_refusal = false;
  /** By the upstream's index, which some servers leave out, and some give to all calls alike. */
  readonly #calls = new Map<Json | undefined, Call>();
  #calls_begun = 0;

  constructor(request_id: string) {
    this.#request_id = request_id;
  }

  read({ data, raw }: SseFrame): ChatEvent[] {
    if (data === undefined || data.trim() === '') return raw.length > 0 ? [{ type: 'ping' }] : [];
    if (data.startsWith('[DONE]')) return this.#done();
    const chunk = objectOf(data);
    if (chunk['error'] !== undefined && chunk['error'] !== null) return [errorEventOf(chunk['error'])];
    const events: ChatEvent[] = this.#started ? [] : [start(chunk['id'])];
    this.#started = true;
    const choice = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isObject).find(isFirst) : undefined;
    const choice_events = choice ? this.#readChoice(choice) : [];
    this.#has_content ||= choice_events.some(({ type }) => type !== 'ending');
    events.push(...choice_events);
    const usage = readUsage('completions', chunk['usage']);
    if (usage) events.push({ type: 'usage', usage });
    return events;
  }

  end(): ChatEvent[] {
    if (this.#is_done) return [];
    return this.#finish === undefined ? [cut] : this.#done(); // some servers leave [DONE] out
  }

  #done(): ChatEvent[] {
    if (this.#is_done) return [];
    this.#is_done = true;
    if (!this.#has_content && this.#finish === undefined) return [empty];
    const reason = readFinish(this.#finish, { has_calls: this.#calls_begun > 0, has_refusal: this.#has_refusal });
    return [{ type: 'finish', reason }, { type: 'end' }];
  }

  #readChoice(choice: JsonObject): ChatEvent[] {
    const events: ChatEvent[] = [];
    const delta = isObject(choice['delta']) ? choice['delta'] : {};
    for (const part of readThinking(delta)) {
      if (part.type === 'redacted_thinking') events.push(part);
      if (part.type !== 'thinking') continue;
      if (part.text !== '') events.push({ type: 'thinking', text: part.text });
      if (part.signature !== undefined) events.push({ type: 'signature', signature: part.signature });
    }
    const { content, refusal } = delta;
    const text = textOf(content);
    if (text !== '') events.push({ type: 'text', text });
    if (typeof refusal === 'string' && refusal !== '') {
      this.#has_refusal = true;
      events.push({ type: 'refusal', text: refusal });
    }
    const calls = Array.isArray(delta['tool_calls']) ? delta['tool_calls'] : [];
    for (const call of calls) if (isObject(call)) events.push(...this.#readCall(call, call['function']));
    if (isObject(delta['function_call'])) events.push(...this.#readCall({ index: 0 }, delta['function_call']));
    if (choice['finish_reason'] !== undefined && choice['finish_reason'] !== null) {
      this.#finish = choice['finish_reason'];
      events.push({ type: 'ending' });
    }
    return events;
  }

  #readCall(call: JsonObject, given: Json | undefined): ChatEvent[] {
    const function_part = isObject(given) ? given : {};
    const id = typeof call['id'] === 'string' && call['id'] !== '' ? call['id'] : undefined;
    const events: ChatEvent[] = [];
    let open_call = this.#calls.get(call['index']);
    if (
      typeof function_part['name'] === 'string' &&
      function_part['name'] !== '' &&
      (!open_call || isOther(call, id, open_call))
    ) {
      open_call = { index: this.#calls_begun++, id };
      this.#calls.set(call['index'], open_call);
      const spare_id = `call_${this.#request_id}_${open_call.index}`;
      events.push({ type: 'tool_call', index: open_call.index, id: id ?? spare_id, name: function_part['name'] });
    }
    const json = isObject(function_part['arguments'])
      ? JSON.stringify(function_part['arguments'])
      : function_part['arguments'];
    if (open_call && typeof json === 'string' && json !== '') {
      events.push({ type: 'tool_arguments', index: open_call.index, json });
    }
    return events;
  }
}

type Call = { index: number; id: string | undefined };

/** A name in a further piece begins another call if its id is another one, or nothing tells the calls apart. */
function isOther(call: JsonObject, id: string | undefined, known: Call): boolean {
  if (id === undefined) return call['index'] === undefined;
  return known.id !== undefined && id !== known.id;
}

function isFirst(choice: JsonObject): boolean {
  return choice['index'] === undefined || choice['index'] === 0;
}

class MessagesReader implements StreamReader {
  /** Index of a block → index of its tool call. */
  readonly #calls = new Map<Json, { index: number; has_arguments: boolean }>();
  #finish: ChatEvent | undefined;
  #has_content = false;
  #is_done = false;

  read({ data, raw }: SseFrame): ChatEvent[] {
    if (data === undefined || data.trim() === '') return raw.length > 0 ? [{ type: 'ping' }] : [];
    const event = objectOf(data);
    switch (event['type']) {
      case 'message_start':
        return this.#readStart(event['message']);
      case 'content_block_start':
        return this.#noted(this.#readBlock(event));
      case 'content_block_delta':
        return this.#noted(this.#readDelta(event));
      case 'content_block_stop':
        return this.#readStop(event);
      case 'message_delta':
        return this.#readMessageDelta(event);
      case 'message_stop':
        this.#is_done = true;
        if (!this.#has_content && !this.#finish) return [empty];
        return [
          this.#finish ?? { type: 'finish', reason: this.#calls.size > 0 ? 'tool_calls' : 'stop' },
          { type: 'end' },
        ];
      case 'ping':
        return [{ type: 'ping' }];
      case 'error':
        return [errorEventOf(event['error'])];
      default:
        return [];
    }
  }

  end(): ChatEvent[] {
    return this.#is_done ? [] : [cut];
  }

  #noted(events: ChatEvent[]): ChatEvent[] {
    this.#has_content ||= events.length > 0;
    return events;
  }

  #readStart(message: Json | undefined): ChatEvent[] {
    if (!isObject(message)) return [start(undefined)];
    const usage = readStartUsage(message['usage']);
    return [start(message['id']), ...(usage ? [{ type: 'usage', usage } as const] : [])];
  }

  #readBlock({ index = null, content_block }: JsonObject): ChatEvent[] {
    if (!isObject(content_block)) return [];
    const { type, text, thinking, data, id, name } = content_block;
    if (type === 'text' && typeof text === 'string' && text !== '') return [{ type: 'text', text }];
    if (type === 'thinking' && typeof thinking === 'string' && thinking !== '')
      return [{ type: 'thinking', text: thinking }];
    if (type === 'redacted_thinking' && typeof data === 'string') return [{ type: 'redacted_thinking', data }];
    if (type !== 'tool_use' || typeof id !== 'string' || typeof name !== 'string') return [];
    const call = { index: this.#calls.size, has_arguments: false };
    this.#calls.set(index, call);
    return [{ type: 'tool_call', index: call.index, id, name }];
  }

  #readDelta({ index = null, delta }: JsonObject): ChatEvent[] {
    if (!isObject(delta)) return [];
    const { type, text, thinking, signature, partial_json } = delta;
    if (type === 'text_delta' && typeof text === 'string') return text === '' ? [] : [{ type: 'text', text }];
    if (type === 'thinking_delta' && typeof thinking === 'string') {
      return thinking === '' ? [] : [{ type: 'thinking', text: thinking }];
    }
    if (type === 'signature_delta' && typeof signature === 'string') return [{ type: 'signature', signature }];
    const call = this.#calls.get(index);
    if (type !== 'input_json_delta' || typeof partial_json !== 'string' || partial_json === '' || !call) return [];
    call.has_arguments = true;
    return [{ type: 'tool_arguments', index: call.index, json: partial_json }];
  }

  /** A call without arguments sends none; the other style wants an object. */
  #readStop({ index = null }: JsonObject): ChatEvent[] {
    const call = this.#calls.get(index);
    if (!call || call.has_arguments) return [];
    call.has_arguments = true;
    return [{ type: 'tool_arguments', index: call.index, json: '{}' }];
  }

  #readMessageDelta({ delta, usage: fields }: JsonObject): ChatEvent[] {
    const usage = readUsage('messages', fields);
    const events: ChatEvent[] = usage ? [{ type: 'usage', usage }] : [];
    if (!isObject(delta) || typeof delta['stop_reason'] !== 'string') return events;
    const { stop_reason, stop_sequence, stop_details } = delta;
    const reason = readStop(stop_reason, this.#calls.size > 0);
    events.push({ type: 'ending' });
    this.#finish = { type: 'finish', reason, ...(typeof stop_sequence === 'string' && { stop_sequence }) };
    const explanation = isObject(stop_details) ? stop_details['explanation'] : undefined;
    if (reason === 'refusal' && typeof explanation === 'string' && explanation !== '') {
      events.push({ type: 'refusal', text: explanation });
    }
    return events;
  }
}
