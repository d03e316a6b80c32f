import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect: () => void = runInNewContext('gc');

/** Returns the peak of all buffers of this process while `work` is done, over what they had before, in bytes. */
export async function peakOf<T>(work: () => Promise<T>): Promise<{ peak_bytes: number; result: T }> {
  collect();
  const before = process.memoryUsage().arrayBuffers;
  let peak_bytes = 0;
  const timer = setInterval(() => {
    peak_bytes = Math.max(peak_bytes, process.memoryUsage().arrayBuffers - before);
  }, 5);
  try {
    return { result: await work(), peak_bytes };
  } finally {
    clearInterval(timer);
  }
}
