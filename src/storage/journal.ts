import { randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, stat, unlink, utimes, type FileHandle } from 'node:fs/promises';
import { hostname } from 'node:os';
import { dirname, join } from 'node:path';
import { crc32 } from 'node:zlib';
import { syncFolder } from './sync-folder.ts';

/** Something that must happen once the database is back; `id` names it, whoever writes it down again. */
export type JournalEntry = { id: string; at: string; body: unknown };

/**
 * Charges that this node could not write to the database, on its own disk: `<data_dir>/journal`. It has no
 * content of calls.
 */
export type Journal = {
  /** On the disk when it resolves. Rejects with JournalFull, or with what the disk says: then nothing is written. */
  write(entries: readonly JournalEntry[]): Promise<void>;
  /** Entries that are written and not done, oldest first: by this process, and by others that were adopted. */
  pending(): readonly JournalEntry[];
  /** Takes over what dead processes have left in the same folder. Resolves to how many entries. */
  adopt(): Promise<number>;
  /** These have happened. A crash may forget that: to do them again must do nothing. */
  done(ids: readonly string[]): Promise<void>;
  /** Says that this process is alive while it has entries, so that nobody adopts them. */
  touch(): Promise<void>;
  close(): Promise<void>;
};

export class JournalFull extends Error {
  override name = 'JournalFull';
}

/** The size of what is pending. At a thousand bytes an entry it holds more than sixty thousand ends of calls. */
const size_bytes_max = 64 * 2 ** 20;

/** A process that did not touch its file for so long is dead, or was stopped; then both do what must happen once. */
const dead_after_ms = 60_000;

/** The open journals of this process: tests have several services in one. */
const live = new Set<string>();

/** Files get other names while they are read. */
const read_attempts_max = 20;

const folderOf = (data_dir: string) => join(data_dir, 'journal');

/** Opens the journal of this process. The disk is not touched before there is something to write. */
export function openJournal(data_dir: string, { bytes_max = size_bytes_max } = {}): Journal {
  return new DiskJournal(folderOf(data_dir), bytes_max);
}

/** Returns the waiting entries of a data folder, whoever wrote them; [] if there are none. */
export async function readJournals(data_dir: string): Promise<JournalEntry[]> {
  const folder = folderOf(data_dir);
  let files: JournalEntry[][] = [];
  for (let attempts = 1; ; attempts++) {
    try {
      files = await Promise.all((await namesIn(folder)).map((name) => readEntries(join(folder, name))));
      break;
    } catch (error) {
      if (attempts === read_attempts_max) throw error; // it was adopted or removed between two steps of ours
    }
  }
  const entries = new Map(files.flat().map((entry) => [entry.id, entry]));
  return [...entries.values()].toSorted((one, other) => one.at.localeCompare(other.at));
}

type OwnFile = { handle: FileHandle; path: string; size_bytes: number; ino: number };

class DiskJournal implements Journal {
  readonly #folder: string;
  readonly #bytes_max: number;
  readonly #uuid = randomUUID();
  readonly #name = `${hostname().replaceAll(/[^\w-]/g, '_')}.${process.pid}.${this.#uuid}`;
  /** Entries by id, with the files in which they are. */
  readonly #pending = new Map<string, { entry: JournalEntry; paths: readonly string[]; line: string }>();
  #pending_bytes = 0;
  #file: OwnFile | undefined;
  #files_count = 0;
  /** One after the other: what comes meanwhile shares the next flush. */
  #working: Promise<unknown> = Promise.resolve();
  #waiting: { entries: readonly JournalEntry[]; resolve: () => void; reject: (error: unknown) => void }[] = [];

  constructor(folder: string, bytes_max: number) {
    this.#folder = folder;
    this.#bytes_max = bytes_max;
    live.add(this.#uuid);
  }

  write(entries: readonly JournalEntry[]): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entries, resolve, reject });
      if (this.#waiting.length === 1) void this.#afterwards(() => this.#writeWaiting());
    });
  }

  pending(): readonly JournalEntry[] {
    return [...this.#pending.values()].map(({ entry }) => entry);
  }

  adopt(): Promise<number> {
    return this.#afterwards(async () => {
      let count = 0;
      for (const name of await namesIn(this.#folder)) {
        if (!(await isLeft(this.#folder, name))) continue;
        const path = this.#nextPath();
        const left = join(this.#folder, name);
        const is_ours = await rename(left, path).then(
          () => true,
          () => false, // another process was faster
        );
        if (is_ours) count += await this.#takeIn(path, left);
      }
      return count;
    });
  }

  done(ids: readonly string[]): Promise<void> {
    return this.#afterwards(async () => {
      const lines: string[] = [];
      const paths = new Set<string>();
      for (const id of ids) {
        const entry = this.#pending.get(id);
        if (!entry) continue;
        this.#pending.delete(id);
        this.#pending_bytes -= Buffer.byteLength(entry.line);
        for (const path of entry.paths) paths.add(path);
        if (this.#file && entry.paths.includes(this.#file.path)) lines.push(lineOf({ done: id }));
      }
      const left = new Set([...this.#pending.values()].flatMap((each) => each.paths));
      for (const path of paths) if (!left.has(path)) await this.#remove(path);
      if (this.#file && lines.length > 0) await this.#append(this.#file, lines).catch(() => undefined);
    });
  }

  touch(): Promise<void> {
    return this.#afterwards(async () => {
      const now = new Date();
      const paths = new Set([...this.#pending.values()].flatMap((each) => each.paths));
      for (const path of paths) await utimes(path, now, now).catch(() => undefined);
    });
  }

  async close(): Promise<void> {
    await this.#afterwards(async () => {
      const file = this.#file;
      this.#file = undefined;
      await file?.handle.close();
    });
    live.delete(this.#uuid);
  }

  #afterwards<T>(work: () => Promise<T>): Promise<T> {
    const working = this.#working.then(work);
    this.#working = working.catch(() => undefined);
    return working;
  }

  #nextPath(): string {
    return join(this.#folder, `${this.#name}.${this.#files_count++}.jsonl`);
  }

  async #writeWaiting(): Promise<void> {
    const waiting = this.#waiting.splice(0);
    try {
      const entries = waiting.flatMap((each) => each.entries);
      const lines = entries.map(lineOf);
      const bytes = Buffer.byteLength(lines.join(''));
      if (this.#pending_bytes + bytes > this.#bytes_max)
        throw new JournalFull(`the journal has ${this.#pending_bytes} bytes, and may have ${this.#bytes_max}`);
      let file = await this.#open();
      if (file.size_bytes + bytes > this.#bytes_max) file = await this.#rewrite(file);
      await this.#append(file, lines, { flush: true });
      for (const entry of entries) this.#add(entry, file.path);
      for (const { resolve } of waiting) resolve();
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }

  /** Its own file; a new one if somebody took this process for dead and the file with it. */
  async #open(): Promise<OwnFile> {
    const current = this.#file;
    if (current) {
      const there = await stat(current.path).catch(() => undefined);
      if (there?.ino === current.ino) return current;
      this.#file = undefined;
      await current.handle.close().catch(() => undefined);
    }
    const first = await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    if (first !== undefined) await syncFolder(dirname(first));
    const path = this.#nextPath();
    const handle = await open(path, 'wx', 0o600);
    const { ino } = await handle.stat();
    this.#file = { handle, path, size_bytes: 0, ino };
    await syncFolder(this.#folder);
    return this.#file;
  }

  /** Rewrites the file without the lines that are done, which one open entry has kept on the disk. */
  async #rewrite({ handle, path }: OwnFile): Promise<OwnFile> {
    const left = [...this.#pending.values()].filter((each) => each.paths.includes(path));
    this.#file = undefined;
    await handle.close().catch(() => undefined);
    const file = await this.#open();
    await this.#append(
      file,
      left.map(({ line }) => line),
      { flush: true },
    );
    for (const each of left) each.paths = each.paths.map((one) => (one === path ? file.path : one));
    await unlink(path).catch(() => undefined);
    return file;
  }

  async #append(file: OwnFile, lines: readonly string[], { flush = false } = {}): Promise<void> {
    const bytes = Buffer.from(lines.join(''));
    try {
      for (let at = 0; at < bytes.length;) {
        at += (await file.handle.write(bytes, at, bytes.length - at, file.size_bytes + at)).bytesWritten;
      }
      if (flush) await file.handle.datasync();
      file.size_bytes += bytes.length;
    } catch (error) {
      await file.handle.truncate(file.size_bytes).catch(() => undefined); // what is torn is skipped by readers, too
      throw error;
    }
  }

  /** Reads an adopted file. One that cannot be read gets its name back, and keeps nobody from the others. */
  async #takeIn(path: string, name_before: string): Promise<number> {
    const entries = await readEntries(path).catch(() => undefined);
    if (!entries) {
      await rename(path, name_before).catch(() => undefined);
      return 0;
    }
    for (const entry of entries) this.#add(entry, path);
    if (entries.length === 0) await unlink(path);
    return entries.length;
  }

  #add(entry: JournalEntry, path: string): void {
    const before = this.#pending.get(entry.id);
    const line = lineOf(entry);
    this.#pending.set(entry.id, { entry, paths: [...(before?.paths ?? []), path], line });
    this.#pending_bytes += Buffer.byteLength(line) - (before ? Buffer.byteLength(before.line) : 0);
  }

  async #remove(path: string): Promise<void> {
    if (path === this.#file?.path) {
      const { handle } = this.#file;
      this.#file = undefined;
      await handle.close().catch(() => undefined);
    }
    await unlink(path).catch(() => undefined);
  }
}

/** A line, with a sum over it: what was torn by a crash is told from what was written. */
function lineOf(value: object): string {
  const json = JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'bigint' ? { bigint: String(each) } : each,
  );
  return `${crc32(json).toString(16).padStart(8, '0')} ${json}\n`;
}

async function readEntries(path: string): Promise<JournalEntry[]> {
  const text = await readFile(path, 'utf8');
  const entries = new Map<string, JournalEntry>();
  for (const line of text.split('\n')) {
    const json = line.slice(9);
    if (json === '' || Number.parseInt(line.slice(0, 8), 16) !== crc32(json)) continue;
    const value: JournalEntry | { done: string } | null = JSON.parse(json, reviveBigint);
    if (value === null) continue;
    if ('done' in value) entries.delete(value.done);
    else entries.set(value.id, value);
  }
  return [...entries.values()];
}

function reviveBigint(_: string, value: unknown): unknown {
  const is_bigint =
    typeof value === 'object' && value !== null && 'bigint' in value && typeof value.bigint === 'string';
  return is_bigint ? BigInt(String(value.bigint)) : value;
}

async function namesIn(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(() => []);
  return names.filter((name) => name.endsWith('.jsonl')).toSorted();
}

/**
 * Returns true if the process that wrote it is dead: at once on this machine, else when it has not touched it for a
 * minute.
 */
async function isLeft(folder: string, name: string): Promise<boolean> {
  const [host, pid, uuid = ''] = name.split('.');
  if (live.has(uuid)) return false;
  const is_here = host === hostname().replaceAll(/[^\w-]/g, '_');
  if (is_here && (Number(pid) === process.pid || !isRunning(Number(pid)))) return true;
  const file = await stat(join(folder, name)).catch(() => undefined);
  return file !== undefined && Date.now() - file.mtimeMs > dead_after_ms;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM';
  }
}
