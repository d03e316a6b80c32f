/** Jobs due within this time share one alarm: 10,000 deferred polls need 50 timers per second, not 10,000. */
const slice_ms = 20;

/** Later jobs need no alarm of their own: the poll every 0.5 s finds them in time. */
const horizon_ms = 60_000;

/** Wakes a queue when a deferred job that this node knows of comes due, a few ms late at most. */
export class Alarms {
  readonly #wake: () => void;
  readonly #timers = new Map<number, NodeJS.Timeout>();

  constructor(wake: () => void) {
    this.#wake = wake;
  }

  set(after_ms: number): void {
    if (after_ms > horizon_ms) return;
    const slice = Math.ceil((performance.now() + after_ms) / slice_ms) + 1;
    if (this.#timers.has(slice)) return;
    const ring = () => {
      this.#timers.delete(slice);
      this.#wake();
    };
    this.#timers.set(slice, setTimeout(ring, slice * slice_ms - performance.now()));
  }

  clear(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
  }
}
