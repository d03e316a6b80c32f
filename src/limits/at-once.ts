/**
 * How many calls of one key are under way on this node. Whoever reads slowly holds a connection to an upstream
 * for as long as the call may last, and all keys share those.
 */
export class AtOnce {
  readonly #under_way = new Map<string, number>();

  /** Takes a place, to be given back by `leave` once; false if `limit` calls are under way. */
  enter(key_id: string, limit: number): boolean {
    const count = this.#under_way.get(key_id) ?? 0;
    if (count >= limit) return false;
    this.#under_way.set(key_id, count + 1);
    return true;
  }

  leave(key_id: string): void {
    const count = this.#under_way.get(key_id) ?? 0;
    if (count > 1) this.#under_way.set(key_id, count - 1);
    else this.#under_way.delete(key_id);
  }

  /** Keys with calls under way. */
  size(): number {
    return this.#under_way.size;
  }
}
