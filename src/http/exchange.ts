import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Caller } from '../accounts/authenticate.ts';
import type { Person } from '../accounts/person.ts';
import { service_errors, type ErrorFormat } from '../errors.ts';
import type { Permit } from '../concurrency/semaphore.ts';
import type { Headers } from './answer.ts';
import { no_bytes } from './body.ts';
import type { BodyStreamReader } from './body-stream.ts';
import type { Query } from './endpoint.ts';
import type { FormReader } from './form.ts';
import { absolute_form } from './routes.ts';
import type { Span } from '../tracing/tracer.ts';

const no_query: Query = new Map();

/** A request on its way through the pipeline, and its answer. */
export class Exchange {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly method: string;
  /** As it was sent, without the query. */
  readonly path: string;
  readonly query_text: string;
  readonly started_ms: number;
  format: ErrorFormat = service_errors;
  /** The path of its endpoint, with names in the place of values. */
  route?: string;
  caller?: Caller;
  person?: Person;
  /** The span of a trace that is recorded. */
  span?: Span;
  params: Record<string, string> = {};
  query: Query = no_query;
  body: Record<string, unknown> | undefined;
  body_bytes: Buffer = no_bytes;
  /** The permit for the memory of a large body. */
  memory?: Permit;
  /**
   * Number of users of a large body: the writer of the response, and the endpoint, which goes on when a caller
   * leaves.
   */
  holders = 2;
  readForm?: FormReader;
  readStream?: BodyStreamReader;
  /** Stays for the log when the body itself is not kept any more. */
  body_size_bytes = 0;
  /** Headers of every answer to this request; those of an endpoint are not among them, as an error may go out in its place. */
  readonly headers: Headers;
  readonly #isTrusted: (address: string) => boolean;

  constructor(
    request: IncomingMessage,
    response: ServerResponse,
    options: { id: string; started_ms: number; headers: Headers; isTrusted: (address: string) => boolean },
  ) {
    const url = (request.url ?? '/').replace(absolute_form, '');
    const question = url.indexOf('?');
    this.request = request;
    this.response = response;
    this.method = request.method ?? 'GET';
    this.path = question === -1 ? url : url.slice(0, question);
    this.query_text = question === -1 ? '' : url.slice(question + 1);
    this.id = options.id;
    this.started_ms = options.started_ms;
    this.headers = options.headers;
    this.#isTrusted = options.isTrusted;
  }

  /** Returns the client's address: behind trusted proxies, the one that the last of them names. */
  get address(): string {
    const { socket, headers } = this.request;
    let address = socket.remoteAddress ?? '';
    const named = String(headers['x-forwarded-for'] ?? '').split(',');
    for (const before of named.toReversed().map((name) => name.trim())) {
      if (before === '') continue;
      if (!this.#isTrusted(address)) break;
      address = before;
    }
    return address;
  }

  /** An answer that is streamed may go on for minutes, and nobody reads the request any more. */
  forgetBody(): void {
    this.body = undefined;
    this.body_bytes = no_bytes;
  }

  /** One of those who have the body in hand has done with it. */
  letGo(): void {
    this.holders -= 1;
    if (this.holders === 0) this.memory?.release();
  }
}
