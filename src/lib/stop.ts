/** Hears of a stop, once. */
export type StopListener = { handleEvent(): void };

/** A cancel signal: an AbortSignal, or a Stop. */
export type StopSignal = {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: 'abort', listener: StopListener): void;
  removeEventListener(type: 'abort', listener: StopListener): void;
};

/**
 * A controller and its signal in one, without what makes an AbortSignal an EventTarget: two of those with their
 * listeners were 3 % of a chat call, which ends without either having told anything.
 */
export class Stop implements StopSignal {
  #reason: Error | undefined;
  #listeners: StopListener[] = [];
  #signal: AbortSignal | undefined;

  get aborted(): boolean {
    return this.#reason !== undefined;
  }

  get reason(): Error | undefined {
    return this.#reason;
  }

  /** The first one counts. */
  abort(reason: Error): void {
    if (this.#reason) return;
    this.#reason = reason;
    for (const listener of this.#listeners.splice(0)) listener.handleEvent();
  }

  addEventListener(_: 'abort', listener: StopListener): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_: 'abort', listener: StopListener): void {
    const at = this.#listeners.indexOf(listener);
    if (at !== -1) this.#listeners.splice(at, 1);
  }

  /** The same for whoever takes nothing but an AbortSignal: timers of Node, `AbortSignal.any`. */
  get signal(): AbortSignal {
    this.#signal ??= abortSignal(this);
    return this.#signal;
  }
}

/** An AbortSignal that tells the same. */
export function abortSignal(stop: StopSignal): AbortSignal {
  if (stop instanceof AbortSignal) return stop;
  if (stop.aborted) return AbortSignal.abort(stop.reason);
  const controller = new AbortController();
  stop.addEventListener('abort', { handleEvent: () => controller.abort(stop.reason) });
  return controller.signal;
}
