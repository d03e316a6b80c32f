import type { Json, JsonObject } from '../../catalog/model.ts';
import type { SseFrame } from '../../net/sse.ts';
import { safeId } from '../calls.ts';
import type { AnswerOptions } from '../codec.ts';
import type { ChatAnswer, ChatEvent, Usage } from '../conversation.ts';
import { isObject } from '../fields.ts';
import { signatureOf } from '../thought-signatures.ts';
import { cut, empty, errorEventOf, objectOf, start, type ChatEventReader, type ChatEventWriter } from '../stream.ts';
import { JsonEnd } from './json-end.ts';
import { messageHead, readStop, writeEnd, writeStop } from './response.ts';
import { append } from '../../lib/append.ts';
import type { SearchResult } from '../../web-search/search.ts';
import { resultBlock, searchBlock, writeCitations } from './searches.ts';
import { no_usage } from '../usage.ts';
import { readStartUsage, usage_format, writeDeltaUsage, writeUsage } from './usage.ts';

/** Reads a stream of named events. */
export class MessagesReader implements ChatEventReader {
  /** Index of a block → index of its tool call. */
  readonly #calls = new Map<Json, { index: number; has_arguments: boolean }>();
  #finish: ChatEvent | undefined;
  #usage: Partial<Usage> | undefined;
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
    return [start(message['id']), ...this.#readUsage(readStartUsage(message['usage']))];
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

  /** Kinds of tokens come in several events, and each event has what came so far. */
  #readUsage(usage: Partial<Usage> | undefined): ChatEvent[] {
    if (!usage) return [];
    this.#usage = { ...this.#usage, ...usage };
    return [{ type: 'usage', usage: this.#usage }];
  }

  #readMessageDelta({ delta, usage: fields }: JsonObject): ChatEvent[] {
    const events = this.#readUsage(usage_format.read(fields));
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

type MessagesWriterOptions = Pick<AnswerOptions, 'model' | 'request_id'>;

type Block = {
  kind: 'text' | 'thinking' | 'whole' | 'tool';
  /** The block at its start. */
  content_block: JsonObject;
  /** Deltas that came while it waited. */
  deltas: JsonObject[];
  /** Which call of a tool, and its arguments so far. */
  index?: number;
  json: string;
  end: JsonEnd;
  /** Nothing may be added: it has its signature. */
  is_signed?: boolean;
  /** The text after a search, for its citations. */
  text: string;
};

/** One block at a time is open. What comes while the arguments of a call still run waits behind it. */
export class MessagesWriter implements ChatEventWriter {
  finish: string | undefined;
  readonly #options: MessagesWriterOptions;
  #blocks = 0;
  #open: Block | undefined;
  /** Those after the first `#begun`: to take each from the front would move all others. */
  #waiting: Block[] = [];
  #begun = 0;
  /** Calls that are not over, by their index. */
  readonly #calls = new Map<number, Block>();
  #finished: ChatAnswer['finish'] = { reason: 'stop' };
  #has_calls = false;
  readonly #results: SearchResult[] = [];

  constructor(options: MessagesWriterOptions) {
    this.#options = options;
  }

  write(event: ChatEvent, usage: () => Usage): string {
    switch (event.type) {
      case 'start':
        return this.#start(usage);
      case 'text':
      case 'refusal':
        return this.#say(newText(), { type: 'text_delta', text: event.text });
      case 'thinking':
        return this.#say(newThinking(), { type: 'thinking_delta', thinking: event.text });
      case 'signature':
        return this.#sign(event.signature);
      case 'redacted_thinking':
        return this.#add(newBlock('whole', { type: 'redacted_thinking', data: event.data }));
      case 'tool_call':
        this.#has_calls = true;
        return this.#signCall(event) + this.#add(this.#newCall(event));
      case 'tool_arguments':
        return this.#arguments(event.index, event.json);
      case 'web_search_begun':
        return this.#add(newSearch(event.id, event.query));
      case 'web_search':
        append(this.#results, event.results);
        return this.#add(newBlock('whole', resultBlock(event)));
      case 'finish':
        this.#finished = event;
        return '';
      case 'end':
        return this.#end(usage);
      case 'ping':
        return frame('ping', { type: 'ping' });
      default:
        return '';
    }
  }

  #start(usage: () => Usage): string {
    const { input_tokens } = usage();
    // Some callers add these output tokens to those of the end, which are all of them.
    const { model, request_id } = this.#options;
    const message = { ...messageHead(model, request_id), usage: writeUsage({ ...no_usage, input_tokens }) };
    return frame('message_start', { type: 'message_start', message });
  }

  /** Goes on with the last block, or begins this one. */
  #say(block: Block, delta: JsonObject): string {
    const last = this.#waiting.at(-1) ?? this.#open;
    const goes_on = last?.kind === block.kind && last.is_signed !== true;
    if (this.#results.length > 0) (goes_on ? last : block).text += textIn(delta);
    if (!goes_on) {
      block.deltas.push(delta);
      return this.#add(block);
    }
    if (last === this.#open) return this.#delta(delta);
    last.deltas.push(delta);
    return '';
  }

  #sign(signature: string): string {
    const text = this.#say(newThinking(), { type: 'signature_delta', signature });
    const last = this.#waiting.at(-1) ?? this.#open;
    if (last) last.is_signed = true;
    return text;
  }

  /** The thought signature of a call comes before it, in the signature of what was thought. */
  #signCall({ id, thought_signature }: ChatEvent & { type: 'tool_call' }): string {
    return thought_signature === undefined ? '' : this.#sign(signatureOf(safeId(id), thought_signature));
  }

  #arguments(index: number, json: string): string {
    const block = this.#calls.get(index);
    if (!block) return ''; // of a call that is over: no JSON goes on after its end
    block.json += json;
    block.end.push(json);
    if (block === this.#open) return this.#delta(argumentsDelta(json)) + this.#advance();
    block.deltas = [argumentsDelta(block.json)];
    return '';
  }

  #newCall({ index, id, name }: ChatEvent & { type: 'tool_call' }): Block {
    const block: Block = { ...newBlock('tool', { type: 'tool_use', id: safeId(id), name, input: {} }), index };
    this.#calls.set(index, block);
    return block;
  }

  #add(block: Block): string {
    this.#waiting.push(block);
    return this.#advance();
  }

  /** Begins the blocks that need not wait any more; at the end, all. */
  #advance(is_end = false): string {
    let text = '';
    let next = this.#waiting[this.#begun];
    while (next && (is_end || !this.#open || isOver(this.#open))) {
      text += this.#close() + this.#begin(next);
      this.#begun += 1;
      next = this.#waiting[this.#begun];
    }
    if (!next) [this.#waiting, this.#begun] = [[], 0];
    return text;
  }

  #end(usage: () => Usage): string {
    const closed = this.#advance(true) + this.#close();
    this.finish = writeStop(this.#finished.reason, this.#has_calls);
    const delta = writeEnd(this.#finished, this.#has_calls);
    const last = frame('message_delta', { type: 'message_delta', delta, usage: writeDeltaUsage(usage()) });
    return closed + last + frame('message_stop', { type: 'message_stop' });
  }

  #begin(block: Block): string {
    this.#open = block;
    const { content_block, deltas } = block;
    const begin = frame('content_block_start', { type: 'content_block_start', index: this.#blocks, content_block });
    return begin + deltas.map((delta) => this.#delta(delta)).join('');
  }

  #close(): string {
    if (!this.#open) return '';
    if (this.#open.index !== undefined) this.#calls.delete(this.#open.index);
    const { kind, text } = this.#open;
    const citations = kind === 'text' ? writeCitations(text, this.#results) : [];
    const cited = citations.map((citation) => this.#delta({ type: 'citations_delta', citation })).join('');
    this.#open = undefined;
    return cited + frame('content_block_stop', { type: 'content_block_stop', index: this.#blocks++ });
  }

  #delta(delta: JsonObject): string {
    return frame('content_block_delta', { type: 'content_block_delta', index: this.#blocks, delta });
  }
}

function newBlock(kind: Block['kind'], content_block: JsonObject): Block {
  return { kind, content_block, deltas: [], json: '', end: new JsonEnd(), text: '' };
}

/** The call of a search: its input comes as deltas, as that of every call. */
function newSearch(id: string, query: string): Block {
  const { input = null, ...block } = searchBlock(id, query);
  return { ...newBlock('whole', { ...block, input: {} }), deltas: [argumentsDelta(JSON.stringify(input))] };
}

function textIn({ text }: JsonObject): string {
  return typeof text === 'string' ? text : '';
}

function newText(): Block {
  return newBlock('text', { type: 'text', text: '' });
}

function newThinking(): Block {
  return newBlock('thinking', { type: 'thinking', thinking: '', signature: '' });
}

function argumentsDelta(partial_json: string): JsonObject {
  return { type: 'input_json_delta', partial_json };
}

/** A call whose arguments are a whole JSON text is over. */
function isOver({ kind, end }: Block): boolean {
  return kind !== 'tool' || end.is_whole;
}

function frame(event: string, data: object): string {
  return `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
}
