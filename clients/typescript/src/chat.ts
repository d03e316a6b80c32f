import { answerOf, costIn, parseBody } from './chat-answer.ts';
import { ChatStream } from './chat-stream.ts';
import type { ChatAnswer, ChatRecord, ChatRequest } from './chat-types.ts';
import { readJson, segment, type CallOptions, type Http, type HttpRequest } from './http.ts';

/** A model may think for minutes before it answers. */
const answer_timeout_ms = 600_000;

/** Calls of chat models, in the chat-completions style. A call costs money each time: a lost answer is not asked for again. */
export class Chat {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Returns the whole answer. Throws ApiError; or ConnectionError, behind which the call may go on and cost money. */
  create(request: ChatRequest, options: CallOptions = {}): Promise<ChatAnswer> {
    return this.#http.send(callOf({ ...request, stream: false }), options, async (response) => {
      const { headers } = response;
      return answerOf(parseBody(await response.text()), { headers, cost: costIn(headers) });
    });
  }

  /**
   * Returns an answer that comes in parts. Nothing is sent before it is read. `timeout_ms` is the longest silence.
   * Leaving the loop leaves the call: what has come is charged.
   */
  stream(request: ChatRequest, options: CallOptions = {}): ChatStream {
    const call = callOf({ stream_options: { include_usage: true }, ...request, stream: true });
    return new ChatStream(this.#http, call, options, (request_id) => this.get(request_id, { max_retries: 0 }));
  }

  /** Returns what a call came to. It is there a moment after the end of the call; until then, NotFoundError. */
  async get(request_id: string, options: CallOptions = {}): Promise<ChatRecord> {
    const request = { method: 'GET', path: `/v1/chat/${segment(request_id)}`, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<ChatRecord>);
  }
}

function callOf(parameters: Record<string, unknown>): HttpRequest {
  const text = JSON.stringify(parameters);
  return {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json' },
    body: () => text,
    is_repeatable: false,
    repeats_errors: true,
    ...(parameters['stream'] === false && { usual_timeout_ms: answer_timeout_ms }),
  };
}
