import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, realpathSync } from 'node:fs';
import { getCompileCacheDir } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Paths that the process may load: our code, and the packages below it, beside it or behind a link. Not the folder around
 * them, which has the data of whoever starts the service there.
 */
function ownCode(): string[] {
  const folder = fileURLToPath(new URL('../../', import.meta.url));
  const [modules_folder = ''] = /^.*?[\\/]node_modules[\\/]/.exec(folder) ?? [];
  const within = join(folder, 'node_modules');
  const folders = [
    fileURLToPath(new URL('../', import.meta.url)),
    ...(modules_folder === '' ? [] : [modules_folder]),
    ...(existsSync(within) ? [within, realpathSync(within)] : []),
  ];
  return [join(folder, 'package.json'), ...folders.map((path) => join(path, '/'))];
}

/**
 * Starts a module as a process that has nothing: no environment, no files but our own code, no programs,
 * no network, only a socket (`socket_descriptor` of byte-source.ts) and messages. Node itself refuses the rest to scripts
 * and their threads, on every system. Against code that a file has smuggled into a native library stands
 * the kernel: on Linux, where it lets us, the process is in a network of its own, which has no way out.
 */
export async function startConfined(module: URL): Promise<ChildProcess> {
  const source = fileURLToPath(module);
  const file = source.replace(/\.ts$/, extname(import.meta.url)); // `.js` once published
  const compiled = getCompileCacheDir(); // with it, loading takes half as long
  const readable = [
    ...ownCode(),
    join(dirname(file), '/'),
    ...(compiled === undefined ? [] : [join(dirname(compiled), '/')]),
  ];
  const flags = [
    '--permission',
    '--allow-addons', // sharp is one
    '--allow-worker',
    ...readable.map((path) => `--allow-fs-read=${path}`),
  ];
  const [program = process.execPath, ...words] = [...(await withoutNetwork()), process.execPath];
  return fork(file, {
    execPath: program,
    cwd: dirname(file), // Node 26 lets a thread read all of it
    execArgv: [...words, ...flags],
    env: compiled === undefined ? {} : { NODE_COMPILE_CACHE: dirname(compiled) },
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'ipc'],
  });
}

let network_prefix: Promise<readonly string[]> | undefined;

/** Returns the prefix that runs a program in an empty network; empty if the system has none or refuses it. */
export function withoutNetwork(): Promise<readonly string[]> {
  return (network_prefix ??= findPrefix());
}

const places = ['/usr/bin/unshare', '/bin/unshare'];

async function findPrefix(): Promise<readonly string[]> {
  const unshare = process.platform === 'linux' ? places.find((path) => existsSync(path)) : undefined;
  if (unshare === undefined) return [];
  // Root may do so at once, others in a world of users of its own, where the distribution or the container allows it.
  const prefix = [unshare, ...(process.getuid?.() === 0 ? ['-n'] : ['-U', '-n'])];
  return (await runs([...prefix, process.execPath, '--version'])) ? prefix : [];
}

async function runs([program = '', ...words]: readonly string[]): Promise<boolean> {
  const child = spawn(program, words, { stdio: 'ignore', env: {} });
  const [code] = await once(child, 'exit').catch(() => [1]);
  return code === 0;
}
