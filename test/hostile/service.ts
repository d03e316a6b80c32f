import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { service_env } from '../../scripts/service-flags.mjs';

/** The service as a process of its own, as an operator starts it. */
export type Service = {
  child: ChildProcess;
  url: string;
  /** Everything that it has printed for its operator: the API key of a first start among it. */
  greeting: string;
  /** Everything that it has logged so far. */
  log(): string;
  /** Ends it by the signal that an operator's Ctrl-C sends. */
  stop(): Promise<void>;
};

/**
 * Starts src/main.ts in `folder` with exactly this environment; its log goes to a file there. Node takes `node_arguments`;
 * with some, there is a pipe at descriptor 3.
 */
export async function startService(
  folder: string,
  env: Record<string, string>,
  node_arguments: readonly string[] = [],
): Promise<Service> {
  const log_file = join(folder, 'service.log');
  const log = openSync(log_file, 'a');
  const main_file = join(import.meta.dirname, '../../src/main.ts');
  const child = spawn(process.execPath, [...node_arguments, main_file], {
    cwd: folder,
    env: { PATH: process.env['PATH'], ...service_env, ...env },
    stdio: ['ignore', 'pipe', log, ...(node_arguments.length > 0 ? ['pipe' as const] : [])],
  });
  closeSync(log);
  let greeting = '';
  const url = await new Promise<string>((resolve, reject) => {
    child.stdout?.on('data', (chunk) => {
      greeting += String(chunk);
      const address = /running at (\S+)/.exec(greeting)?.[1];
      if (address !== undefined && greeting.includes('Make an image')) resolve(address);
    });
    child.once('exit', () => reject(new Error(`the service ended: ${readFileSync(log_file, 'utf8')}`)));
  });
  return {
    child,
    url,
    greeting,
    log: () => readFileSync(log_file, 'utf8'),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}
