/**
 * Source of the time. Everything that decides by time takes a Clock (or a time read from one), so a test can
 * stand at the last millisecond of a month.
 */
export type Clock = {
  /** Milliseconds since 1970, UTC. */
  now(): number;
};

export const systemClock: Clock = { now: () => Date.now() };
