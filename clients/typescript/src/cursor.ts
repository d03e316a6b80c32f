/** A part of a list. */
export type Page<T> = { data: T[]; has_more: boolean; first_id: string | null; last_id: string | null };

/** A list: `for await` reads it to its end, and asks for the next page when it needs it. */
export class Cursor<T> implements AsyncIterable<T> {
  readonly #load: (after: string | undefined) => Promise<Page<T>>;
  readonly #start: string | undefined;

  constructor(load: (after: string | undefined) => Promise<Page<T>>, start: string | undefined) {
    this.#load = load;
    this.#start = start;
  }

  async *pages(): AsyncGenerator<Page<T>, void, undefined> {
    let after = this.#start;
    for (;;) {
      const page = await this.#load(after);
      yield page;
      if (!page.has_more || page.last_id === null || page.last_id === after) return;
      after = page.last_id;
    }
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  /** Returns the first page alone, with one request. */
  first(): Promise<Page<T>> {
    return this.#load(this.#start);
  }

  /** Returns the first items, at most `count_max`. */
  async take(count_max: number): Promise<T[]> {
    const items: T[] = [];
    if (count_max <= 0) return items;
    for await (const item of this) if (items.push(item) >= count_max) break;
    return items;
  }
}
