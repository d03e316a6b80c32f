import type { JsonObject } from '../catalog/model.ts';
import { answerId } from './answer-id.ts';
import { safeId } from './calls.ts';
import { writeFinish } from './completions/response.ts';
import type { CallerStyle, ChatEvent, FinishReason, Usage } from './conversation.ts';
import { writeStop } from './messages/response.ts';
import { JsonEnd } from './messages/json-end.ts';
import type { RelayOptions } from './relay.ts';
import { ResponsesWriter } from './responses/stream-writer.ts';
import { signatureOf, writeExtraContent } from './seal.ts';
import type { TextSize } from './text-size.ts';
import { chargedUsage, writeUsage } from './usage.ts';

/** Writes what happens in a stream in the caller's style. */
export type StreamWriter = {
  /** The bytes of an event; empty where the style has no word for it, or says it later. */
  write(event: ChatEvent, known: Known): string;
  /** Why it ended, once it has. */
  readonly finish: string | undefined;
};

/** What is known of the stream at the moment. */
type Known = { usage: Partial<Usage> | undefined; delivered: TextSize };

type WriterOptions = Pick<
  RelayOptions,
  | 'model'
  | 'request_id'
  | 'created'
  | 'wants_usage'
  | 'input_tokens_estimated'
  | 'writes_for_an_hour'
  | 'legacy_functions'
  | 'echo'
>;

export function makeWriter(style: CallerStyle, options: WriterOptions): StreamWriter {
  switch (style) {
    case 'completions':
      return new CompletionsWriter(options);
    case 'messages':
      return new MessagesWriter(options);
    case 'responses': {
      const writer = new ResponsesWriter({ ...options, echo: options.echo ?? {} });
      return {
        write: (event, known) => writer.write(event, () => usageOf(known, options)),
        get finish() {
          return writer.finish;
        },
      };
    }
  }
}

/** The upstream's own count, or ours where it tells none. */
function usageOf({ usage, delivered }: Known, options: WriterOptions): Usage {
  const { input_tokens_estimated: input_tokens_counted, writes_for_an_hour } = options;
  return chargedUsage(usage, delivered, { input_tokens_counted, writes_for_an_hour }).usage;
}

class CompletionsWriter implements StreamWriter {
  finish: string | undefined;
  readonly #options: WriterOptions;
  readonly #id: string;
  #reason: FinishReason = 'stop';
  #has_calls = false;
  #thought = '';
  #details = 0;

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#id = answerId('completions', options.request_id);
  }

  write(event: ChatEvent, known: Known): string {
    switch (event.type) {
      case 'start':
        return this.#delta({ role: 'assistant', content: '' });
      case 'text':
        return this.#delta({ content: event.text });
      case 'refusal':
        return this.#delta({ refusal: event.text });
      case 'thinking':
        this.#thought += event.text;
        return this.#delta({ reasoning_content: event.text });
      case 'signature':
        return this.#detail({ type: 'reasoning.text', text: this.#thought, signature: event.signature });
      case 'redacted_thinking':
        return this.#detail({ type: 'reasoning.encrypted', data: event.data });
      case 'text_seal':
        return this.#delta(writeExtraContent(event.seal));
      case 'tool_call':
        return this.#call(event);
      case 'tool_arguments':
        return this.#arguments(event.index, event.json);
      case 'finish':
        this.#reason = event.reason;
        return '';
      case 'end':
        return this.#end(known);
      case 'ping':
        return ': keep-alive\n\n';
      default:
        return '';
    }
  }

  #call({ index, id, name, seal }: ChatEvent & { type: 'tool_call' }): string {
    this.#has_calls = true;
    if (this.#options.legacy_functions)
      return index === 0 ? this.#delta({ function_call: { name, arguments: '' } }) : '';
    const called = { name, arguments: '' };
    return this.#delta({ tool_calls: [{ index, id, type: 'function', function: called, ...writeExtraContent(seal) }] });
  }

  #arguments(index: number, json: string): string {
    if (this.#options.legacy_functions) return index === 0 ? this.#delta({ function_call: { arguments: json } }) : '';
    return this.#delta({ tool_calls: [{ index, function: { arguments: json } }] });
  }

  /** A block of thinking with its seal, for callers that give it back. */
  #detail(detail: JsonObject): string {
    this.#thought = '';
    const format = 'anthropic-claude-v1';
    return this.#delta({ reasoning_details: [{ ...detail, format, index: this.#details++ }] });
  }

  #end(known: Known): string {
    this.finish = writeFinish(this.#reason, this.#has_calls, this.#options.legacy_functions ?? false);
    const last = this.#chunk([{ index: 0, delta: {}, logprobs: null, finish_reason: this.finish }]);
    if (!this.#options.wants_usage) return `${last}data: [DONE]\n\n`;
    const usage = writeUsage('completions', usageOf(known, this.#options));
    return `${last}${this.#chunk([], usage)}data: [DONE]\n\n`;
  }

  #delta(delta: JsonObject): string {
    return this.#chunk([{ index: 0, delta, logprobs: null, finish_reason: null }]);
  }

  #chunk(choices: JsonObject[], usage: JsonObject | null = null): string {
    const { created, model, wants_usage } = this.#options;
    const head = { id: this.#id, object: 'chat.completion.chunk', created, model };
    return `data: ${JSON.stringify({ ...head, choices, ...(wants_usage && { usage }) })}\n\n`;
  }
}

type Block = {
  kind: 'text' | 'thinking' | 'whole' | 'tool';
  /** How it starts. */
  content_block: JsonObject;
  /** What came while it waited. */
  deltas: JsonObject[];
  /** Which call of a tool, and its arguments so far. */
  index?: number;
  json: string;
  end: JsonEnd;
  /** Nothing may be added: it has its signature. */
  is_sealed?: boolean;
};

/** One block at a time is open. What comes while the arguments of a call still run waits behind it. */
class MessagesWriter implements StreamWriter {
  finish: string | undefined;
  readonly #options: WriterOptions;
  #blocks = 0;
  #open: Block | undefined;
  /** Those behind the first `#begun`: to take each from the front would move all others. */
  #waiting: Block[] = [];
  #begun = 0;
  /** Calls that are not over, by their index. */
  readonly #calls = new Map<number, Block>();
  #ended: FinishReason = 'stop';
  #stop_sequence: string | null = null;
  #has_calls = false;

  constructor(options: WriterOptions) {
    this.#options = options;
  }

  write(event: ChatEvent, known: Known): string {
    switch (event.type) {
      case 'start':
        return this.#start(known);
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
        return this.#seal(event) + this.#add(this.#newCall(event));
      case 'tool_arguments':
        return this.#arguments(event.index, event.json);
      case 'finish':
        this.#ended = event.reason;
        this.#stop_sequence = event.stop_sequence ?? null;
        return '';
      case 'end':
        return this.#end(known);
      case 'ping':
        return frame('ping', { type: 'ping' });
      default:
        return '';
    }
  }

  #start({ usage }: Known): string {
    const input_tokens = usage?.input_tokens ?? this.#options.input_tokens_estimated;
    // Some callers add these output tokens to those of the end, which are all of them.
    const message = {
      id: answerId('messages', this.#options.request_id),
      type: 'message',
      role: 'assistant',
      model: this.#options.model,
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 0 },
    };
    return frame('message_start', { type: 'message_start', message });
  }

  /** Goes on with the last block, or begins this one. */
  #say(block: Block, delta: JsonObject): string {
    const last = this.#waiting.at(-1) ?? this.#open;
    if (last?.kind !== block.kind || last.is_sealed === true) {
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
    if (last) last.is_sealed = true;
    return text;
  }

  /** The seal of a call comes before it, in the signature of what was thought. */
  #seal({ id, seal }: ChatEvent & { type: 'tool_call' }): string {
    return seal === undefined ? '' : this.#sign(signatureOf(safeId(id), seal));
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

  #end(known: Known): string {
    const closed = this.#advance(true) + this.#close();
    this.finish = writeStop(this.#ended, this.#has_calls);
    const delta = { stop_reason: this.finish, stop_sequence: this.#stop_sequence };
    const usage = writeUsage('messages', usageOf(known, this.#options));
    const last = frame('message_delta', { type: 'message_delta', delta, usage });
    return closed + last + frame('message_stop', { type: 'message_stop' });
  }

  #begin(block: Block): string {
    this.#open = block;
    const { content_block, deltas } = block;
    const start = frame('content_block_start', { type: 'content_block_start', index: this.#blocks, content_block });
    return start + deltas.map((delta) => this.#delta(delta)).join('');
  }

  #close(): string {
    if (!this.#open) return '';
    if (this.#open.index !== undefined) this.#calls.delete(this.#open.index);
    this.#open = undefined;
    return frame('content_block_stop', { type: 'content_block_stop', index: this.#blocks++ });
  }

  #delta(delta: JsonObject): string {
    return frame('content_block_delta', { type: 'content_block_delta', index: this.#blocks, delta });
  }
}

function newBlock(kind: Block['kind'], content_block: JsonObject): Block {
  return { kind, content_block, deltas: [], json: '', end: new JsonEnd() };
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
