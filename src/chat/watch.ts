import type { Timeouts } from '../catalog/model.ts';

/** The end of a connection comes right behind that of its answer. */
const end_ms = 1_000;

/** The clock of one attempt. One timer, moved: a stream has thousands of chunks. */
export type Watch = {
  /** Aborts when a phase takes too long, or the caller is gone. */
  readonly signal: AbortSignal;
  /** Resolves when `signal` aborts. */
  readonly over: Promise<void>;
  /** Which phase took too long. */
  readonly timed_out: string | undefined;
  /** The time is over because the caller did not read. */
  readonly caller_is_slow: boolean;
  /** Something came. */
  beat(has_content: boolean): void;
  /** The answer is complete: who keeps the connection open behind it is not waited for. */
  expectEnd(): void;
  /** Waits for the caller from here to the next beat, which is not the upstream's fault. */
  pause(): void;
  stop(): void;
};

/** A whole answer comes at once, after as long as the model has written: only its total is bounded. */
export function startWatch(timeout_ms: Timeouts, is_stream: boolean, gone: AbortSignal): Watch {
  const stop = new AbortController();
  let timed_out: string | undefined;
  let caller_is_slow = false;
  let is_paused = false;
  const expire = (phase: string) => {
    if (is_paused && phase === 'idle') return void silence.refresh();
    if (is_paused) caller_is_slow = true;
    else timed_out = `no answer in time (${phase})`;
    stop.abort(new Error(`over: ${phase}`));
  };
  const total = setTimeout(() => expire('total'), timeout_ms.total);
  const first_byte_ms = is_stream ? timeout_ms.first_byte : timeout_ms.total;
  let silence = setTimeout(() => expire('first byte'), first_byte_ms);
  let is_idle_watch = false;
  const leave = () => stop.abort(new Error('the caller is gone'));
  if (gone.aborted) leave();
  gone.addEventListener('abort', leave, { once: true });
  const over = Promise.withResolvers<void>();
  stop.signal.addEventListener('abort', () => over.resolve(), { once: true });
  return {
    signal: stop.signal,
    over: over.promise,
    get timed_out() {
      return timed_out;
    },
    get caller_is_slow() {
      return caller_is_slow;
    },
    beat: (content) => {
      is_paused = false;
      if (!content) return; // pings before the first content do not buy time
      if (is_idle_watch) return void silence.refresh();
      is_idle_watch = true;
      clearTimeout(silence);
      silence = setTimeout(() => expire('idle'), timeout_ms.idle);
    },
    expectEnd: () => {
      clearTimeout(silence);
      silence = setTimeout(() => expire('idle'), end_ms);
    },
    pause: () => {
      is_paused = true;
    },
    stop: () => {
      clearTimeout(total);
      clearTimeout(silence);
      gone.removeEventListener('abort', leave);
    },
  };
}
