import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test, vi } from 'vitest';

const script = join(import.meta.dirname, '../helpers/bench-child.ts');

test.each(['SIGKILL', 'SIGTERM'] as const)('a bench that ends by %s leaves no server and no folder', async (signal) => {
  const bench = spawn(process.execPath, [script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(createInterface({ input: bench.stdout }), 'line')) as [string];
  const { folder, pid } = JSON.parse(line) as { folder: string; pid: number };
  expect([isRunning(pid), existsSync(folder)]).toEqual([true, true]);
  bench.kill(signal);
  await vi.waitFor(() => expect([isRunning(pid), existsSync(folder)]).toEqual([false, false]), 120_000);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
