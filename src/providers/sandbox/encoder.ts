import { createRequire } from 'node:module';
import type * as Encoder from 'h264-mp4-encoder';

const encoder_package = 'h264-mp4-encoder';
const require = createRequire(import.meta.url);

/** Returns false if the optional package with the H.264 encoder is not installed; then no video can be made. */
export function videoAvailable(): boolean {
  try {
    require.resolve(encoder_package);
    return true;
  } catch {
    return false;
  }
}

const failures = ['uncaughtException', 'unhandledRejection'];

/**
 * A CommonJS package whose names Node cannot see through `import`; loaded late because it is optional. It listens for the
 * failures of the whole process, and aborts at somebody else's rejection that is handled late: it may not.
 */
export function loadEncoder(): typeof Encoder {
  const before = new Map(failures.map((name) => [name, process.rawListeners(name)]));
  const encoder: typeof Encoder = require(encoder_package);
  for (const [name, own] of before)
    for (const listener of process.rawListeners(name))
      if (!own.includes(listener)) Reflect.apply(process.removeListener, process, [name, listener]);
  return encoder;
}
