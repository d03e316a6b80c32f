/**
 * Text of others on a terminal: of models, of services, of files. What would drive the terminal is replaced, so that no
 * answer moves the cursor, writes a clipboard or hides a line.
 */

/** Control characters but line ends and tabs, marks that turn the direction of text around, and halves of characters. */
const unsafe = /[^\P{Cc}\n\t]|[\u202A-\u202E\u2066-\u2069]|\p{Cs}/gu;

/** Returns the text as a terminal may have it; of any pieces in turn, since it looks at single characters. */
export function printable(text: string): string {
  return text.replaceAll(/\r(?=\n|$)/g, '').replaceAll(unsafe, '\uFFFD');
}

/** The same on one line, of a length that a person reads. */
export function oneLine(text: string, length_max = 500): string {
  const line = printable(text).replaceAll(/\s+/g, ' ').trim();
  return line.length > length_max ? `${line.slice(0, length_max)}…` : line;
}

/** Progress of something that takes a while, on stderr. */
export type Progress = {
  /** The state of it, in a few words. */
  show(state: string): void;
  /** Ends it: what follows begins on an empty line. */
  end(): void;
};

const frame_ms = 120;
const bar_width = 16;

/** A bar that moves on a terminal, a line for each new state elsewhere, nothing if it is quiet. */
export function openProgress({ quiet }: { quiet: boolean }): Progress {
  if (quiet) return { show: () => undefined, end: () => undefined };
  return process.stderr.isTTY === true ? movingBar() : newLines(); // its type leaves out that it may be undefined
}

function newLines(): Progress {
  let latest = '';
  return {
    show: (state) => {
      if (state !== latest) process.stderr.write(`${oneLine(state)}\n`);
      latest = state;
    },
    end: () => undefined,
  };
}

function movingBar(): Progress {
  const start_ms = performance.now();
  let latest = '';
  let frame = 0;
  const draw = () => {
    const at = frame++ % (2 * bar_width - 6);
    const left = at < bar_width - 3 ? at : 2 * bar_width - 6 - at;
    const bar = `${' '.repeat(left)}###${' '.repeat(bar_width - 3 - left)}`;
    const seconds = Math.floor((performance.now() - start_ms) / 1000);
    process.stderr.write(`\r\u001B[K[${bar}] ${oneLine(latest, 60)} ${seconds} s`);
  };
  const timer = setInterval(draw, frame_ms);
  timer.unref();
  return {
    show: (state) => {
      latest = state;
      draw();
    },
    end: () => {
      clearInterval(timer);
      process.stderr.write('\r\u001B[K');
    },
  };
}

/**
 * Runs `work` with a signal that Ctrl-C and SIGTERM abort. Asked again, the process ends at once, with 130. It ends
 * quietly when nobody reads its output any more, such as `head`.
 */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const onSignal = () => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort(new Interrupted());
  };
  const onClosedPipe = (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  };
  process.on('SIGINT', onSignal).on('SIGTERM', onSignal);
  process.stdout.on('error', onClosedPipe);
  try {
    return await work(controller.signal);
  } finally {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal);
    process.stdout.off('error', onClosedPipe);
  }
}

/** The reason of an abort by Ctrl-C. */
export class Interrupted extends Error {
  override name = 'Interrupted';

  constructor() {
    super('Interrupted.');
  }
}
