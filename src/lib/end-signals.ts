/** A second signal within this time is the first one again: a terminal's Ctrl-C reaches npm, node and children. */
const repeat_ms = 1_500;

/** Signals that ask a process to end; the last one is that of a closed terminal. */
export const end_signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
export type EndSignal = (typeof end_signals)[number];

/** Returns a listener for `process.on`: `begin` is called once, and the process ends at once when it is asked again. */
export function onceRequested(begin: (signal: EndSignal) => void): (signal: EndSignal) => void {
  let first_at_ms: number | undefined;
  return (signal) => {
    const now_ms = performance.now();
    if (first_at_ms === undefined) {
      first_at_ms = now_ms;
      begin(signal);
    } else if (now_ms - first_at_ms > repeat_ms) {
      process.exit(1); // asked again, and not by the same Ctrl-C
    }
  };
}
