import { Cursor, type Page } from './cursor.ts';
import { readJson, type CallOptions, type Http } from './http.ts';
import type { Call, ListCallsQuery } from './types.ts';

export class Calls {
  readonly #http: Http;

  constructor(http: Http) {
    this.#http = http;
  }

  /** Lists chat calls and tasks, newest first, without what was said. */
  list(query: Omit<ListCallsQuery, 'before' | 'after_id' | 'before_id'> = {}, options: CallOptions = {}): Cursor<Call> {
    const load = (after: string | undefined) =>
      this.#http.send(
        { method: 'GET', path: '/v1/calls', query: { ...query, after }, is_repeatable: true },
        options,
        readJson<Page<Call>>,
      );
    return new Cursor(load, query.after);
  }
}
