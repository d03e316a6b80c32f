/**
 * A thread that derives keys from passwords. Node's own asynchronous scrypt works in the pool that reads files and
 * resolves names: forty sign-ins at once made one download wait for 4.3 s.
 */
import { scryptSync } from 'node:crypto';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../lib/assert.ts';

export type HashJob = { id: number; password: string; salt: string };
export type HashResult = { id: number; key: string } | { id: number; error: string };

const key_bytes = 64;

assert(parentPort && typeof workerData === 'number', 'hashing runs in a thread of its own, which is told its cost');
/** Block size and the rest as the login library has them: passwords that it has hashed stay valid. */
const cost = { N: workerData, r: 16, p: 1, maxmem: 128 * workerData * 16 * 2 };
const port = parentPort;
port.on('message', ({ id, password, salt }: HashJob) => {
  try {
    const key = scryptSync(password.normalize('NFKC'), salt, key_bytes, cost).toString('hex');
    port.postMessage({ id, key } satisfies HashResult);
  } catch (error) {
    port.postMessage({ id, error: String(error) } satisfies HashResult);
  }
});
