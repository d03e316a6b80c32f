import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/**
 * Returns the peak of all buffers that are in use in this process while `work` is done, over what they had before, in
 * bytes. Before a new peak counts, what nothing refers to goes: on a busy machine a collection may be late by 100 MB.
 */
export async function peakOf<T>(work: () => Promise<T>): Promise<{ peak_bytes: number; result: T }> {
  collect();
  const before = process.memoryUsage().arrayBuffers;
  const bytes = () => process.memoryUsage().arrayBuffers - before;
  let peak_bytes = 0;
  const timer = setInterval(() => {
    if (bytes() <= peak_bytes) return;
    collect();
    peak_bytes = Math.max(peak_bytes, bytes());
  }, 50);
  try {
    return { result: await work(), peak_bytes };
  } finally {
    clearInterval(timer);
  }
}
