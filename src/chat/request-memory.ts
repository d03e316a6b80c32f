/**
 * The memory that the request of a call takes: its bytes, its parsed body, its files; up to 32 MB each. At the first
 * content no other route will be asked, and a stream may go on for minutes. So whoever keeps a part of the request says
 * here how it is let go, and all of it goes at once.
 */
export class RequestMemory {
  readonly #parts: (() => void)[] = [];
  #is_released = false;

  /** Adds a part. Returns what lets it go earlier; it is let go once. */
  add(letGo: () => void): () => void {
    if (this.#is_released) letGo();
    else this.#parts.push(letGo);
    return () => {
      const at = this.#parts.indexOf(letGo);
      if (at !== -1) for (const part of this.#parts.splice(at, 1)) part();
    };
  }

  /** Lets all parts go: nobody reads the request any more. */
  release(): void {
    this.#is_released = true;
    for (const letGo of this.#parts.splice(0)) letGo();
  }
}
