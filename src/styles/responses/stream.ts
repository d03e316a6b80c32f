import type { JsonObject } from '../../catalog/model.ts';
import { append } from '../../lib/append.ts';
import type { SearchResult } from '../../web-search/search.ts';
import type { ChatEvent, FinishReason, Usage, WebSearch } from '../conversation.ts';
import { imageItem } from './images.ts';
import { annotationsOf, searchItem } from './searches.ts';
import type { ChatEventWriter } from '../stream.ts';
import { writeThought } from './reasoning.ts';
import {
  callPrefix,
  idOf,
  writeContent,
  writeEnding,
  writeMessage,
  writeResponse,
  writeThoughtSignature,
  type ResponseOptions,
} from './response.ts';
import { writeToolCall } from './tools.ts';

/** The place of an item in the output, and what has come of it. */
type Item = { index: number; id: string };
type OpenItem = Item & { kind: 'text' | 'refusal' | 'thinking'; text: string };
type ToolItem = 'web_search_call' | 'image_generation_call';
type Called = Item & { call_id: string; name: string; json: string; is_function: boolean };

/**
 * Writes what happens in a stream as named events of the responses style. One message or thought is open at a
 * time; calls of tools stay open until the end, since upstreams may write several at once.
 */
export class ResponsesWriter implements ChatEventWriter {
  finish: string | undefined;
  answer: JsonObject | undefined;
  readonly #options: ResponseOptions;
  #sequence = 0;
  #output: JsonObject[] = [];
  #open_item: OpenItem | undefined;
  /** By their index among the calls. */
  readonly #calls = new Map<number, Called>();
  /** Calls of tools that the service runs, by their ids; results of searches. */
  readonly #tools = new Map<string, Item>();
  readonly #results: SearchResult[] = [];
  #reason: FinishReason = 'stop';
  #has_refusal = false;

  constructor(options: ResponseOptions) {
    this.#options = options;
  }

  /** `usage` as it is known at the moment; it is told at the end. */
  write(event: ChatEvent, usage: () => Usage | undefined): string {
    switch (event.type) {
      case 'start':
        return this.#start();
      case 'text':
      case 'refusal':
      case 'thinking':
        return this.#say(event.type, event.text);
      case 'signature':
        return this.#closeThought(event.signature);
      case 'redacted_thinking':
        return this.#close() + this.#whole((id) => writeThought({ type: 'redacted_thinking', data: event.data }, id));
      case 'tool_call':
        return this.#call(event);
      case 'tool_arguments':
        return this.#arguments(event.index, event.json);
      case 'web_search_begun':
        return this.#close() + this.#beginSearch(event.id, event.query);
      case 'web_search':
        return this.#endSearch(event);
      case 'image_begun':
        return (
          this.#close() +
          this.#beginTool('image_generation_call', event.id, 'generating', (id) =>
            imageItem(id, { prompt: event.prompt }, 'in_progress'),
          )
        );
      case 'made_image':
        return this.#endTool('image_generation_call', event.id, (id) => imageItem(id, event));
      case 'finish':
        this.#reason = event.reason;
        return '';
      case 'end':
        return this.#end(usage());
      case 'ping':
        return ': keep-alive\n\n';
      default:
        return '';
    }
  }

  #start(): string {
    const response = writeResponse(this.#options, { status: 'in_progress', output: [] });
    return this.#event('response.created', { response }) + this.#event('response.in_progress', { response });
  }

  #say(kind: OpenItem['kind'], text: string): string {
    let events = '';
    if (this.#open_item?.kind !== kind) events += this.#close() + this.#open(kind);
    const open_item = this.#open_item;
    if (!open_item) return events;
    open_item.text += text;
    const { name, place } = wordsOf(open_item);
    return events + this.#event(`response.${name}.delta`, { ...place, delta: text, ...logprobsOf(open_item) });
  }

  #open(kind: OpenItem['kind']): string {
    const index = this.#output.length;
    const id = idOf(kind === 'thinking' ? 'rs' : 'msg', this.#options.request_id, index);
    this.#open_item = { kind, index, id, text: '' };
    if (kind === 'refusal') this.#has_refusal = true;
    const item = kind === 'thinking' ? { id, type: 'reasoning', summary: [] } : writeMessage(id, [], 'in_progress');
    this.#output.push(item);
    const { place, part_name } = wordsOf(this.#open_item);
    const added = this.#event('response.output_item.added', { output_index: index, item });
    return added + this.#event(`response.${part_name}.added`, { ...place, part: partOf(this.#open_item) });
  }

  /** Ends the message or the thought that is open. */
  #close(signature?: string): string {
    const open_item = this.#open_item;
    if (!open_item) return '';
    this.#open_item = undefined;
    const { name, field, place, part_name } = wordsOf(open_item);
    const cited = this.#annotate(open_item, place);
    const done = this.#event(`response.${name}.done`, { ...place, [field]: open_item.text, ...logprobsOf(open_item) });
    const part = partOf(open_item, this.#results);
    const part_done = this.#event(`response.${part_name}.done`, { ...place, part });
    const thought = { type: 'thinking' as const, text: open_item.text, ...(signature !== undefined && { signature }) };
    const item =
      open_item.kind === 'thinking'
        ? writeThought(thought, open_item.id)
        : writeMessage(open_item.id, [part], 'completed');
    return cited + done + part_done + this.#itemDone(open_item.index, item);
  }

  #annotate({ kind, text }: OpenItem, place: JsonObject): string {
    if (kind !== 'text') return '';
    return annotationsOf(text, this.#results)
      .map((annotation, annotation_index) =>
        this.#event('response.output_text.annotation.added', { ...place, annotation_index, annotation }),
      )
      .join('');
  }

  #beginSearch(search_id: string, query: string): string {
    const write = (id: string) => searchItem(id, { query, results: [] }, 'in_progress');
    return this.#beginTool('web_search_call', search_id, 'searching', write);
  }

  #endSearch(search: WebSearch): string {
    append(this.#results, search.results);
    return this.#endTool('web_search_call', search.id, (id) => searchItem(id, search));
  }

  /** An item of a tool that the service runs, and the events of its states. */
  #beginTool(type: ToolItem, call_id: string, working: string, write: (id: string) => JsonObject): string {
    const index = this.#output.length;
    const id = idOf(type === 'web_search_call' ? 'ws' : 'ig', this.#options.request_id, index);
    this.#tools.set(call_id, { index, id });
    const item = write(id);
    this.#output.push(item);
    const place = { item_id: id, output_index: index };
    return (
      this.#event('response.output_item.added', { output_index: index, item }) +
      this.#event(`response.${type}.in_progress`, place) +
      this.#event(`response.${type}.${working}`, place)
    );
  }

  #endTool(type: ToolItem, call_id: string, write: (id: string) => JsonObject): string {
    const begun = this.#tools.get(call_id);
    if (!begun) return '';
    const { id, index } = begun;
    const completed = this.#event(`response.${type}.completed`, { item_id: id, output_index: index });
    return completed + this.#itemDone(index, write(id));
  }

  /** A signature may come without a text that was signed. */
  #closeThought(signature: string): string {
    if (this.#open_item?.kind === 'thinking') return this.#close(signature);
    return this.#close() + this.#whole((id) => writeThought({ type: 'thinking', text: '', signature }, id));
  }

  /** An item of reasoning that comes at once. */
  #whole(write: (id: string) => JsonObject): string {
    const index = this.#output.length;
    const item = write(idOf('rs', this.#options.request_id, index));
    this.#output.push(item);
    return this.#event('response.output_item.added', { output_index: index, item }) + this.#itemDone(index, item);
  }

  #call({ index: number, id: call_id, name, thought_signature }: ChatEvent & { type: 'tool_call' }): string {
    let events = this.#close();
    if (thought_signature !== undefined)
      events += this.#whole((id) => writeThoughtSignature(call_id, thought_signature, id));
    const index = this.#output.length;
    const begun = beginning({ call_id, name, arguments: '' }, this.#options);
    const id = idOf(callPrefix(begun), this.#options.request_id, index);
    this.#calls.set(number, { index, id, call_id, name, json: '', is_function: begun['type'] === 'function_call' });
    const item = { id, status: 'in_progress', ...begun };
    this.#output.push(item);
    return events + this.#event('response.output_item.added', { output_index: index, item });
  }

  #arguments(number: number, json: string): string {
    const call = this.#calls.get(number);
    if (!call) return '';
    call.json += json;
    if (!call.is_function) return ''; // its text is known at the end
    const place = { item_id: call.id, output_index: call.index };
    return this.#event('response.function_call_arguments.delta', { ...place, delta: json });
  }

  #end(usage: Usage | undefined): string {
    const ending = writeEnding(this.#reason, this.#has_refusal);
    const status = ending.status === 'completed' ? 'completed' : 'incomplete';
    const closed = this.#close() + [...this.#calls.values()].map((call) => this.#endCall(call, status)).join('');
    this.finish = ending.incomplete_reason ?? ending.status;
    const response = writeResponse(this.#options, { ...ending, output: this.#output, ...(usage && { usage }) });
    this.answer = response;
    return closed + this.#event(`response.${ending.status}`, { response });
  }

  #endCall({ index, id, call_id, name, json }: Called, status: string): string {
    const item = writeToolCall({ call_id, name, arguments: json }, this.#options.tools);
    const place = { item_id: id, output_index: index };
    const { type, name: own_name = null, arguments: text = '', input = '' } = item;
    let done = '';
    if (type === 'function_call')
      done = this.#event('response.function_call_arguments.done', { ...place, name: own_name, arguments: text });
    else if (type === 'custom_tool_call')
      done =
        this.#event('response.custom_tool_call_input.delta', { ...place, delta: input }) +
        this.#event('response.custom_tool_call_input.done', { ...place, input });
    return done + this.#itemDone(index, { id, status, ...item });
  }

  #itemDone(index: number, item: JsonObject): string {
    this.#output[index] = item;
    return this.#event('response.output_item.done', { output_index: index, item });
  }

  #event(type: string, fields: JsonObject): string {
    return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: this.#sequence++, ...fields })}\n\n`;
  }
}

/** A call of a function that has no arguments yet. */
function beginning(call: Parameters<typeof writeToolCall>[0], { tools }: ResponseOptions): JsonObject {
  const item = writeToolCall(call, tools);
  return item['type'] === 'function_call' ? { ...item, arguments: '' } : item;
}

type Words = { name: string; field: string; part_name: string; place: JsonObject };

/** Names and positions in the events of a text. */
function wordsOf({ kind, id, index }: OpenItem): Words {
  const item = { item_id: id, output_index: index };
  if (kind === 'thinking') {
    const place = { ...item, summary_index: 0 };
    return { name: 'reasoning_summary_text', field: 'text', part_name: 'reasoning_summary_part', place };
  }
  const place = { ...item, content_index: 0 };
  if (kind === 'refusal') return { name: 'refusal', field: 'refusal', part_name: 'content_part', place };
  return { name: 'output_text', field: 'text', part_name: 'content_part', place };
}

function partOf({ kind, text }: OpenItem, results?: readonly SearchResult[]): JsonObject {
  return kind === 'thinking' ? { type: 'summary_text', text } : writeContent({ type: kind, text }, results);
}

function logprobsOf({ kind }: OpenItem): JsonObject {
  return kind === 'text' ? { logprobs: [] } : {};
}
