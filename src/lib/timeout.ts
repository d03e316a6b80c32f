/** A timer that comes so late belongs to a process that did not run: frozen, swapped out, or its machine asleep. */
const late_ms = 500;

/** Time to read what arrived meanwhile: timers come before sockets when a process goes on. */
const catch_up_ms = 1_000;

/**
 * A timeout on something that arrives from outside. It does not blame the other side for a time in which this process
 * did not run: who comes late waits once more, for a second, so that what lies in the sockets is read first.
 */
export class Timeout {
  #timer: NodeJS.Timeout;

  constructor(duration_ms: number, onTimeout: () => void) {
    const due_ms = performance.now() + duration_ms;
    this.#timer = setTimeout(() => {
      if (performance.now() - due_ms < late_ms) return onTimeout();
      this.#timer = setTimeout(onTimeout, catch_up_ms);
    }, duration_ms);
  }

  clear(): void {
    clearTimeout(this.#timer);
  }
}
