import type { Writable } from 'node:stream';

/** Where the bytes of a streamed answer go. */
export type Outlet = {
  /** Takes the HTTP answer, whose headers are set: what waits goes there now, and all that follows. */
  pour(response: Writable): void;
  /** Resolves when the answer begins: its status line goes out now, whatever follows. */
  readonly opened: Promise<void>;
  readonly is_open: boolean;
  /** On the monotonic clock; when it was made, if nothing was written yet. */
  readonly written_at_ms: number;
  /** Somebody waits for the caller to read. */
  readonly is_full: boolean;
  /** Opens. With a promise there is no more room: it resolves when there is, or when the caller is gone. */
  write(bytes: Buffer): Promise<void> | undefined;
  end(): void;
  /** Closes the connection in the middle: nobody takes it for an end. */
  cut(): void;
};

/**
 * Bytes go straight to the HTTP answer: a stream between the two was a fifth of what relaying a frame costs
 * (bench/results/chat.md). What may wait for a slow caller is what Node keeps for its socket.
 */
export function makeOutlet(): Outlet {
  const opened = Promise.withResolvers<void>();
  let is_open = false;
  let written_at_ms = performance.now();
  let waiting: (() => void)[] = [];
  let response: Writable | undefined;
  /** Before there is an answer to write to. */
  const held: Buffer[] = [];
  let fate: 'open' | 'ended' | 'cut' = 'open';
  const release = () => {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  };
  const settle = () => {
    if (fate === 'ended' && response?.destroyed === false) response.end();
    if (fate === 'cut') response?.destroy();
  };
  return {
    pour: (to) => {
      response = to.on('drain', release).once('close', release);
      for (const bytes of held.splice(0)) to.write(bytes);
      settle();
    },
    opened: opened.promise,
    get is_open() {
      return is_open;
    },
    get is_full() {
      return waiting.length > 0;
    },
    get written_at_ms() {
      return written_at_ms;
    },
    write: (bytes) => {
      is_open = true;
      opened.resolve();
      written_at_ms = performance.now();
      if (!response) return void held.push(bytes);
      if (response.destroyed || response.write(bytes)) return undefined;
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
    end: () => {
      if (fate === 'open') fate = 'ended';
      settle();
    },
    cut: () => {
      fate = 'cut';
      settle();
    },
  };
}
