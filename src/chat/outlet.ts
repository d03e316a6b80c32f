import { Readable } from 'node:stream';

/** Where the bytes of a streamed answer go. */
export type Outlet = {
  /** What the HTTP answer is made of. */
  readonly body: Readable;
  /** Resolves when the answer begins: its status line goes out now, whatever follows. */
  readonly opened: Promise<void>;
  readonly is_open: boolean;
  /** On the monotonic clock; when it was made, if nothing was written yet. */
  readonly written_at_ms: number;
  /** Somebody waits for the caller to read. */
  readonly is_full: boolean;
  open(): void;
  /** Opens. With a promise there is no more room: it resolves when there is, or when the caller is gone. */
  write(bytes: Buffer): Promise<void> | undefined;
  end(): void;
  /** Closes the connection in the middle: nobody takes it for an end. */
  cut(): void;
};

/** What may wait for a slow caller before its upstream is not read any more. */
const buffer_bytes = 65_536;

export function makeOutlet(): Outlet {
  const opened = Promise.withResolvers<void>();
  let is_open = false;
  let written_at_ms = performance.now();
  let waiting: (() => void)[] = [];
  const release = () => {
    const woken = waiting;
    waiting = [];
    for (const wake of woken) wake();
  };
  let body: Readable | undefined;
  let is_over = false;
  /** Made when it is needed: most calls are answered whole. */
  const made = () => {
    if (body) return body;
    body = new Readable({ highWaterMark: buffer_bytes, read: release });
    body.once('close', release);
    if (is_over) body.push(null);
    return body;
  };
  const open = () => {
    is_open = true;
    opened.resolve();
  };
  return {
    get body() {
      return made();
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
    open,
    write: (bytes) => {
      open();
      written_at_ms = performance.now();
      const stream = made();
      if (stream.destroyed || stream.push(bytes)) return undefined;
      return new Promise<void>((resolve) => waiting.push(resolve));
    },
    end: () => {
      is_over = true;
      if (body && !body.destroyed) body.push(null);
    },
    cut: () => void made().destroy(),
  };
}
