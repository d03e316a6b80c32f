/** The two methods of pino that the engine uses. */
export type EngineLog = {
  warn(details: object, message: string): void;
  error(details: object, message: string): void;
};

const repeat_after_ms = 10_000;

/**
 * Logs failures that repeat many times per second while the database is away: the first of each
 * kind at once, then one line every 10 s with the number of those left out.
 */
export class ThrottledLog {
  readonly #log: EngineLog;
  readonly #seen = new Map<string, { at_ms: number; left_out: number }>();

  constructor(log: EngineLog) {
    this.#log = log;
  }

  error(what: string, error: unknown): void {
    const left_out = this.#admit(what);
    if (left_out !== undefined) this.#log.error({ err: error, left_out }, `engine: ${what}`);
  }

  warn(what: string, details: object): void {
    const left_out = this.#admit(what);
    if (left_out !== undefined) this.#log.warn({ ...details, left_out }, `engine: ${what}`);
  }

  /** The number of lines left out since the last one, or undefined if this one is left out too. */
  #admit(what: string): number | undefined {
    const seen = this.#seen.get(what);
    const now = performance.now();
    if (seen && now - seen.at_ms < repeat_after_ms) {
      seen.left_out += 1;
      return undefined;
    }
    this.#seen.set(what, { at_ms: now, left_out: 0 });
    return seen?.left_out ?? 0;
  }
}
