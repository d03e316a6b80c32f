import type { JsonObject } from '../catalog/model.ts';
import { SseSplitter, type SseFrame } from '../net/sse.ts';
import type { AnswerOptions, ChatRequest, Codec } from './codec.ts';
import type { ChatEvent, Usage } from './conversation.ts';
import {
  chargedIn,
  fail,
  newStreamState,
  note,
  type SameStream,
  type StreamFailure,
  type StreamState,
} from './stream.ts';

/** Carries one upstream's stream to one caller, in the caller's style. One per attempt at a route. */
export type Relay = {
  /**
   * Takes bytes of the upstream as they came, cut anywhere. Answers what is to be sent to the caller now:
   * nothing before the first content, then all that was held back and more. Never throws: bytes that are
   * no stream of this style show in `failure`.
   */
  push(chunk: Buffer): Buffer | undefined;
  /**
   * The upstream's connection has ended. Answers the last bytes of a complete stream; of a cut one
   * nothing, and `failure` says so.
   */
  end(): Buffer | undefined;
  /** The model has begun to answer: from here on whatever comes is a sign of life, before that pings are none. */
  readonly has_begun: boolean;
  /** Content has come: text, thinking, a refusal or a tool call, however little. */
  readonly has_content: boolean;
  /** The upstream said why its answer ends: its usage may follow. */
  readonly is_ending: boolean;
  /** The model thinks, by what has come. */
  readonly reasons: boolean;
  /** The upstream said that it is complete. */
  readonly is_complete: boolean;
  /** The upstream's error event, or what is wrong with the stream. Nothing is sent after it. */
  readonly failure: StreamFailure | undefined;
  /** Usage reported by the upstream so far; undefined if it reported none. */
  readonly usage: Partial<Usage> | undefined;
  /** Size of the relayed text, thinking and arguments, for counting if the upstream reports no usage. */
  readonly delivered: { ascii_bytes: number; other_bytes: number };
  /** The finish reason, in the words of the caller's style; for the record of the call. */
  readonly finish: string | undefined;
  /** The upstream's id of its response; for the record of the call. */
  readonly upstream_id: string | undefined;
  /** The whole answer as the caller gets it, in a style whose last event has it. */
  readonly answer: JsonObject | undefined;
};

export type RelayOptions = AnswerOptions & {
  /** A line of the stream longer than this is a failure. */
  line_bytes_max: number;
};

/** Opens the relay of one upstream's stream to one caller. */
export function openRelay(request: ChatRequest, upstream: Codec, options: RelayOptions): Relay {
  return new StreamRelay(request, upstream, options);
}

/** Each takes some 150 bytes beyond its own, for as long as nothing has been said. */
const held_max = 65_536;

class StreamRelay implements Relay {
  readonly #state: StreamState = newStreamState();
  readonly #splitter: SseSplitter;
  readonly #way: SameStream;
  readonly #is_translated: boolean;
  /** Frames before the first content. */
  #held: Buffer[] = [];
  #held_bytes = 0;
  readonly #bytes_max: number;

  constructor(request: ChatRequest, upstream: Codec, options: RelayOptions) {
    this.#bytes_max = options.line_bytes_max;
    this.#splitter = new SseSplitter(options.line_bytes_max);
    this.#is_translated = request.style !== upstream;
    this.#way = this.#is_translated
      ? translated(request, upstream, options, this.#state)
      : request.style.caller.passthrough.openStream(
          { ...options, request, wants_usage: request.wants_usage },
          this.#state,
        );
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

  get answer(): JsonObject | undefined {
    return this.#state.answer;
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
function translated(request: ChatRequest, upstream: Codec, options: RelayOptions, state: StreamState): SameStream {
  const reader = upstream.upstream.openReader(options.request_id);
  const writer = request.style.caller.openWriter(request, options);
  const usage = () => chargedIn(state, options);
  const adapt = adapter(options);
  const pass = (events: readonly ChatEvent[]) => {
    let text = '';
    for (const event of events.flatMap(adapt)) {
      note(state, event);
      if (state.failure) break;
      text += writer.write(event, usage);
    }
    state.finish = writer.finish;
    state.answer = writer.answer;
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
