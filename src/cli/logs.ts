import { createReadStream } from 'node:fs';
import { open, stat, type FileHandle } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import type { Command } from 'commander';
import { earlierLogFile } from '../app/log-file.ts';
import { readCommandConfig } from '../app/running.ts';
import { readCaller } from '../config.ts';
import { readableLine } from '../lib/log-lines.ts';
import { interruptible } from './caller/terminal.ts';
import { logFilter, objectIn, type LogFilter } from './log-filter.ts';
import { CommandError, says, type CommandResult } from './result.ts';

type Options = LogFilter & { follow?: boolean; lines: string; json?: boolean };

const lines_max = 100_000;
const follow_every_ms = 250;
const line_length_max = 1_000_000;

export function logsCommand(logs: Command): void {
  logs
    .option('-f, --follow', 'go on with lines that are still to come')
    .option('-n, --lines <number>', 'how many of the last lines', '200')
    .option('--account <account>', 'only what concerns this account')
    .option('--task <task>', 'only what concerns this task, and the request that made it')
    .option('--request <request>', 'only lines of this request')
    .option('--trace <trace>', 'only lines of this trace')
    .option('--level <level>', 'only these and worse: trace, debug, info, warn, error, fatal');
  says(logs, (file) => interruptible((signal) => readLogs(file, logs.opts(), signal)));
}

async function readLogs(file: string | undefined, options: Options, signal: AbortSignal): Promise<CommandResult> {
  const count = /^\d{1,6}$/.test(options.lines) ? Number(options.lines) : 0;
  if (count < 1 || count > lines_max) throw new CommandError(`--lines must be a number from 1 to ${lines_max}.`, 2);
  const accepts = logFilter(options);
  const print = printer(options.json === true);
  if (file === '-') {
    for await (const line of linesOf(process.stdin)) if (accepts(line)) print(line);
    return { json: {}, text: '' };
  }
  const path = file ?? defaultFile();
  const last: string[] = [];
  const handle = await openFile(path, options.follow === true);
  const offset = (await handle?.stat())?.size ?? 0;
  for (const each of [...(await earlierOf(path)), ...(handle ? [createReadStream(path, { end: offset - 1 })] : [])]) {
    if (offset === 0 && each.path === path) continue;
    for await (const line of linesOf(each)) if (accepts(line) && last.push(line) > count) last.shift();
  }
  if (options.follow !== true) {
    await handle?.close();
    if (options.json !== true) for (const line of last) print(line);
    return { json: { lines: last.map((line) => objectIn(line)) }, text: '' };
  }
  for (const line of last) print(line);
  await follow({ path, handle, offset }, (line) => accepts(line) && print(line), signal);
  return { json: {}, text: '' };
}

function defaultFile(): string {
  const { log_file } = readCommandConfig();
  if (log_file !== undefined) return log_file;
  throw new CommandError(
    'MEDLEY_LOG_FILE is none. Name a file, or - for stdin: journalctl -u medley | medley logs -',
    2,
  );
}

/** Returns undefined where the file is still to come. */
async function openFile(path: string, may_come: boolean): Promise<FileHandle | undefined> {
  return open(path).catch((error: unknown) => {
    const is_missing = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (is_missing && may_come) return undefined;
    const reason = is_missing ? 'There is none: perhaps no service has run on this data folder.' : String(error);
    throw new CommandError(
      `${path} cannot be read. ${reason} Set MEDLEY_DATA as the service has it, or name the file.`,
    );
  });
}

async function earlierOf(path: string) {
  const earlier = earlierLogFile(path);
  const is_there = await stat(earlier).then(
    (facts) => facts.isFile(),
    () => false,
  );
  return is_there ? [createReadStream(earlier)] : [];
}

async function* linesOf(input: Readable): AsyncGenerator<string> {
  for await (const line of createInterface({ input, crlfDelay: Infinity }))
    if (line !== '' && line.length <= line_length_max) yield line;
}

/** Lines as a person reads them, with each new day above its first; or as they are, for programs. */
function printer(json: boolean): (line: string) => void {
  if (json) return (line) => void process.stdout.write(`${JSON.stringify(objectIn(line))}\n`);
  const colors = process.stdout.isTTY && readCaller().colors;
  let day = '';
  return (line) => {
    const object = objectIn(line);
    const at = new Date(Number(object['time']));
    const own_day = Number.isNaN(at.getTime()) ? day : at.toDateString();
    if (own_day !== day) process.stdout.write(`${own_day}\n`);
    day = own_day;
    process.stdout.write(readableLine(JSON.stringify(object), { colors }));
  };
}

type Followed = { path: string; handle: FileHandle | undefined; offset: number };

/** Reads on until the signal. When the file has become the earlier one, its rest is read first. */
async function follow(from: Followed, take: (line: string) => void, signal: AbortSignal): Promise<void> {
  let { handle, offset } = from;
  let rest = '';
  const readOn = async () => {
    const buffer = Buffer.alloc(65_536);
    for (;;) {
      const { bytesRead } = (await handle?.read(buffer, 0, buffer.length, offset)) ?? { bytesRead: 0 };
      if (bytesRead === 0) return;
      offset += bytesRead;
      const lines = (rest + buffer.toString('latin1', 0, bytesRead)).split('\n');
      rest = (lines.pop() ?? '').slice(0, line_length_max);
      for (const line of lines) if (line !== '') take(Buffer.from(line, 'latin1').toString());
    }
  };
  while (!signal.aborted) {
    await readOn();
    const [now, own] = await Promise.all([stat(from.path).catch(() => undefined), handle?.stat()]);
    if (now && (now.ino !== own?.ino || now.size < offset)) {
      await readOn();
      await handle?.close();
      handle = await open(from.path).catch(() => undefined);
      [offset, rest] = [0, ''];
    } else await wait(follow_every_ms, undefined, { signal }).catch(() => undefined);
  }
  await handle?.close();
}
