import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Readable } from 'node:stream';

const repository = join(import.meta.dirname, '../..');

/** A service of its own process, with an empty data folder. */
export type FirstStart = {
  /** The link by which its first operator signs in. */
  link: string;
  stop(): Promise<void>;
};

/** Runs `npm start` on the packages that are installed; resolves once it has printed the link. */
export async function firstStart(folder: string, env: Record<string, string> = {}): Promise<FirstStart> {
  const { PATH, HOME } = process.env;
  const service = spawn('npm', ['start', '--silent'], {
    cwd: repository,
    env: { PATH, HOME, PORT: '0', MEDLEY_DATA: join(folder, 'data'), ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  });
  const stop = () => stopGroup(service);
  try {
    const link = await readLink(service.stdout);
    service.stdout.resume();
    return { link, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function readLink(output: Readable): Promise<string> {
  let printed = '';
  for await (const chunk of output) {
    printed += String(chunk);
    const link = /^Sign in to the dashboard .*: (\S+)$/m.exec(printed)?.[1];
    if (link !== undefined && printed.includes('hello.png')) return link;
  }
  throw new Error(`It ended before it said where to sign in: ${printed}`);
}

async function stopGroup(service: ChildProcessByStdio<null, Readable, null>): Promise<void> {
  if (service.exitCode !== null || service.signalCode !== null) return;
  process.kill(-(service.pid ?? 0), 'SIGTERM');
  await once(service, 'exit');
}
