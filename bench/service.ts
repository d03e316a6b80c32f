import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Leash } from './leash.ts';
import { service_env, service_flags } from '../scripts/service-flags.mjs';

/** Folder of the processes of a bench, and their shared database. */
export type Service = {
  folder: string;
  database_url: string;
  leash: Leash;
  /** Further settings of its environment. */
  env?: Record<string, string>;
};

/** The port on which every bench's service listens. */
export const port = 18_099;

/** No limit of requests binds, and receivers may listen on loopback. The folder's medley.yaml. */
export const base_yaml = `
version: 1
storage: { shared: true }
limits: { generate_per_minute: 1000000, chat_per_minute: 1000000, failed_per_24h: 1000000 }
net: { allow: ["127.0.0.0/8"] }
`;

const children = new Set<ChildProcess>();

/** Starts one process of the service and waits until it says that it runs. `node_options`: of Node itself; `at`: its port. */
export async function startService(
  role: 'api' | 'worker' | 'all',
  service: Service,
  node_options: readonly string[] = [],
  at = port,
): Promise<ChildProcess> {
  const env = {
    ...service_env,
    ...process.env,
    DATABASE_URL: service.database_url,
    MEDLEY_DATA: join(service.folder, 'files'),
    MEDLEY_CONFIG: join(service.folder, 'medley.yaml'),
    MEDLEY_ROLE: role,
    PORT: String(at),
    ...service.env,
  };
  const child = spawn(
    process.execPath,
    [...service_flags, ...node_options, join(import.meta.dirname, '../src/main.ts')],
    {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  children.add(child);
  service.leash.hold(child);
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk) => String(chunk).includes('running') && resolve());
    child.once('exit', () => reject(new Error(`the ${role} process ended`)));
  });
  console.log(`${role} is running`);
  return child;
}

export async function stopService(child: ChildProcess): Promise<void> {
  child.kill('SIGTERM');
  if (child.exitCode === null) await once(child, 'exit');
}

/** At the end, whatever happened: no process stays behind. */
export function stopServices(): void {
  for (const child of children) child.kill('SIGKILL');
}

export function residentMegabytes(child: ChildProcess): string {
  return megabytes(child, 'VmRSS');
}

/** The most memory that it has ever had. */
export function peakMegabytes(child: ChildProcess): string {
  return megabytes(child, 'VmHWM');
}

function megabytes(child: ChildProcess, field: string): string {
  try {
    const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
    return (Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024).toFixed(0);
  } catch {
    return 'unknown';
  }
}

export function quantile(values: number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ?? Number.NaN;
}
