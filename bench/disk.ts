import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const block = Buffer.alloc(8192, 1);
const blocks = 2_048; // as many as one file of PostgreSQL's log has

/**
 * Measures the times to write and flush one block, in ms: a commit can be no faster. In a file that has its
 * full size, like PostgreSQL's log.
 */
export function flushTimes_ms(folder: string, count: number): number[] {
  const file = openSync(join(folder, 'flushed'), 'w');
  for (let i = 0; i < blocks; i++) writeSync(file, block);
  fdatasyncSync(file);
  const times_ms = Array.from({ length: count }, (_, i) => {
    const started_ms = performance.now();
    writeSync(file, block, 0, block.length, (i % blocks) * block.length);
    fdatasyncSync(file);
    return performance.now() - started_ms;
  });
  closeSync(file);
  return times_ms;
}
