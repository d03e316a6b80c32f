import { appendFileSync } from 'node:fs';
import { appendFile, mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';

/** A sink of lines: of JSON, each with its line end. */
export type LineSink = { write(line: string): void };

export type LogFileOptions = {
  path: string;
  /** The file becomes the earlier one before it is larger, in bytes: there are two at most. */
  size_max?: number;
  /** Waiting lines beyond so many bytes are lost: the disk is slower than the log, or gone. */
  waiting_max?: number;
};

const usual_size_max = 16_000_000;
const usual_waiting_max = 4_000_000;

/** Returns the path of the lines before those of this file. */
export function earlierLogFile(path: string): string {
  return path.replace(/(?:\.log)?$/, '.1.log');
}

/**
 * Opens the log in a file, beside the one on stderr. It never throws, waits or ends the process: lines that a full disk
 * does not take are lost, and the next line says how many. Several processes may append to one file.
 */
export function openLogFile({
  path,
  size_max = usual_size_max,
  waiting_max = usual_waiting_max,
}: LogFileOptions): LineSink & { flushed(): Promise<void> } {
  let waiting: string[] = [];
  let waiting_bytes = 0;
  let lost = 0;
  let writing: Promise<void> | undefined;

  const take = (): { text: string; lines: number } => {
    const lines = waiting.length;
    const note = lost === 0 ? '' : lossLine(lost);
    const text = note + waiting.join('');
    waiting = [];
    waiting_bytes = 0;
    return { text, lines };
  };
  const writeAll = async () => {
    while (waiting.length > 0) {
      const lost_before = lost;
      const { text, lines } = take();
      try {
        await append(path, text, size_max);
        lost -= lost_before;
      } catch {
        lost += lines;
      }
    }
  };
  process.on('exit', () => {
    if (waiting.length > 0) appendLast(path, take().text);
  });
  return {
    write: (line) => {
      if (waiting_bytes + line.length > waiting_max) {
        lost++;
        return;
      }
      waiting.push(line);
      waiting_bytes += line.length;
      writing ??= writeAll().finally(() => (writing = undefined));
    },
    flushed: async () => writing,
  };
}

function lossLine(lines: number): string {
  return `${JSON.stringify({ level: 40, time: Date.now(), lines, msg: 'lines of the log could not be written here' })}\n`;
}

async function append(path: string, text: string, size_max: number): Promise<void> {
  const size = await sizeOf(path);
  if (size === undefined) {
    // Not the folders above: whoever has removed the data does not want it back.
    await mkdir(dirname(path), { mode: 0o700 }).catch(() => undefined);
  } else if (size > 0 && size + text.length > size_max) {
    await rotate(path, size_max - text.length);
  }
  await appendFile(path, text, { mode: 0o600 });
}

/** A process that has the lock for longer has died with it. */
const lock_ms_max = 60_000;

/**
 * Makes the file the earlier one if it is larger than this, one process at a time: a second one would put the few lines of
 * the new file in the place of all those before. Where another one is at it, nothing happens: a line more does no harm.
 */
async function rotate(path: string, size_bytes: number): Promise<void> {
  const lock = `${path}.lock`;
  try {
    await writeFile(lock, '', { flag: 'wx', mode: 0o600 });
  } catch {
    const locked = await stat(lock).catch(() => undefined);
    if (locked && locked.mtimeMs < Date.now() - lock_ms_max) await rm(lock, { force: true });
    return;
  }
  try {
    if (((await sizeOf(path)) ?? 0) > size_bytes) await rename(path, earlierLogFile(path));
  } finally {
    await rm(lock, { force: true });
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    ({ size }) => size,
    () => undefined,
  );
}

/** Writes the last lines of a process that ends. */
function appendLast(path: string, text: string): void {
  try {
    appendFileSync(path, text, { mode: 0o600 });
  } catch {
    // The disk is full or gone: stderr has them.
  }
}
