/**
 * Tries that may fail: a few are free, then each has to wait twice as long as the one before. Counted by a name, such as
 * an e-mail address and where the tries come from.
 */
export type Backoff = {
  /** Counts a try. Returns how long it has to wait instead, in milliseconds: 0 if it may go on. `now_ms` is monotonic. */
  take(name: string, now_ms: number): number;
  /** It was right: nothing is held against the next ones. */
  forgive(name: string): void;
  /** It was neither right nor wrong: it does not count. */
  undo(name: string): void;
};

const free_attempts = 5;
const first_wait_ms = 1_000;
const longest_wait_ms = 15 * 60_000;
const remembered_ms = 60 * 60_000;
/** Beyond these, the ones that were tried least lately are forgotten. */
const names_max = 20_000;

type Attempts = { count: number; last_ms: number };

/** Counted in this process alone. */
export function memoryBackoff(): Backoff {
  const attempts = new Map<string, Attempts>();
  return {
    take(name, now_ms) {
      const before = attempts.get(name);
      const { count, last_ms } = before && now_ms - before.last_ms < remembered_ms ? before : { count: 0, last_ms: 0 };
      const wait_ms = last_ms + waitAfter(count) - now_ms;
      if (count > 0 && wait_ms > 0) return wait_ms;
      attempts.delete(name); // moves it to the end
      attempts.set(name, { count: count + 1, last_ms: now_ms });
      if (attempts.size > names_max) removeFirst(attempts);
      return 0;
    },
    forgive: (name) => void attempts.delete(name),
    undo(name) {
      const before = attempts.get(name);
      if (before) before.count -= 1;
    },
  };
}

function waitAfter(count: number): number {
  if (count < free_attempts) return 0;
  return Math.min(longest_wait_ms, first_wait_ms * 2 ** (count - free_attempts));
}

function removeFirst(attempts: Map<string, Attempts>): void {
  for (const name of attempts.keys()) return void attempts.delete(name);
}
