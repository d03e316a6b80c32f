import { Cursor, type Page } from './cursor.ts';
import { readJson, segment, type CallOptions, type Http } from './http.ts';
import type {
  ListWebhookEndpointsQuery,
  NewWebhookEndpoint,
  WebhookEndpoint,
  WebhookEndpointChange,
  WebhookEndpointFields,
  WebhookEventType,
  WebhookReplay,
  WebhookReplayRequest,
  WebhookTest,
} from './types.ts';

/** A span of events; times are ISO 8601 or a Date. */
export type ReplayOptions = CallOptions &
  Pick<WebhookReplayRequest, 'which' | 'dry_run'> & { from: string | Date; to?: string | Date | undefined };

const headers = { 'content-type': 'application/json' };

/** Addresses that get the events of the account. To change them takes a key without scopes. */
export class WebhookEndpoints {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Registers an endpoint. Its `secret` is shown only here. It is not sent again after a lost answer. */
  async create(fields: WebhookEndpointFields, options: CallOptions = {}): Promise<NewWebhookEndpoint> {
    const body = jsonOf(fields);
    const request = { method: 'POST', path: '/v1/webhook_endpoints', headers, body, is_repeatable: false } as const;
    return this.#http.send(request, options, readJson<NewWebhookEndpoint>);
  }

  /** Lists the endpoints of the account, oldest first. */
  list(query: ListWebhookEndpointsQuery = {}, options: CallOptions = {}): Cursor<WebhookEndpoint> {
    const load = (after: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/webhook_endpoints', query: { ...query, after }, is_repeatable: true },
        options,
        readJson<Page<WebhookEndpoint>>,
      );
    return new Cursor(load, query.after);
  }

  async get(id: string, options: CallOptions = {}): Promise<WebhookEndpoint> {
    const request = { method: 'GET', path: `/v1/webhook_endpoints/${segment(id)}`, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<WebhookEndpoint>);
  }

  /** Changes the fields that are set; `filters` are replaced as a whole. */
  async update(id: string, change: WebhookEndpointChange, options: CallOptions = {}): Promise<WebhookEndpoint> {
    const request = {
      method: 'PATCH',
      path: `/v1/webhook_endpoints/${segment(id)}`,
      headers,
      body: jsonOf(change),
      is_repeatable: true,
    } as const;
    return this.#http.send(request, options, readJson<WebhookEndpoint>);
  }

  /** Deletes an endpoint; one that is gone already is no mistake. */
  async delete(id: string, options: CallOptions = {}): Promise<void> {
    const request = { method: 'DELETE', path: `/v1/webhook_endpoints/${segment(id)}`, is_repeatable: true } as const;
    await this.#http.send(request, options, (response) => response.arrayBuffer());
  }

  /** Returns the endpoint with a new secret, which is shown only here. The previous one signs as well for 24 hours. */
  async rotateSecret(id: string, options: CallOptions = {}): Promise<NewWebhookEndpoint> {
    const request = {
      method: 'POST',
      path: `/v1/webhook_endpoints/${segment(id)}/rotate_secret`,
      is_repeatable: false,
    } as const;
    return this.#http.send(request, options, readJson<NewWebhookEndpoint>);
  }

  /** Sends an example of an event now, and returns how the receiver answered. */
  async test(id: string, event: WebhookEventType, options: CallOptions = {}): Promise<WebhookTest> {
    const request = {
      method: 'POST',
      path: `/v1/webhook_endpoints/${segment(id)}/test`,
      headers,
      body: jsonOf({ event }),
      is_repeatable: false,
    } as const;
    return this.#http.send(request, options, readJson<WebhookTest>);
  }

  /**
   * Sends the events of a span again: those that did not arrive, or `all`. At most 1,000 in one call: while `next_from`
   * is not null, call again with it as `from`. `dry_run` only counts.
   */
  async replay(id: string, { from, to, which, dry_run, ...options }: ReplayOptions): Promise<WebhookReplay> {
    const body = jsonOf({ from, to, which, dry_run });
    const request = {
      method: 'POST',
      path: `/v1/webhook_endpoints/${segment(id)}/replay`,
      headers,
      body,
      is_repeatable: dry_run === true,
    } as const;
    return this.#http.send(request, options, readJson<WebhookReplay>);
  }
}

function jsonOf(value: object): () => string {
  const text = JSON.stringify(value);
  return () => text;
}
