/** Progress of a long command on stderr. */
export type Progress = {
  /** Shows the current step. */
  say(doing: string): void;
  /** So many bytes more. */
  add(bytes: number): void;
};

const first_after_ms = 1_000;
const terminal_every_ms = 1_000;
const log_every_ms = 10_000; // a line each, in the mail of a cron job

/** Tells nothing of what is over within a second. */
export function openProgress(
  write: (line: string) => void,
  is_terminal: boolean,
  nowMs: () => number = () => performance.now(),
): Progress {
  let next_at_ms = nowMs() + first_after_ms;
  let doing = '';
  let bytes = 0;
  const tell = () => {
    const now_ms = nowMs();
    if (now_ms < next_at_ms) return;
    next_at_ms = now_ms + (is_terminal ? terminal_every_ms : log_every_ms);
    write(`${doing}, ${megabytes(bytes)}`);
  };
  return {
    say: (what) => {
      doing = what;
      tell();
    },
    add: (more) => {
      bytes += more;
      tell();
    },
  };
}

/** A size for people. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
