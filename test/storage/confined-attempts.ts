import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

// What a process of confined.test.ts tries, and a thread of it; answers what came of each.

export type Attempts = Record<'read' | 'beside' | 'write' | 'connect' | 'spawn' | 'environment' | 'interfaces', string>;

function attempt(work: () => unknown): string {
  try {
    return JSON.stringify(work()) ?? 'done';
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  }
}

function attemptAll(): Promise<Attempts> {
  const attempts = {
    read: attempt(() => readFileSync('/etc/passwd').length),
    beside: attempt(() => readFileSync(new URL('../../README.md', import.meta.url)).length),
    write: attempt(() => writeFileSync(join(tmpdir(), 'medley-confined'), 'x')),
    spawn: attempt(() => spawnSync('true').status),
    environment: attempt(() => Object.keys(process.env).filter((name) => !name.startsWith('NODE_'))),
    interfaces: attempt(() => Object.keys(networkInterfaces())),
  };
  return new Promise((resolve) => {
    const settle = (result: string) => resolve({ ...attempts, connect: result });
    try {
      const socket = connect(9, '127.0.0.1', () => settle('connected'));
      socket.on('error', (error) => settle('code' in error ? String(error.code) : String(error)));
    } catch (error) {
      settle(error instanceof Error && 'code' in error ? String(error.code) : String(error));
    }
  });
}

const attempts = await attemptAll();
if (isMainThread) {
  process.on('message', () => undefined); // it lives until it is killed
  const thread = new Worker(new URL(import.meta.url));
  thread.on('message', (of_thread: Attempts) => process.send?.([attempts, of_thread]));
} else {
  parentPort?.postMessage(attempts, []);
}
