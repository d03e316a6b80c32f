import { oneDecimal } from './one-decimal.ts';

/** `850 ms`, `3.2 s`, `2 min 5 s`. */
export function durationText(duration_ms: number): string {
  // What is rounded up to the next unit is written in that one.
  if (duration_ms < 999.5) return `${Math.round(duration_ms)} ms`;
  if (duration_ms < 59_950) return `${oneDecimal(duration_ms / 1000)} s`;
  const seconds = Math.round(duration_ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}
