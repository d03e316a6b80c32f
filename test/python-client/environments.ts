import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run_ms_max = 540_000;
const output_bytes_max = 16 * 1024 * 1024;
const execute = promisify(execFile);

export type Python = { program: string; version: string };

/** Reach of a child: pip needs its registry. */
export type Net = 'loopback' | 'registry';

/** Nothing of this machine's settings of Python. Without a registry, whatever wants to leave loopback meets a closed port. */
function environment(net: Net, more: Record<string, string>): Record<string, string> {
  const own = /^(?:MEDLEY_|PYTHON|VIRTUAL_ENV|VITEST|NODE_)/;
  const entries = Object.entries(process.env).filter(([name]) => !own.test(name));
  const texts = entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const closed = 'http://127.0.0.1:9';
  const loopback = {
    HTTP_PROXY: closed,
    HTTPS_PROXY: closed,
    ALL_PROXY: closed,
    http_proxy: closed,
    https_proxy: closed,
    all_proxy: closed,
    NO_PROXY: '127.0.0.1,localhost',
    no_proxy: '127.0.0.1,localhost',
  };
  return {
    ...Object.fromEntries(texts),
    ...(net === 'loopback' && loopback),
    LANG: 'C.UTF-8',
    PYTHONDONTWRITEBYTECODE: '1',
    ...more,
  };
}

type Place = { cwd?: string; env?: Record<string, string>; net?: Net };

/** Runs a program to its end, and returns what it printed. Throws with that if it fails. */
export async function run(
  program: string,
  args: string[],
  { cwd = tmpdir(), env = {}, net = 'loopback' }: Place = {},
): Promise<string> {
  const options = { cwd, env: environment(net, env), timeout: run_ms_max, maxBuffer: output_bytes_max };
  try {
    const { stdout, stderr } = await execute(program, args, options);
    return stdout + stderr;
  } catch (error) {
    const output = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
    throw new Error(`${program} ${args.join(' ')}\n${output}\n${String(error)}`, { cause: error });
  }
}

const names = ['python3', ...[10, 11, 12, 13, 14, 15].map((minor) => `python3.${minor}`)];

/** Returns each version of Python from 3.10 that this machine has, the oldest first. Throws if it has none. */
export async function findPythons(): Promise<[Python, ...Python[]]> {
  const pythons = new Map<string, Python>();
  for (const name of names) {
    const script = 'import sys; print(sys.version_info[0], sys.version_info[1], sys.executable)';
    const printed = await run(name, ['-c', script]).catch(() => '');
    const [, minor = '', program = ''] = /^3 (\d+) (.+)$/m.exec(printed) ?? [];
    if (Number(minor) >= 10) pythons.set(minor, { program, version: `3.${minor}` });
  }
  const [first, ...others] = [...pythons.entries()].toSorted(([a], [b]) => Number(a) - Number(b)).map(([, one]) => one);
  if (!first) throw new Error('npm run test:python needs Python 3.10 or newer, as python3.');
  return [first, ...others];
}

/** The requirements of the suite, with another version of httpx where one is named. */
export function requirements(httpx?: string): string {
  const text = readFileSync(join(import.meta.dirname, 'requirements.txt'), 'utf8');
  return httpx === undefined ? text : text.replace(/^httpx==.*$/m, `httpx==${httpx}`);
}

/** Makes an environment with packages, once: the next run finds it. Returns its Python. */
export async function environmentWith({ program, version }: Python, packages: string): Promise<string> {
  const name = `medley-python-${version}-${hash('sha1', program + packages).slice(0, 12)}`;
  const folder = join(tmpdir(), name);
  const python = join(folder, 'bin/python');
  const is_complete = join(folder, 'complete');
  if (existsSync(is_complete)) return python;
  mkdirSync(folder, { recursive: true });
  await run(program, ['-m', 'venv', '--clear', folder]);
  writeFileSync(join(folder, 'requirements.txt'), packages);
  await pipInstall(python, ['--requirement', join(folder, 'requirements.txt')]);
  writeFileSync(is_complete, '');
  return python;
}

export async function pipInstall(python: string, words: string[]): Promise<void> {
  const flags = ['--quiet', '--disable-pip-version-check', '--no-input', '--only-binary', ':all:'];
  await run(python, ['-m', 'pip', 'install', ...flags, ...words], { net: 'registry' });
}
