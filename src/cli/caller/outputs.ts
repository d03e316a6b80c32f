import { randomUUID } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { link, rename, rm } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Medley, Task } from '../../../clients/typescript/src/index.ts';
import { CommandError } from '../result.ts';

/** The place for the files of a task. */
export type Target =
  | { kind: 'none' }
  | { kind: 'stdout' }
  /** Files have names of ours: those of the service never choose a place. */
  | { kind: 'folder'; path: string; force: boolean }
  | { kind: 'file'; path: string; force: boolean };

type Output = Task['output'][number];

/** Reads `-o`. Throws CommandError (usage) where the file could not be written after it was paid. */
export function readTarget(path: string | undefined, { force, json }: { force: boolean; json: boolean }): Target {
  if (path === undefined) return { kind: 'none' };
  if (path === '-') {
    if (json) throw new CommandError('-o - and --json both need stdout. Write to a file.', 2);
    if (process.stdout.isTTY) throw new CommandError('A terminal does not take a file. Use -o FILE, or a pipe.', 2);
    return { kind: 'stdout' };
  }
  if (path === '') throw new CommandError('-o needs the name of a file, of a folder, or - for stdout.', 2);
  if (/[/\\]$/.test(path) || isFolder(path)) {
    if (!isFolder(path)) throw new CommandError(`There is no folder "${path}".`, 2);
    return { kind: 'folder', path, force };
  }
  if (!isFolder(dirname(path))) throw new CommandError(`There is no folder "${dirname(path)}".`, 2);
  if (!force && existsSync(path))
    throw new CommandError(`${path} is there already. Choose another name, or overwrite it with --force.`, 2);
  return { kind: 'file', path, force };
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

const extensions: Readonly<Record<string, string>> = {
  'image/png': '.png',
  'image/jpeg': '.jpg',
  'image/webp': '.webp',
  'image/gif': '.gif',
  'image/avif': '.avif',
  'video/mp4': '.mp4',
  'video/webm': '.webm',
  'audio/wav': '.wav',
  'audio/x-wav': '.wav',
  'audio/mpeg': '.mp3',
  'audio/ogg': '.ogg',
  'audio/flac': '.flac',
  'audio/aac': '.aac',
  'text/plain': '.txt',
  'application/json': '.json',
};

/** Returns the paths of all outputs: of several, all are numbered. */
function pathsOf(target: Target & { kind: 'file' | 'folder' }, task: Pick<Task, 'id' | 'output'>): string[] {
  const number = (index: number) => (task.output.length === 1 ? '' : `-${index + 1}`);
  return task.output.map(({ content_type }, index) => {
    const usual = extensions[content_type.split(';', 1)[0] ?? ''] ?? '.bin';
    if (target.kind === 'folder') return join(target.path, `${safeName(task.id)}${number(index)}${usual}`);
    const own = extname(target.path);
    return join(dirname(target.path), `${basename(target.path, own)}${number(index)}${own === '' ? usual : own}`);
  });
}

/** The id comes from the service, whoever runs it. */
function safeName(id: string): string {
  return /^\w{1,100}$/.test(id) ? id : 'output';
}

/** Writes the files, and returns their paths. Nothing that is there is overwritten without `force`. */
export async function saveOutputs(
  client: Medley,
  task: Pick<Task, 'id' | 'output'>,
  target: Target,
  signal: AbortSignal,
): Promise<string[]> {
  if (target.kind === 'none') return [];
  if (target.kind === 'stdout') {
    await writeToStdout(client, task, signal);
    return [];
  }
  const saved: string[] = [];
  for (const [index, path] of pathsOf(target, task).entries()) {
    const output = task.output[index];
    if (output) saved.push(await saveOne(client, output, path, { force: target.force, signal }));
  }
  return saved;
}

async function writeToStdout(client: Medley, { id, output }: Pick<Task, 'id' | 'output'>, signal: AbortSignal) {
  const [only] = output;
  if (!only || output.length !== 1)
    throw new CommandError(
      `The task ${safeName(id)} has ${output.length} files, and stdout takes one. Save them: medley tasks save ${safeName(id)} -o FOLDER/`,
    );
  await pipeline(await client.downloadStream(only, { signal }), process.stdout, { end: false });
}

/** A file that appeared meanwhile stays; this one gets the next free number. */
async function saveOne(
  client: Medley,
  output: Output,
  path: string,
  { force, signal }: { force: boolean; signal: AbortSignal },
): Promise<string> {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomUUID()}`);
  try {
    await client.downloadTo(output, unfinished, { signal });
    if (force) {
      await rename(unfinished, path);
      return path;
    }
    return await nameNew(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

const names_max = 1_000;

async function nameNew(from: string, path: string): Promise<string> {
  const extension = extname(path);
  const stem = join(dirname(path), basename(path, extension));
  for (let count = 1; count <= names_max; count++) {
    const free = count === 1 ? path : `${stem} (${count})${extension}`;
    try {
      await link(from, free);
      return free;
    } catch (error) {
      const code = error instanceof Error && 'code' in error ? error.code : undefined;
      if (code === 'EEXIST') continue;
      if (code !== 'EPERM' && code !== 'ENOTSUP' && code !== 'ENOSYS') throw error;
      if (existsSync(free)) continue; // a disk without links, such as FAT
      await rename(from, free);
      return free;
    }
  }
  throw new CommandError(`${path} and ${names_max} names after it are there already.`);
}
