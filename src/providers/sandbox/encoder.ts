import { createRequire } from 'node:module';
import type * as Encoder from 'h264-mp4-encoder';

const encoder_package = 'h264-mp4-encoder';
const require = createRequire(import.meta.url);

/** False if the optional package with the H.264 encoder is not installed; then no video can be made. */
export function videoAvailable(): boolean {
  try {
    require.resolve(encoder_package);
    return true;
  } catch {
    return false;
  }
}

/** A CommonJS package whose names Node cannot see through `import`; loaded late because it is optional. */
export function loadEncoder(): typeof Encoder {
  return require(encoder_package);
}
