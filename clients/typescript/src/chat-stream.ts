import { answerOf, ChatParts } from './chat-answer.ts';
import type { ChatAnswer, ChatChunk, ChatRecord, ChatUsage } from './chat-types.ts';
import { ConnectionError, errorOfEvent, MedleyError, NotFoundError, RequestTimeoutError } from './errors.ts';
import { pause, type CallOptions, type Http, type HttpRequest } from './http.ts';
import { fieldsOf, parse } from './json.ts';
import { EventReader } from './sse.ts';
import type { Cost } from './types.ts';

/** The connection ends right behind the answer. It can be used again if it is read to its end. */
const end_ms_max = 1_000;

/** The record of a call is written a moment after its end. */
const record_pauses_ms = [60, 120, 240, 480, 960, 1_920];

/** An answer in parts, which a loop reads once. Leaving the loop leaves the call. */
export class ChatStream implements AsyncIterable<ChatChunk> {
  readonly #http: Http;
  readonly #request: HttpRequest;
  readonly #options: CallOptions;
  readonly #getRecord: (request_id: string) => Promise<ChatRecord>;
  readonly #controller = new AbortController();
  readonly #source: AsyncGenerator<ChatChunk, void, undefined>;
  readonly #parts = new ChatParts();
  /** Parts that have come and that no loop has had. */
  readonly #unread: ChatChunk[] = [];
  #headers = new Headers();
  #is_complete = false;
  #failure: { error: unknown } | undefined;

  constructor(
    http: Http,
    request: HttpRequest,
    options: CallOptions,
    getRecord: (request_id: string) => Promise<ChatRecord>,
  ) {
    this.#http = http;
    this.#request = request;
    this.#options = options;
    this.#getRecord = getRecord;
    this.#source = this.#read();
  }

  /** Names the call for `chat.get` and `feedback.give`, once its answer has begun. */
  get request_id(): string | undefined {
    return this.#headers.get('x-request-id') ?? undefined;
  }

  /** The text that has come so far, of the first choice. */
  get text(): string {
    return this.#parts.text;
  }

  get finish_reason(): string | null {
    return this.#parts.body().choices[0]?.finish_reason ?? null;
  }

  /** The tokens, once the stream has ended. */
  get usage(): ChatUsage | undefined {
    return this.#parts.body().usage ?? undefined;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ChatChunk, void, undefined> {
    try {
      for (;;) {
        const chunk = this.#unread.shift();
        if (chunk) yield chunk;
        else if (!(await this.#pull()) && this.#unread.length === 0) return;
      }
    } finally {
      this.#leave();
    }
  }

  /** Yields the text of the first choice alone, as it comes. */
  async *texts(): AsyncGenerator<string, void, undefined> {
    for await (const { choices } of this) {
      for (const { index, delta } of choices)
        if (index === 0 && typeof delta.content === 'string' && delta.content !== '') yield delta.content;
    }
  }

  /** Reads what is left, and returns the whole answer with its cost. Throws what ended the stream before its end. */
  async final(): Promise<ChatAnswer> {
    while (await this.#pull());
    const cost = await this.cost();
    const exact_cost = cost && { exact: cost.exact, currency: cost.currency };
    return answerOf(this.#parts.body(), { headers: this.#headers, cost: exact_cost });
  }

  /** Returns what the call cost, also if it failed or was left; undefined if that is not known within seconds. */
  async cost(): Promise<Cost | undefined> {
    const { request_id } = this;
    if (request_id === undefined) return undefined;
    for (const pause_ms of record_pauses_ms) {
      await pause(pause_ms, undefined);
      try {
        return (await this.#getRecord(request_id)).cost;
      } catch (error) {
        if (!(error instanceof NotFoundError)) return undefined;
      }
    }
    return undefined;
  }

  /** Leaves the call. Whoever reads it gets the reason. */
  abort(reason?: unknown): void {
    this.#controller.abort(reason);
  }

  #leave(): void {
    if (this.#is_complete || this.#failure) return;
    this.#failure = { error: new MedleyError('The stream was left before its end.') };
    this.abort(this.#failure.error);
    this.#source.return().catch(() => undefined);
  }

  /** Reads another part; false at the end. Throws what ended the stream before its end. */
  async #pull(): Promise<boolean> {
    const { done, value } = await this.#source.next();
    if (!done) this.#unread.push(value);
    else if (!this.#is_complete) throw this.#failure?.error;
    return !done;
  }

  async *#read(): AsyncGenerator<ChatChunk, void, undefined> {
    const { signal } = this.#options;
    const onAbort = () => this.abort(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      const options = { ...this.#options, signal: this.#controller.signal };
      const body = await this.#http.send(this.#request, options, async (response) => {
        this.#headers = response.headers;
        if (!response.body) throw new ConnectionError('The answer has no body.');
        return response.body;
      });
      yield* this.#chunks(body);
    } catch (error) {
      this.#failure ??= { error };
      throw this.#failure.error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  }

  async *#chunks(body: ReadableStream<Uint8Array>): AsyncGenerator<ChatChunk, void, undefined> {
    const events = new EventReader();
    for await (const bytes of this.#bytes(body)) {
      for (const data of events.take(bytes)) {
        if (data === '[DONE]') this.#is_complete = true;
        else if (!this.#is_complete) yield this.#chunkOf(data);
      }
    }
    if (!this.#is_complete) throw new ConnectionError('The stream was cut before its end.');
  }

  #chunkOf(data: string): ChatChunk {
    this.#controller.signal.throwIfAborted();
    const event = parse(data);
    const { error } = fieldsOf(event);
    if (error) throw errorOfEvent(error, this.#headers);
    return this.#parts.add(event);
  }

  async *#bytes(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const { signal } = this.#controller;
    const reader = body.getReader();
    const leave = () => void reader.cancel().catch(() => undefined);
    signal.addEventListener('abort', leave, { once: true });
    const silence_ms = this.#http.timeoutOf(this.#request, this.#options);
    try {
      for (;;) {
        signal.throwIfAborted();
        const bytes = await nextBytes(reader, this.#is_complete ? end_ms_max : silence_ms);
        signal.throwIfAborted();
        if (!bytes) return;
        yield bytes;
      }
    } catch (error) {
      if (!this.#is_complete) throw error;
    } finally {
      signal.removeEventListener('abort', leave);
      leave();
    }
  }
}

/** Returns the next bytes; undefined at the end. Throws ConnectionError. */
async function nextBytes(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silence_ms: number,
): Promise<Uint8Array | undefined> {
  let is_late = false;
  const timer = setTimeout(() => {
    is_late = true;
    reader.cancel().catch(() => undefined);
  }, silence_ms);
  try {
    const { value } = await reader.read();
    if (is_late) throw new RequestTimeoutError(`Nothing came for ${silence_ms} ms.`);
    return value;
  } catch (error) {
    if (error instanceof MedleyError) throw error;
    throw new ConnectionError('The connection to the service failed.', { cause: error });
  } finally {
    clearTimeout(timer);
  }
}
