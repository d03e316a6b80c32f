import { Chat } from './chat.ts';
import { Calls } from './calls.ts';
import { Cursor, type Page } from './cursor.ts';
import { downloadBlob, downloadFile, downloadStream, type Downloadable } from './download.ts';
import { MedleyError } from './errors.ts';
import { FeedbackCalls } from './feedback.ts';
import { Files } from './files.ts';
import { Http, readJson, segment, type CallOptions, type Fetch } from './http.ts';
import type { InputOf, ModelId } from './inputs.ts';
import { Tasks, type GenerateOptions, type SucceededTask } from './tasks.ts';
import type {
  Balance,
  Estimate,
  Key,
  ListModelsQuery,
  ListTransactionsQuery,
  Model,
  Transaction,
  Usage,
  UsageQuery,
  Refusals,
  RefusalsQuery,
} from './types.ts';
import { WebhookEndpoints } from './webhook-endpoints.ts';

export type MedleyOptions = {
  /** The address of the service, without `/v1`. In Node, MEDLEY_URL unless set. */
  base_url?: string | undefined;
  /** In Node, MEDLEY_API_KEY unless set. */
  api_key?: string | undefined;
  /** Makes the requests instead of the global one: for a proxy, or a log. */
  fetch?: Fetch | undefined;
  /** Further attempts of a request after the first; 3 unless set. */
  max_retries?: number | undefined;
  /**
   * Milliseconds for one attempt; 60,000 unless set, 600,000 for a whole answer of chat. What the service is asked to wait
   * comes on top.
   */
  timeout_ms?: number | undefined;
};

/** A service and an API key. */
export class Medley {
  readonly tasks: Tasks;
  readonly calls: Calls;
  readonly files: Files;
  readonly models: Models;
  readonly feedback: FeedbackCalls;
  readonly chat: Chat;
  readonly webhook_endpoints: WebhookEndpoints;
  readonly #http: Http;

  constructor(options: MedleyOptions = {}) {
    const { max_retries = 3, timeout_ms } = options;
    if (!Number.isInteger(max_retries) || max_retries < 0) throw new MedleyError('max_retries must be 0 or more.');
    if (timeout_ms !== undefined && !(timeout_ms > 0 && timeout_ms < 2 ** 31))
      throw new MedleyError('timeout_ms must be more than 0.');
    this.#http = new Http({
      base_url: readAddress(options.base_url ?? environment('MEDLEY_URL')),
      api_key: readKey(options.api_key ?? environment('MEDLEY_API_KEY')),
      fetch: options.fetch ?? ((url, init) => fetch(url, init)),
      max_retries,
      timeout_ms,
    });
    this.tasks = new Tasks(this.#http);
    this.calls = new Calls(this.#http);
    this.files = new Files(this.#http);
    this.models = new Models(this.#http);
    this.feedback = new FeedbackCalls(this.#http);
    this.chat = new Chat(this.#http);
    this.webhook_endpoints = new WebhookEndpoints(this.#http);
  }

  /**
   * Creates a task, waits for its end, and returns it: the files are in `output`. Throws TaskFailedError if the task
   * fails, ApiError if it is not accepted, WaitTimeoutError after `wait` seconds.
   */
  generate<Id extends ModelId>(model: Id, input: InputOf<Id>, options: GenerateOptions = {}): Promise<SucceededTask> {
    return this.tasks.generate(model, input, options);
  }

  /** Returns what a task would cost. Nothing is held. */
  estimate<Id extends ModelId>(model: Id, input: InputOf<Id>, options: CallOptions = {}): Promise<Estimate> {
    const text = JSON.stringify({ model, input });
    const headers = { 'content-type': 'application/json' };
    const request = { method: 'POST', path: '/v1/estimate', headers, body: () => text, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<Estimate>);
  }

  balance(options: CallOptions = {}): Promise<Balance> {
    return this.#http.send({ method: 'GET', path: '/v1/balance', is_repeatable: true }, options, readJson<Balance>);
  }

  /** Lists movements of money, newest first. */
  transactions(query: Omit<ListTransactionsQuery, 'before'> = {}, options: CallOptions = {}): Cursor<Transaction> {
    const load = (after: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/balance/transactions', query: { ...query, after }, is_repeatable: true },
        options,
        readJson<Page<Transaction>>,
      );
    return new Cursor(load, query.after);
  }

  usage(query: UsageQuery = {}, options: CallOptions = {}): Promise<Usage> {
    const request = { method: 'GET', path: '/v1/usage', query: { ...query }, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<Usage>);
  }

  /** Returns how many requests were refused before any work, by default those of the last 24 hours by reason. */
  refusals(query: RefusalsQuery = {}, options: CallOptions = {}): Promise<Refusals> {
    const request = { method: 'GET', path: '/v1/usage/refusals', query: { ...query }, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<Refusals>);
  }

  /** Returns the limits and the use of this API key. */
  key(options: CallOptions = {}): Promise<Key> {
    return this.#http.send({ method: 'GET', path: '/v1/key', is_repeatable: true }, options, readJson<Key>);
  }

  /** Returns the bytes of an output. */
  download(output: Downloadable, options: CallOptions = {}): Promise<Blob> {
    return downloadBlob(this.#http, output, options);
  }

  /** Writes an output to a file, which is there only when it is complete. Node only. */
  downloadTo(output: Downloadable, path: string, options: CallOptions = {}): Promise<void> {
    return downloadFile(this.#http, output, path, options);
  }

  /** Returns the bytes of an output while they come. */
  downloadStream(output: Downloadable, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return downloadStream(this.#http, output, options);
  }
}

class Models {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Returns a model with its `input_schema` and its prices. */
  async get(id: string, options: CallOptions = {}): Promise<Model> {
    const request = { method: 'GET', path: `/v1/models/${segment(id)}`, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<Model>);
  }

  list(query: Omit<ListModelsQuery, 'before_id'> = {}, options: CallOptions = {}): Cursor<Model> {
    const load = (after_id: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/models', query: { ...query, after_id }, is_repeatable: true },
        options,
        readJson<Page<Model>>,
      );
    return new Cursor(load, query.after_id);
  }
}

export type { Models };

function environment(name: string): string | undefined {
  return typeof process === 'undefined' ? undefined : process.env?.[name];
}

/** `/v1` at its end belongs to other SDKs. */
function readAddress(text: string | undefined): string {
  if (text === undefined || text === '')
    throw new MedleyError('Set base_url, or MEDLEY_URL, to the address of the service.');
  const address = text.replace(/\/+$/, '').replace(/\/v1$/, '');
  if (!/^https?:\/\/[^/?#@]+(\/[^?#]*)?$/.test(address)) {
    throw new MedleyError('base_url must begin with http:// or https:// and have no credentials, query or fragment.');
  }
  return address;
}

/** The key itself is in no message: it would be in a log. */
function readKey(text: string | undefined): string {
  const key = text?.trim() ?? '';
  if (key === '') throw new MedleyError('Set api_key, or MEDLEY_API_KEY, to an API key.');
  if (!/^[\x21-\x7e]+$/.test(key)) throw new MedleyError('api_key has characters that no API key has.');
  return key;
}
