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
  open(): void;
  /** Opens, and resolves when the caller has taken so much that there is room again, or is gone. */
  write(bytes: Buffer): Promise<void>;
  end(): void;
};

/** What may wait for a slow caller before its upstream is not read any more. */
const buffer_bytes = 65_536;

export function makeOutlet(): Outlet {
  const opened = Promise.withResolvers<void>();
  let is_open = false;
  let written_at_ms = performance.now();
  let room: (() => void) | undefined;
  const release = () => {
    room?.();
    room = undefined;
  };
  const body = new Readable({ highWaterMark: buffer_bytes, read: release });
  body.once('close', release);
  const open = () => {
    is_open = true;
    opened.resolve();
  };
  return {
    body,
    opened: opened.promise,
    get is_open() {
      return is_open;
    },
    get written_at_ms() {
      return written_at_ms;
    },
    open,
    write: async (bytes) => {
      open();
      written_at_ms = performance.now();
      if (body.destroyed || body.push(bytes)) return;
      await new Promise<void>((resolve) => {
        room = resolve;
      });
    },
    end: () => {
      if (!body.destroyed) body.push(null);
    },
  };
}
