// isolated: it measures its process
import { once } from 'node:events';
import { readFile, readlink } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { startConfined, withoutNetwork } from '../../src/storage/confined.ts';

it('a confined process and its threads read, write, start and reach nothing, and have no environment', async () => {
  const child = await startConfined(new URL('./confined-attempts.ts', import.meta.url));
  try {
    const [results]: unknown[] = await once(child, 'message');
    const refused = {
      read: 'ERR_ACCESS_DENIED',
      beside: 'ERR_ACCESS_DENIED', // of our own code: where the data are, too
      write: 'ERR_ACCESS_DENIED',
      connect: 'ERR_ACCESS_DENIED',
      spawn: 'ERR_ACCESS_DENIED',
      environment: '[]',
      interfaces: expect.any(String),
    };
    expect(results).toEqual([refused, refused]);
  } finally {
    child.kill('SIGKILL');
  }
});

it('a confined process is in a network of its own wherever the system lets a program have one', async () => {
  const prefix = await withoutNetwork();
  const child = await startConfined(new URL('./confined-attempts.ts', import.meta.url));
  try {
    await once(child, 'message');
    const [own, others] = await Promise.all([networkOf('self'), networkOf(child.pid)]);
    expect(own === others).toBe(prefix.length === 0);
    // Root may always have one, but for containers that take this right away: there nothing is claimed.
    expect(prefix.includes('-n') || !(await hasAdminRight())).toBe(true);
  } finally {
    child.kill('SIGKILL');
  }
});

/** Of systems without /proc: all the same. */
function networkOf(process: number | 'self' | undefined): Promise<string> {
  return readlink(`/proc/${process}/ns/net`).catch(() => 'unknown');
}

const admin_right = 1n << 21n;

async function hasAdminRight(): Promise<boolean> {
  const status = await readFile('/proc/self/status', 'utf8').catch(() => '');
  const [, rights = '0'] = /^CapEff:\s*([0-9a-f]+)$/m.exec(status) ?? [];
  return (BigInt(`0x${rights}`) & admin_right) !== 0n;
}
