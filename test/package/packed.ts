import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import sharp from 'sharp';
import { repository } from '../docs/document.ts';

/** The environment of a user's shell: nothing of this run's own settings, of npm's or of vitest's. */
function plainEnvironment(): Record<string, string> {
  const own = /^(npm_|MEDLEY_|VITEST|TEST$|DEV$|PROD$|NODE_(?!EXTRA_CA_CERTS)|PORT$|DATABASE_URL$)/;
  const entries = Object.entries(process.env).filter(([name]) => !own.test(name) && name !== 'PATH');
  const path = (process.env['PATH'] ?? '').split(':').filter((part) => !part.startsWith(repository));
  const texts = entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  return { ...Object.fromEntries(texts), PATH: path.join(':'), PORT: '0' };
}

const run_ms_max = 300_000;

/** Runs a program to its end; its output of both kinds, and its exit code. */
export function run(command: string, words: string[], cwd: string, env: Record<string, string> = {}) {
  const child = spawnSync(command, words, {
    cwd,
    encoding: 'utf8',
    env: { ...plainEnvironment(), ...env },
    timeout: run_ms_max,
  });
  return { code: child.status, output: `${child.stdout}${child.stderr}` };
}

/** Packs the repository into `folder`, as `npm run package -- WORDS` does. Returns the path of the tarball. */
export function pack(folder: string, words: string[]): string {
  const { code, output } = run('node', ['scripts/package.mjs', '--out', folder, ...words], repository);
  if (code !== 0) throw new Error(`npm run package failed: ${output}`);
  const [name = ''] = readdirSync(folder).filter((each) => each.endsWith('.tgz'));
  return join(folder, name);
}

/** A service that runs from the installed package. */
export type Running = { printed: string; url: string; stop(): Promise<number | null> };

/** Starts it by `line`, a command of a shell, and waits until it has printed how to make an image. */
export async function start(line: string, cwd: string, env: Record<string, string> = {}): Promise<Running> {
  const child = spawn('sh', ['-c', `exec ${line}`], {
    cwd,
    env: { ...plainEnvironment(), ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (printed += String(chunk)));
  const closed = once(child, 'close');
  while (!/^ {2}curl .*hello\.png$/m.test(printed)) {
    if (child.exitCode !== null) throw new Error(`It ended before it was there: ${printed}`);
    await Promise.race([sleep(50), closed]);
  }
  const url = /Medley is running at (\S+)/.exec(printed)?.[1] ?? '';
  return { printed, url, stop: () => stop(child, closed) };
}

/** As Ctrl-C does: every process of the group gets it. */
async function stop(child: ChildProcess, closed: Promise<unknown>): Promise<number | null> {
  if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid ?? 0), 'SIGINT');
  await closed;
  return child.exitCode;
}

/** Runs the line that the service has printed, and reads the image. */
export async function makeImage({ printed }: Running, cwd: string) {
  const [line = ''] = /^ {2}curl .*$/m.exec(printed) ?? [];
  const { code, output } = run('bash', ['-c', line], cwd);
  if (code !== 0) throw new Error(`The printed line failed: ${output}`);
  const { format, width, height } = await sharp(join(cwd, 'hello.png')).metadata();
  return { format, width, height };
}
