import { Cursor, type Page } from './cursor.ts';
import { NotFoundError } from './errors.ts';
import { readJson, segment, type CallOptions, type Http } from './http.ts';
import type { Feedback, ListFeedbackQuery } from './types.ts';

export type FeedbackOptions = CallOptions & {
  /** The metric; `rating` unless set. */
  name?: string | undefined;
  /** The end user whose score it is. */
  user?: string | undefined;
  comment?: string | undefined;
  tags?: readonly string[] | undefined;
  metadata?: Record<string, string> | undefined;
};

export class FeedbackCalls {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /**
   * Scores a chat call, by the `x-request-id` of its answer, or a task: from -1 to 1, or true and false. A second score of
   * the same metric and user takes the place of the first.
   */
  give(reference_id: string, score: number | boolean, options: FeedbackOptions = {}): Promise<Feedback> {
    const { name, user, comment, tags, metadata } = options;
    const text = JSON.stringify({ reference_id, score, name, user, comment, tags, metadata });
    const headers = { 'content-type': 'application/json' };
    const request = { method: 'POST', path: '/v1/feedback', headers, body: () => text, is_repeatable: true } as const;
    return this.#http.send(request, options, readJson<Feedback>);
  }

  /** Lists feedback, newest first. */
  list(query: Omit<ListFeedbackQuery, 'before'> = {}, options: CallOptions = {}): Cursor<Feedback> {
    const load = (after: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/feedback', query: { ...query, after }, is_repeatable: true },
        options,
        readJson<Page<Feedback>>,
      );
    return new Cursor(load, query.after);
  }

  async delete(id: string, options: CallOptions = {}): Promise<void> {
    const request = { method: 'DELETE', path: `/v1/feedback/${segment(id)}`, is_repeatable: true } as const;
    try {
      await this.#http.send(request, options, (response) => response.arrayBuffer());
    } catch (error) {
      if (!(error instanceof NotFoundError && error.follows_lost_answer)) throw error;
    }
  }
}
