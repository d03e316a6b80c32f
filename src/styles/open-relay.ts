import { SseSplitter, type SseFrame } from '../net/sse.ts';
import type { CallStyle, ChatEvent } from './conversation.ts';
import { makeReader } from './read-stream.ts';
import type { Relay, RelayOptions } from './relay.ts';
import { sameResponses } from './responses/passthrough.ts';
import { sameCompletions, sameMessages, type SameStream } from './same-stream.ts';
import { fail, newStreamState, note, type StreamState } from './stream-state.ts';
import { makeWriter } from './write-stream.ts';

export function openRelay(options: RelayOptions): Relay {
  return new StreamRelay(options);
}

/** The last event of a stream that went wrong after it had begun; nothing may follow. */
export function errorEvent(style: CallStyle, error: { type: string; message: string; request_id: string }): Buffer {
  const { type, message, request_id } = error;
  const frame = (event: object) => Buffer.from(`event: error\ndata: ${JSON.stringify(event)}\n\n`);
  if (style === 'messages') return frame({ type: 'error', error: { type, message }, request_id });
  const body = { message, type, param: null, code: null, request_id };
  // SDKs of the responses style look for the code at the top, or throw what they find in `error`.
  if (style === 'responses') return frame({ type: 'error', code: type, message, param: null, error: body });
  return Buffer.from(`data: ${JSON.stringify({ error: body })}\n\n`);
}

/** What a silent stream says between two events. */
export function heartbeat(style: CallStyle): Buffer {
  return Buffer.from(style === 'messages' ? 'event: ping\ndata: {"type":"ping"}\n\n' : ': keep-alive\n\n');
}

/** Each takes some 150 bytes beyond its own, for as long as nothing has been said. */
const held_max = 65_536;

class StreamRelay implements Relay {
  readonly #state: StreamState = newStreamState();
  readonly #splitter: SseSplitter;
  readonly #way: SameStream;
  readonly #is_translated: boolean;
  /** What came before the first content. */
  #held: Buffer[] = [];
  #held_bytes = 0;
  readonly #bytes_max: number;

  constructor(options: RelayOptions) {
    this.#bytes_max = options.line_bytes_max;
    this.#splitter = new SseSplitter(options.line_bytes_max);
    this.#is_translated = options.caller !== options.upstream;
    if (this.#is_translated) this.#way = translated(options, this.#state);
    else if (options.caller === 'completions') this.#way = sameCompletions(options, this.#state);
    else if (options.caller === 'responses') this.#way = sameResponses(options, this.#state);
    else this.#way = sameMessages(options, this.#state);
  }

  get has_begun(): boolean {
    return this.#state.has_begun || this.#state.has_content;
  }
  get has_content(): boolean {
    return this.#state.has_content;
  }
  get is_ending(): boolean {
    return this.#state.is_ending;
  }
  get reasons(): boolean {
    return this.#state.reasons;
  }
  get is_complete(): boolean {
    return this.#state.is_complete;
  }
  get failure(): Relay['failure'] {
    return this.#state.failure;
  }
  get usage(): Relay['usage'] {
    return this.#state.usage;
  }
  get delivered(): Relay['delivered'] {
    return this.#state.delivered;
  }
  get finish(): string | undefined {
    return this.#state.finish;
  }
  get upstream_id(): string | undefined {
    return this.#state.upstream_id;
  }

  push(chunk: Buffer): Buffer | undefined {
    if (this.#state.failure) return undefined;
    this.#attempt(() => {
      for (const frame of this.#splitter.push(chunk)) if (!this.#take(frame)) break;
    });
    return this.#release();
  }

  end(): Buffer | undefined {
    if (this.#state.failure) return undefined;
    const rest = this.#splitter.rest();
    // Servers that do not end their last event have said it all the same; half a JSON text was cut.
    if (rest) this.#attempt(() => void this.#take(rest));
    if (!this.#state.failure) this.#attempt(() => this.#hold(this.#way.end()));
    return this.#release();
  }

  #take(frame: SseFrame): boolean {
    // What follows the end says nothing to anybody; of the same style, empty lines and comments go on.
    if (this.#state.is_complete && (this.#is_translated || frame.data !== undefined)) return true;
    const bytes = this.#way.take(frame);
    if (this.#state.failure) return false;
    this.#hold(bytes);
    return true;
  }

  #hold(bytes: Buffer | undefined): void {
    if (!bytes || bytes.length === 0) return;
    if (!this.has_content && (this.#held.length === held_max || this.#held_bytes > this.#bytes_max))
      throw new Error(`No content has come in ${this.#held.length} events.`);
    this.#held.push(bytes);
    this.#held_bytes += bytes.length;
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      fail(this.#state, error instanceof Error ? error.message : String(error), 'malformed');
    }
  }

  /** Nothing before the first content, unless the whole of it is there and has none. */
  #release(): Buffer | undefined {
    const { has_content, is_complete } = this.#state;
    if (this.#held.length === 0 || !(has_content || is_complete)) return undefined;
    const bytes = this.#held.length === 1 ? this.#held[0] : Buffer.concat(this.#held);
    this.#held = [];
    this.#held_bytes = 0;
    return bytes;
  }
}

/** Reads events of the upstream's style and writes them in the caller's. */
function translated(options: RelayOptions, state: StreamState): SameStream {
  const reader = makeReader(options.upstream, options.request_id);
  const writer = makeWriter(options.caller, options);
  const adapt = adapter(options);
  const pass = (events: readonly ChatEvent[]) => {
    let text = '';
    for (const event of events.flatMap(adapt)) {
      note(state, event);
      if (state.failure) break;
      text += writer.write(event, state);
    }
    state.finish = writer.finish;
    return text === '' ? undefined : Buffer.from(text);
  };
  return { take: (frame) => pass(reader.read(frame)), end: () => pass(reader.end()) };
}

/** Undoes what was done to the request: a tool that stood for a schema, names that were shortened. */
function adapter({ json_tool, tool_names }: RelayOptions): (event: ChatEvent) => ChatEvent[] {
  const as_text = new Set<number>();
  return (event) => {
    switch (event.type) {
      case 'tool_call':
        if (event.name === json_tool) {
          as_text.add(event.index);
          return [];
        }
        return [{ ...event, name: tool_names?.get(event.name) ?? event.name }];
      case 'tool_arguments':
        return as_text.has(event.index) ? [{ type: 'text', text: event.json }] : [event];
      case 'finish':
        return as_text.size > 0 && event.reason === 'tool_calls' ? [{ ...event, reason: 'stop' }] : [event];
      default:
        return [event];
    }
  };
}
